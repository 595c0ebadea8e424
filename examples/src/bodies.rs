//! An HTTP body out of a pool: what `hyper` and `axum` send, without a copy and without a `Vec` for each chunk.

use core::pin::Pin;
use core::task::{Context, Poll};
use std::io;

use bufcore::{Buf, Frozen};
use bufshard::{ShardLease, ShardPool};
use http_body::{Body, Frame, SizeHint};
use tokio::io::{AsyncRead, ReadBuf};

/// Streams a reader, such as a file, in chunks of a pool.
///
/// A chunk's memory goes back when the server has written it, and the next chunk is the same memory again. While the reader waits, the
/// body holds one chunk.
#[derive(Debug)]
pub struct PooledBody<R> {
    reader: R,
    pool: ShardPool,
    chunk_bytes: usize,
    chunk: Option<Buf<ShardLease>>,
    /// Bytes that are left of the length that was promised.
    left: u64,
}

impl<R> PooledBody<R> {
    /// Makes a body of the next `length` bytes of `reader`.
    pub fn new(reader: R, length: u64, pool: ShardPool, chunk_bytes: usize) -> Self {
        Self { reader, pool, chunk_bytes, chunk: None, left: length }
    }
}

impl<R: AsyncRead + Unpin> Body for PooledBody<R> {
    /// A view, which is `bytes::Buf`.
    type Data = Frozen<ShardLease>;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Self::Data>>>> {
        if self.left == 0 {
            return Poll::Ready(None);
        }
        let body = &mut *self;
        let mut chunk = match body.chunk.take() {
            Some(chunk) => chunk,
            None => body.pool.acquire(body.chunk_bytes).map_err(io::Error::other)?,
        };
        let most = usize::try_from(body.left).unwrap_or(usize::MAX).min(chunk.spare_capacity());
        let mut room = ReadBuf::new(&mut chunk.spare_mut()[..most]);
        let polled = Pin::new(&mut body.reader).poll_read(cx, &mut room);
        let n = room.filled().len();
        match polled {
            Poll::Ready(read) => read?,
            Poll::Pending => {
                body.chunk = Some(chunk);
                return Poll::Pending;
            }
        }
        if n == 0 {
            return Poll::Ready(Some(Err(io::ErrorKind::UnexpectedEof.into())));
        }
        chunk.commit(n);
        body.left -= n as u64;
        Poll::Ready(Some(Ok(Frame::data(chunk.freeze()))))
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}
