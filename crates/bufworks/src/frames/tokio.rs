//! Frames of tokio's sockets, and for its writers.

use core::future::poll_fn;
use core::ops::ControlFlow;
use core::pin::{Pin, pin};
use core::task::{Context, Poll, ready};
use std::io::{self, IoSlice};

use bufcore::author::count_written;
use bufcore::{AcquireError, Buf, Frozen, Lease};
use tokio::io::AsyncWrite;

use super::framing::Framing;
use super::state::Step;
use super::write::{FRAMES, Gathered, SLICES, advance};
use super::{FrameError, FrameReader};
use crate::net::{ReadReady, poll_read, until_woken};

impl<S: ReadReady, F: Framing, L: Lease> FrameReader<S, F, L> {
    /// Returns the next frame when it has arrived, in a buffer for which it may wait; `None` at the
    /// end of the stream.
    ///
    /// `acquire` is called when the stream is readable, with a number of bytes. Its future may wait
    /// for any time, as `acquire_async` of a bounded pool does. During that wait the reader holds
    /// no buffer of the pool, and the bytes stay in the socket. Tasks that share a budget are
    /// therefore served in turn. A peer that sends at most 64 bytes of a frame, and then nothing,
    /// occupies no buffer either. A peer that sends more and stops occupies the buffer of its frame
    /// until the reader is dropped, so a server under a budget needs a deadline. A frame that the
    /// task itself keeps counts as the task's buffer: see [which buffer
    /// first](crate::net::read_ready_waiting#which-buffer-first).
    ///
    /// Cost: see [the module](super). While it waits for the pool, a partial frame of a chunk is
    /// copied to separate memory, smaller than a chunk. That part is then copied twice more. The
    /// same happens if at most 64 bytes of a frame have arrived.
    ///
    /// # Errors
    ///
    /// [`FrameError`]; the bytes that it loses are those of [`next_frame`](Self::next_frame).
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses no byte: the next call continues. Its request for a buffer is
    /// cancelled and loses its place in the queue.
    ///
    /// # Examples
    ///
    /// A server with many clients:
    ///
    /// ```
    /// # #[cfg(feature = "shard")] {
    /// use bufworks::frames::{FrameReader, LengthDelimited, write_frames_async};
    /// use bufworks::shard::ShardPool;
    ///
    /// # tokio::runtime::Builder::new_current_thread().enable_io().build()?.block_on(async {
    /// # let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    /// # let mut client = tokio::net::TcpStream::connect(listener.local_addr()?).await?;
    /// # let socket = listener.accept().await?.0;
    /// let framing = LengthDelimited::new(1 << 20);
    /// write_frames_async(&mut client, &framing, &["hello", "world"]).await?;
    /// drop(client);
    ///
    /// let pool = ShardPool::builder().max_bytes(32 << 20).build().expect("settings are right");
    /// let mut frames = FrameReader::new(socket, framing);
    /// let mut received = Vec::new();
    /// while let Some(frame) = frames.next_frame_async(|bytes| pool.acquire_async(bytes)).await? {
    ///     received.push(frame);
    /// }
    /// assert!(received.iter().eq([b"hello", b"world"]));
    /// # Ok::<(), Box<dyn std::error::Error>>(()) })?;
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// A deadline for the client. The deadline excludes the time in which the reader waits for the
    /// pool: the same future is polled further, so that its request keeps its place.
    ///
    /// ```
    /// # #[cfg(feature = "shard")] {
    /// use core::pin::pin;
    /// use core::sync::atomic::{AtomicBool, Ordering};
    /// use std::time::Duration;
    ///
    /// use bufworks::frames::{FrameReader, LengthDelimited};
    /// use bufworks::shard::ShardPool;
    /// # use tokio::io::AsyncWriteExt;
    /// use tokio::time::timeout;
    ///
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    /// # let mut client = tokio::net::TcpStream::connect(listener.local_addr()?).await?;
    /// # let socket = listener.accept().await?.0;
    /// client.write_all(b"\0\0\0\x05hello\0\0\0\x05he").await?; // and then nothing
    /// let pool = ShardPool::builder().max_bytes(32 << 20).build().expect("settings are right");
    /// let waits_for_pool = AtomicBool::new(false);
    /// let acquire = async |bytes| {
    ///     waits_for_pool.store(true, Ordering::Relaxed);
    ///     let acquired = pool.acquire_async(bytes).await;
    ///     waits_for_pool.store(false, Ordering::Relaxed);
    ///     acquired
    /// };
    /// let mut frames = FrameReader::new(socket, LengthDelimited::new(100));
    /// let mut received = Vec::new();
    /// let mut was_inside = false; // a frame had begun when the last period ended
    /// loop {
    ///     let next = {
    ///         let mut next = pin!(frames.next_frame_async(&acquire));
    ///         loop {
    ///             match timeout(Duration::from_millis(20), next.as_mut()).await {
    ///                 Err(_elapsed) if waits_for_pool.load(Ordering::Relaxed) => {}
    ///                 next => break next,
    ///             }
    ///         }
    ///     };
    ///     match next {
    ///         Ok(frame) => match frame? {
    ///             Some(frame) => received.push(frame),
    ///             None => break,
    ///         },
    ///         // A frame that takes a whole period is too slow. Dropping the reader closes the
    ///         // connection, and releases what it holds.
    ///         Err(_elapsed) if was_inside => break,
    ///         // Between frames a client may be silent.
    ///         Err(_elapsed) => {}
    ///     }
    ///     was_inside = frames.is_inside_frame();
    /// }
    /// assert!(received.iter().eq([b"hello"]) && frames.is_inside_frame());
    /// # Ok::<(), Box<dyn std::error::Error>>(()) })?;
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub async fn next_frame_async<A, Fut>(&mut self, mut acquire: A) -> Result<Option<Frozen<L>>, FrameError>
    where
        A: FnMut(usize) -> Fut,
        Fut: Future<Output = Result<Buf<L>, AcquireError>>,
    {
        loop {
            match self.state.step()? {
                Step::Frame(frame) => return Ok(Some(frame)),
                Step::Acquire(bytes) => {
                    let needs_more = self.state.needs_more();
                    if needs_more {
                        self.state.let_go_of_few();
                        self.stream.readable().await?;
                    }
                    match self.wait_for(acquire(bytes)).await {
                        Ok(buf) => self.state.give(buf, bytes)?,
                        Err(_) if self.state.refused() => continue,
                        Err(error) => return Err(error.into()),
                    }
                    if needs_more && self.read_now().await?.is_break() {
                        return self.state.end();
                    }
                }
                Step::Read => {
                    // `None` when the chunk was let go: the next step waits for a readable stream.
                    let polled = poll_fn(|cx| match self.poll_room(cx) {
                        Poll::Pending if self.state.let_go_of_few() => Poll::Ready(Ok(None)),
                        polled => polled.map_ok(Some),
                    });
                    if polled.await? == Some(0) {
                        return self.state.end();
                    }
                }
            }
        }
    }
}

