//! Frames of tokio's sockets as a stream.

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::future::poll_fn;
use core::pin::Pin;
use core::task::{Context, Poll};
use std::sync::{Mutex, PoisonError};

use bufcore::{AcquireError, Buf, Frozen, Lease};
use futures_core::Stream;

use super::framing::Framing;
use super::{FrameError, FrameReader};
use crate::net::ReadReady;

type Item<L> = Result<Frozen<L>, FrameError>;

/// A future that passes on one item after the other: when it is pending with an item in its place,
/// it waits to be asked for the next.
struct Items<Fut, L: Lease> {
    reading: Option<Pin<Box<Fut>>>,
    place: Arc<Mutex<Option<Item<L>>>>,
}

impl<Fut: Future<Output = ()>, L: Lease> Stream for Items<Fut, L> {
    type Item = Item<L>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Item<L>>> {
        let Some(reading) = &mut self.reading else { return Poll::Ready(None) };
        let is_done = reading.as_mut().poll(cx).is_ready();
        if is_done {
            self.reading = None;
        }
        match self.place.lock().unwrap_or_else(PoisonError::into_inner).take() {
            None if !is_done => Poll::Pending,
            item => Poll::Ready(item),
        }
    }
}

impl<S: ReadReady, F: Framing, L: Lease> FrameReader<S, F, L> {
    /// Turns the reader into a stream of frames, as [`next_frame_async`](Self::next_frame_async)
    /// returns them.
    ///
    /// The stream ends at the end of the socket, and after an error. It continues only after a
    /// frame that is too long and that the framing [skips](super::Delimited::skip_too_long).
    ///
    /// Cost: that of `next_frame_async`, and one allocation for the stream.
    ///
    /// ```
    /// # #[cfg(feature = "shard")] {
    /// use bufworks::frames::{FrameReader, LengthDelimited};
    /// use bufworks::shard::ShardPool;
    /// use futures_core::Stream;
    /// # use core::future::poll_fn;
    /// # use core::pin::pin;
    /// # use tokio::io::AsyncWriteExt;
    ///
    /// # tokio::runtime::Builder::new_current_thread().enable_io().build()?.block_on(async {
    /// # let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    /// # let mut client = tokio::net::TcpStream::connect(listener.local_addr()?).await?;
    /// # let socket = listener.accept().await?.0;
    /// # client.write_all(b"\0\0\0\x05hello\0\0\0\x05world").await?;
    /// # drop(client);
    /// let pool = ShardPool::builder().max_bytes(32 << 20).build().expect("settings are right");
    /// let frames = FrameReader::new(socket, LengthDelimited::new(1 << 20));
    /// let mut frames = pin!(frames.into_stream(|bytes| pool.acquire_async(bytes)));
    /// // `frames.try_next().await?` with `futures::TryStreamExt`
    /// let frame = poll_fn(|cx| frames.as_mut().poll_next(cx)).await.transpose()?;
    /// assert_eq!(frame.unwrap(), *b"hello");
    /// # Ok::<(), Box<dyn std::error::Error>>(()) })?;
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn into_stream<A, Fut>(mut self, mut acquire: A) -> impl Stream<Item = Item<L>> + Unpin
    where
        A: FnMut(usize) -> Fut,
        Fut: Future<Output = Result<Buf<L>, AcquireError>>,
    {
        let place = Arc::new(Mutex::new(None));
        let to = Arc::clone(&place);
        let reading = async move {
            loop {
                let next = self.next_frame_async(&mut acquire).await;
                let goes_on = match &next {
                    Ok(frame) => frame.is_some(),
                    Err(error) => matches!(error, FrameError::TooLong { .. }) && self.state.is_skipping(),
                };
                *to.lock().unwrap_or_else(PoisonError::into_inner) = next.transpose();
                if !goes_on {
                    return;
                }
                let mut was_asked = false;
                poll_fn(|_cx| {
                    if core::mem::replace(&mut was_asked, true) { Poll::Ready(()) } else { Poll::Pending }
                })
                .await;
            }
        };
        Items { reading: Some(Box::pin(reading)), place }
    }
}
