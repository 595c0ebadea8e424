//! The traits of tokio, for the ends of a channel: tasks wait where threads would block. No runtime of tokio's is needed.

use core::pin::Pin;
use core::task::{Context, Poll, ready};
use std::io::{self, IoSlice};

use tokio::io::{AsyncBufRead, AsyncRead, AsyncWrite, ReadBuf};

use crate::channel::io::least_of;
use crate::{Consumer, Producer, WaitError};

/// Waits until there is room for a byte at least. `BrokenPipe` when the consumer is gone, and after a shutdown.
impl AsyncWrite for Producer {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(cx, &[IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_wait(cx, least_of(slices)))?;
        Poll::Ready(Ok(self.put_slices(slices)))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    /// What was written is on its way already.
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    /// [Closes](Producer::close) this end: the consumer reads what is left, and then its end. Does not wait for that.
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

/// Waits as `poll_read` does; lends all that there is at once.
impl AsyncBufRead for Consumer {
    fn poll_fill_buf(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<&[u8]>> {
        let this = self.get_mut();
        ready!(this.poll_byte_or_end(cx))?;
        Poll::Ready(Ok(this.peek()))
    }

    /// # Panics
    ///
    /// When `bytes` is over the length of what there is.
    fn consume(mut self: Pin<&mut Self>, bytes: usize) {
        Self::consume(&mut self, bytes);
    }
}