impl<S: ReadReady, F: Framing, L: Lease> FrameReader<S, F, L> {
    /// Waits for a buffer. When it has to wait, it holds no chunk.
    async fn wait_for(
        &mut self,
        acquiring: impl Future<Output = Result<Buf<L>, AcquireError>>,
    ) -> Result<Buf<L>, AcquireError> {
        let mut acquiring = pin!(acquiring);
        poll_fn(|cx| {
            let polled = acquiring.as_mut().poll(cx);
            if polled.is_pending() {
                // If this releases memory that the request waits for, the request is woken.
                self.state.let_go();
            }
            polled
        })
        .await
    }

    /// Reads once, without waiting. Breaks at the end of the stream. Where nothing has come, it
    /// lets the chunk go, and waits until there is reason to try again.
    async fn read_now(&mut self) -> io::Result<ControlFlow<()>> {
        match poll_fn(|cx| Poll::Ready(self.poll_room(cx))).await {
            Poll::Ready(Ok(0)) => Ok(ControlFlow::Break(())),
            Poll::Ready(Ok(_)) => Ok(ControlFlow::Continue(())),
            Poll::Ready(Err(error)) => Err(error),
            Poll::Pending => {
                self.state.let_go();
                until_woken().await;
                Ok(ControlFlow::Continue(()))
            }
        }
    }

    /// Reads once, to where the next bytes go.
    fn poll_room(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let n = ready!(poll_read(&mut self.stream, cx, self.state.room()))?;
        self.state.filled(n);
        Poll::Ready(Ok(n))
    }
}

/// Writes frames as [`write_frames`](super::write_frames) does, to a tokio writer.
///
/// # Errors
///
/// As [`write_frames`](super::write_frames).
///
/// # Cancel safety
///
/// A future that is dropped early may have written a part of a frame.
///
/// ```
/// use bufworks::frames::{LengthDelimited, write_frames_async};
///
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// let framing = LengthDelimited::new(100).length_bytes(1);
/// let mut socket = Vec::new();
/// write_frames_async(&mut socket, &framing, &["one", "two"]).await?;
/// assert_eq!(socket, b"\x03one\x03two");
/// # Ok::<(), bufworks::frames::FrameError>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub async fn write_frames_async(
    to: &mut (impl AsyncWrite + Unpin + ?Sized),
    framing: &impl Framing,
    frames: &[impl AsRef<[u8]>],
) -> Result<(), FrameError> {
    for frames in frames.chunks(FRAMES) {
        let (gathered, wrong) = Gathered::new(framing, frames);
        write_all_vectored_async(to, &mut gathered.slices(frames)).await?;
        wrong?;
    }
    Ok(())
}

/// Writes all bytes of the slices, as [`write_all_vectored`](super::write_all_vectored) does, to a
/// tokio writer. The slices are advanced as bytes are written, even if the future is dropped.
///
/// # Errors
///
/// As [`write_all_vectored`](super::write_all_vectored).
///
/// ```
/// use std::io::IoSlice;
///
/// use bufworks::frames::write_all_vectored_async;
///
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// let mut socket = Vec::new();
/// let mut slices = [IoSlice::new(b"head"), IoSlice::new(b"body")];
/// write_all_vectored_async(&mut socket, &mut slices).await?;
/// assert_eq!(socket, b"headbody");
/// # std::io::Result::Ok(()) })?;
/// # std::io::Result::Ok(())
/// ```
pub async fn write_all_vectored_async(
    to: &mut (impl AsyncWrite + Unpin + ?Sized),
    mut slices: &mut [IoSlice<'_>],
) -> io::Result<()> {
    advance(&mut slices, 0);
    while !slices.is_empty() {
        let now = &slices[..slices.len().min(SLICES)];
        let most = now.iter().map(|slice| slice.len()).sum();
        let n = poll_fn(|cx| Pin::new(&mut *to).poll_write_vectored(cx, now)).await?;
        advance(&mut slices, count_written(n, most)?);
    }
    Ok(())
}
