//! Bodies that are sent.

use alloc::boxed::Box;
use alloc::vec::{self, Vec};
use core::fmt;
use core::pin::Pin;
use core::task::{Context, Poll};
use std::io;

use bufcore::{Buf, Frozen, Lease, SharedBytes};
use bytes::Bytes;
use futures_core::Stream;
use http_body::{Frame, SizeHint};

/// An HTTP body of buffers or views: one, several, or a stream of them.
///
/// Each part is released when the server has written it, or drops the body.
///
/// Its `Data` is `Bytes`, as axum and tonic demand. Cost: that of
/// [`into_bytes`](Buf::into_bytes) for each part; a stream is boxed once.
///
/// ```
/// use bufworks::HeapPool;
/// use bufworks::http::Body;
/// use http_body::Body as _;
///
/// let mut buf = HeapPool::new().acquire(16)?;
/// buf.extend_from_slice(b"header body")?;
/// let mut body = buf.freeze();
/// let header = body.split_to(7);
/// // `Response::new(body)` with hyper; `axum::body::Body::new(body)` with axum.
/// let body = Body::from(vec![body, header]);
/// assert_eq!(body.size_hint().exact(), Some(11));
/// # Ok::<(), bufworks::Error>(())
/// ```
pub struct Body(Source);

enum Source {
    Parts(vec::IntoIter<Bytes>),
    Stream(Pin<Box<dyn Parts>>),
}

/// A stream whose types are erased.
trait Parts: Send {
    fn poll_part(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, io::Error>>>;
}

impl<S, V, E> Parts for S
where
    S: Stream<Item = Result<V, E>> + Send,
    V: Into<Bytes>,
    E: Into<io::Error>,
{
    fn poll_part(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, io::Error>>> {
        self.poll_next(cx).map(|part| Some(part?.map(Into::into).map_err(Into::into)))
    }
}

impl Body {
    /// Makes a body of the buffers or views of a stream, such as the chunks of a file. A server
    /// takes the next one when its write buffer (hyper's has `max_buf_size` bytes) has room. A
    /// stream that acquires larger chunks when it is polled therefore holds one or two for each
    /// client.
    ///
    /// The length is not known: HTTP/1 sends chunks, unless the response has a `Content-Length`.
    ///
    /// An error of the stream ends the connection, since the status was sent already.
    ///
    /// ```
    /// use std::collections::VecDeque;
    /// use std::pin::Pin;
    /// use std::task::{Context, Poll};
    ///
    /// use bufworks::http::{Body, collect};
    /// use bufworks::{AcquireError, HeapPool, HeapView};
    /// use futures_core::Stream;
    ///
    /// /// The rows of a table, as lines.
    /// struct Lines(VecDeque<u32>);
    ///
    /// impl Stream for Lines {
    ///     type Item = Result<HeapView, AcquireError>;
    ///     fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
    ///         Poll::Ready(self.0.pop_front().map(|row| {
    ///             let mut line = HeapPool::new().acquire(12)?;
    ///             writeln!(line, "{row}").expect("it has at most ten digits");
    ///             Ok(line.freeze())
    ///         }))
    ///     }
    /// }
    ///
    /// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
    /// let body = Body::from_stream(Lines([1, 20, 300].into()));
    /// let all = collect(body, 100, async |bytes| HeapPool::new().acquire(bytes)).await?;
    /// assert_eq!(all, *b"1\n20\n300\n");
    /// # Ok::<(), Box<dyn std::error::Error>>(()) })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn from_stream<S, V, E>(stream: S) -> Self
    where
        S: Stream<Item = Result<V, E>> + Send + 'static,
        V: Into<Bytes>,
        E: Into<io::Error>,
    {
        Self(Source::Stream(Box::pin(stream)))
    }
}

/// Makes a body without bytes.
impl Default for Body {
    fn default() -> Self {
        Vec::<Bytes>::new().into()
    }
}

/// Several buffers or views, one after the other.
impl<V: Into<Bytes>> From<Vec<V>> for Body {
    fn from(parts: Vec<V>) -> Self {
        let parts = parts.into_iter().map(Into::into).filter(|part| !part.is_empty());
        Self(Source::Parts(parts.collect::<Vec<_>>().into_iter()))
    }
}

impl<L: Lease> From<Buf<L>> for Body {
    fn from(buf: Buf<L>) -> Self {
        alloc::vec![buf].into()
    }
}

impl<L: Lease> From<Frozen<L>> for Body {
    fn from(view: Frozen<L>) -> Self {
        alloc::vec![view].into()
    }
}

impl From<SharedBytes> for Body {
    fn from(bytes: SharedBytes) -> Self {
        alloc::vec![bytes].into()
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        match &mut self.0 {
            Source::Parts(parts) => Poll::Ready(parts.next().map(|part| Ok(Frame::data(part)))),
            Source::Stream(stream) => stream.as_mut().poll_part(cx).map(|part| Some(part?.map(Frame::data))),
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(&self.0, Source::Parts(parts) if parts.as_slice().is_empty())
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Source::Parts(parts) => {
                SizeHint::with_exact(parts.as_slice().iter().map(|part| part.len() as u64).sum())
            }
            Source::Stream(_) => SizeHint::default(),
        }
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let length = http_body::Body::size_hint(self).exact();
        f.debug_struct("Body").field("length", &length).finish_non_exhaustive()
    }
}
