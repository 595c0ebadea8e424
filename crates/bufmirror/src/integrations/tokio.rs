//! The traits of tokio, for the ends of a channel: tasks wait where threads would block. No runtime
//! of tokio's is needed.

use core::future::poll_fn;
use core::pin::Pin;
use core::task::{Context, Poll, ready};
use std::io;

use bufcore::author::count_filled;
use tokio::io::{AsyncBufRead, AsyncRead, AsyncWrite, ReadBuf};

use super::std_io::taken;
use crate::{Consumer, MirrorRing, Producer, WaitError};

/// Waits until there is room for a byte at least. `BrokenPipe` when the consumer is gone, and after
/// a shutdown.
impl AsyncWrite for Producer {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        ready!(self.poll_wait(cx, usize::from(!bytes.is_empty())))?;
        Poll::Ready(Ok(self.put_some(bytes)))
    }

    /// Does nothing: what was written is on its way already.
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    /// [Closes](Producer::close) this end: the consumer reads what is left, and then its end. This
    /// does not wait for that.
    fn poll_shutdown(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.close();
        Poll::Ready(Ok(()))
    }
}

impl Consumer {
    /// Waits for a byte or the end.
    fn poll_byte_or_end(&mut self, cx: &Context<'_>) -> Poll<Result<(), WaitError>> {
        self.poll_wait(cx, 1).map(|result| match result {
            Err(WaitError::Closed { .. }) => Ok(()),
            result => result,
        })
    }
}

/// Waits until there is a byte at least, or the producer is gone and all was read.
impl AsyncRead for Consumer {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if into.remaining() == 0 {
            return Poll::Ready(Ok(()));
        }
        ready!(self.poll_byte_or_end(cx))?;
        let bytes = self.peek();
        let n = bytes.len().min(into.remaining());
        into.put_slice(&bytes[..n]);
        self.consume(n);
        Poll::Ready(Ok(()))
    }
}

/// Waits as `poll_read` does, and lends all bytes that can be read, at once.
impl AsyncBufRead for Consumer {
    fn poll_fill_buf(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<&[u8]>> {
        let this = self.get_mut();
        ready!(this.poll_byte_or_end(cx))?;
        Poll::Ready(Ok(this.peek()))
    }

    /// Drops the oldest `bytes` bytes.
    ///
    /// # Panics
    ///
    /// When `bytes` is over the length of what there is.
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

/// Writes `bytes` to `writer`, once, and returns how many it took: some, if there are some.
fn poll_drain(
    cx: &mut Context<'_>,
    bytes: &[u8],
    writer: &mut (impl AsyncWrite + Unpin),
) -> Poll<io::Result<usize>> {
    if bytes.is_empty() {
        return Poll::Ready(Ok(0));
    }
    let n = ready!(Pin::new(writer).poll_write(cx, bytes))?;
    Poll::Ready(taken(n, bytes))
}

impl MirrorRing {
    /// Reads as [`read_from`](Self::read_from) does, from a reader of tokio's, without blocking the
    /// thread. The future may be dropped at any time: nothing is lost.
    ///
    /// # Errors
    ///
    /// As [`read_from`](Self::read_from): a full ring is `StorageFull`, unlike with `read_buf`. A
    /// reader that fills another buffer than the one that it is lent gets `InvalidData`.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
    /// let mut ring = bufmirror::MirrorRing::new(4096)?;
    /// let mut socket = &b"request"[..];
    /// while ring.read_from_async(&mut socket).await? > 0 {
    ///     // parse what `ring.peek()` lends
    /// }
    /// let mut answer = Vec::new();
    /// while ring.write_to_async(&mut answer).await? > 0 {}
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

    /// Writes as [`write_to`](Self::write_to) does, to a writer of tokio's, without blocking the
    /// thread. The future may be dropped at any time: nothing is lost, and nothing is written
    /// twice.
    ///
    /// # Errors
    ///
    /// As [`write_to`](Self::write_to).
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
    /// let mut ring = bufmirror::MirrorRing::new(4096)?;
    /// ring.put(b"200 OK\r\n\r\n").unwrap();
    /// let mut socket = Vec::new();
    /// while !ring.is_empty() {
    ///     ring.write_to_async(&mut socket).await?; // as much as the socket takes at once
    /// }
    /// assert_eq!(socket, b"200 OK\r\n\r\n");
    /// # Ok::<(), std::io::Error>(())
    /// # })?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub async fn write_to_async(&mut self, writer: &mut (impl AsyncWrite + Unpin)) -> io::Result<usize> {
        poll_fn(|cx| {
            let n = ready!(poll_drain(cx, self.peek(), writer))?;
            self.consume(n);
            Poll::Ready(Ok(n))
        })
        .await
    }
}

impl Producer {
    /// Reads as [`read_from`](Self::read_from) does, from a reader of tokio's, without blocking the
    /// thread. The future may be dropped at any time: nothing is lost.
    ///
    /// # Errors
    ///
    /// As [`read_from`](Self::read_from). A reader that fills another buffer than the one that it
    /// is lent gets `InvalidData`.
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

impl Consumer {
    /// Writes as [`write_to`](Self::write_to) does, to a writer of tokio's, without blocking the
    /// thread. The future may be dropped at any time: nothing is lost, and nothing is written
    /// twice.
    ///
    /// # Errors
    ///
    /// As [`write_to`](Self::write_to).
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
    /// let (mut producer, mut consumer) = bufmirror::channel(4096)?;
    /// producer.put(b"to the network").unwrap();
    /// drop(producer);
    /// let mut socket = Vec::new();
    /// while consumer.write_to_async(&mut socket).await? > 0 {} // 0 at the end of the stream
    /// assert_eq!(socket, b"to the network");
    /// # Ok::<(), std::io::Error>(())
    /// # })?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub async fn write_to_async(&mut self, writer: &mut (impl AsyncWrite + Unpin)) -> io::Result<usize> {
        poll_fn(|cx| {
            ready!(self.poll_byte_or_end(cx))?;
            let n = ready!(poll_drain(cx, self.bytes_for_a_write(), writer))?;
            self.consume(n);
            Poll::Ready(Ok(n))
        })
        .await
    }
}
