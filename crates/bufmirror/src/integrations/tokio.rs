//! The traits of tokio, for the ends of a channel: tasks wait where threads would block. No runtime
//! of tokio's is needed.

use core::future::poll_fn;
use core::pin::Pin;
use core::task::{Context, Poll, ready};
use std::io;

use bufcore::author::count_filled;
use tokio::io::{AsyncBufRead, AsyncRead, AsyncWrite, ReadBuf};

use crate::channel::waking::io::or_end;
use crate::{Consumer, MirrorRing, Producer};

/// Waits until there is room for at least one byte. `BrokenPipe` if the consumer was dropped, and
/// after a shutdown.
impl AsyncWrite for Producer {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        ready!(self.poll_wait(cx, usize::from(!bytes.is_empty())))?;
        Poll::Ready(Ok(self.put_some(bytes)))
    }

    /// Does nothing: written bytes are visible already.
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    /// [Closes](Producer::close) this end: the consumer reads the remaining bytes, then the end of
    /// the stream. This does not wait for that.
    fn poll_shutdown(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.close();
        Poll::Ready(Ok(()))
    }
}

/// Waits until there is at least one byte, or the producer was dropped and all bytes were read.
impl AsyncRead for Consumer {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if into.remaining() == 0 {
            return Poll::Ready(Ok(()));
        }
        ready!(self.poll_wait(cx, 1).map(or_end))?;
        let bytes = self.peek();
        let n = bytes.len().min(into.remaining());
        into.put_slice(&bytes[..n]);
        self.consume(n);
        Poll::Ready(Ok(()))
    }
}

/// Waits as `poll_read` does, and returns all bytes that can be read.
impl AsyncBufRead for Consumer {
    fn poll_fill_buf(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<&[u8]>> {
        let this = self.get_mut();
        ready!(this.poll_wait(cx, 1).map(or_end))?;
        Poll::Ready(Ok(this.peek()))
    }

    /// Drops the oldest `bytes` bytes.
    ///
    /// # Panics
    ///
    /// Panics if `bytes` is over the available number.
    fn consume(mut self: Pin<&mut Self>, bytes: usize) {
        Self::consume(&mut self, bytes);
    }
}

/// Reads once from `reader` into `room`, and returns how many bytes came.
fn poll_fill(
    cx: &mut Context<'_>,
    room: &mut [u8],
    reader: &mut (impl AsyncRead + Unpin),
) -> Poll<io::Result<usize>> {
    let place = room.as_ptr_range();
    let mut into = ReadBuf::new(room);
    ready!(Pin::new(reader).poll_read(cx, &mut into))?;
    Poll::Ready(count_filled(&place, into.filled()))
}

impl MirrorRing {
    /// Reads as [`read_from`](Self::read_from) does, from a tokio reader, without blocking the
    /// thread. The future may be dropped at any time: no bytes are lost.
    ///
    /// # Errors
    ///
    /// As [`read_from`](Self::read_from): a full ring is `StorageFull`, unlike with `read_buf`. A
    /// reader that fills another buffer than the given one gets `InvalidData`.
    ///
    /// ```
    /// use tokio::io::AsyncWriteExt;
    ///
    /// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
    /// let mut ring = bufmirror::MirrorRing::new(4096)?;
    /// let mut socket = &b"request"[..];
    /// while ring.read_from_async(&mut socket).await? > 0 {
    ///     // parse what `ring.peek()` lends
    /// }
    /// let mut answer = Vec::new();
    /// while !ring.is_empty() {
    ///     let n = answer.write(ring.peek()).await?; // as much as the writer takes at once
    ///     ring.consume(n);
    /// }
    /// assert_eq!(answer, b"request");
    /// # Ok::<(), std::io::Error>(())
    /// # })?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub async fn read_from_async(&mut self, reader: &mut (impl AsyncRead + Unpin)) -> io::Result<usize> {
        poll_fn(|cx| {
            let n = ready!(poll_fill(cx, self.all_room()?, reader))?;
            self.commit(n);
            Poll::Ready(Ok(n))
        })
        .await
    }
}

impl Producer {
    /// Reads as [`read_from`](Self::read_from) does, from a tokio reader, without blocking the
    /// thread. The future may be dropped at any time: no bytes are lost.
    ///
    /// # Errors
    ///
    /// As [`read_from`](Self::read_from). A reader that fills another buffer than the given one
    /// gets `InvalidData`.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
    /// let (mut producer, mut consumer) = bufmirror::channel(4096)?;
    /// let mut socket = &b"from the network"[..];
    /// while producer.read_from_async(&mut socket).await? > 0 {} // waits while the ring is full
    /// assert_eq!(consumer.peek(), b"from the network");
    /// # Ok::<(), std::io::Error>(())
    /// # })?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub async fn read_from_async(&mut self, reader: &mut (impl AsyncRead + Unpin)) -> io::Result<usize> {
        poll_fn(|cx| {
            ready!(self.poll_wait(cx, 1))?;
            let n = ready!(poll_fill(cx, self.room_for_a_read(), reader))?;
            self.commit(n);
            Poll::Ready(Ok(n))
        })
        .await
    }
}
