//! Bodies that are received.

use core::error::Error;
use core::fmt;
use core::future::poll_fn;
use core::pin::pin;
use core::task::Poll;

use bufcore::{AcquireError, Buf, Lease};
use bytes::Buf as _;
use http_body::Body;

/// Bytes of the first buffer for a body whose length is not announced.
const FIRST_BYTES: usize = 16 << 10;

/// Why [`collect`] returned no bytes. The received bytes are dropped, and their buffer is released.
///
/// ```
/// use bufworks::HeapPool;
/// use bufworks::http::{Body, CollectError, collect};
///
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// let body = Body::from(vec!["a long upload"]);
/// let refused = collect(body, 5, async |bytes| HeapPool::new().acquire(bytes)).await;
/// assert!(matches!(refused, Err(CollectError::TooLarge { limit: 5 })));
/// # });
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum CollectError<E> {
    /// The body has more bytes than the limit.
    TooLarge {
        /// The limit in bytes.
        limit: usize,
    },
    /// The pool could not serve a buffer.
    Acquire(AcquireError),
    /// The body failed, for example because the client closed the connection.
    Body(E),
}

impl<E> CollectError<E> {
    /// Returns the status of the response: 413 (Content Too Large) if the body is over the limit or
    /// over what the pool can ever serve, 503 (Service Unavailable) if the pool failed, and 400
    /// (Bad Request) if the body failed.
    ///
    /// ```
    /// use bufworks::AcquireError;
    /// use bufworks::http::CollectError;
    ///
    /// let busy = AcquireError::Exhausted { requested: 1 << 20, available: 0 };
    /// assert_eq!(CollectError::<()>::Acquire(busy).status_code(), 503);
    /// assert_eq!(CollectError::<()>::TooLarge { limit: 8 << 20 }.status_code(), 413);
    /// ```
    pub fn status_code(&self) -> u16 {
        match self {
            Self::TooLarge { .. } | Self::Acquire(AcquireError::TooLarge { .. }) => 413,
            Self::Acquire(_) => 503,
            Self::Body(_) => 400,
        }
    }
}

impl<E: fmt::Display> fmt::Display for CollectError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLarge { limit } => write!(f, "the body is over the limit of {limit} bytes"),
            Self::Acquire(_) => write!(f, "no buffer for the body"),
            Self::Body(error) => error.fmt(f),
        }
    }
}

impl<E: Error + 'static> Error for CollectError<E> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::TooLarge { .. } => None,
            Self::Acquire(error) => Some(error),
            // It prints as itself.
            Self::Body(error) => error.source(),
        }
    }
}

/// Collects a body of up to `limit` bytes into one buffer.
///
/// `acquire` is called with a number of bytes when the first bytes of the body have arrived; for a
/// body without bytes, at its end with 0. The buffer that it returns is cleared. Its future may
/// wait, as `acquire_async` of a bounded pool does. During that wait no buffer is held, and the
/// body is not read. To fail at once, use `async |bytes| pool.acquire(bytes)`; to wait for a
/// limited time, wrap it in a timeout.
///
/// A body whose length is announced gets a buffer of this length. Others start with 16 KiB, and
/// move to a buffer of twice the size when it is full. The request for the larger buffer does not
/// wait: the task holds the smaller one, and such tasks could deadlock. If the pool cannot serve it
/// at once, or others wait, the body fails with [`CollectError::Acquire`] (503): under load nearly
/// every one, and always if both buffers exceed the budget. To wait as for an announced length, let
/// `acquire` always return a buffer of `limit` bytes.
///
/// Cost: one copy of the bytes, out of the server's read buffer; about two if the length is not
/// announced.
///
/// # Errors
///
/// [`CollectError`]. A body with an announced length over the limit is not read.
///
/// # Cancel safety
///
/// Dropping the future drops the body and its received bytes, and releases the memory.
///
/// ```
/// # #[cfg(feature = "shard")] {
/// use bufworks::http::{Body, CollectError, collect};
/// use bufworks::shard::ShardPool;
///
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// let pool = ShardPool::builder().max_bytes(32 << 20).build()?;
/// # let request = || Body::from(vec!["an up", "load"]);
/// let upload = collect(request(), 8 << 20, |bytes| pool.acquire_async(bytes)).await?;
/// assert_eq!(upload, *b"an upload");
///
/// let refused = collect(request(), 8, |bytes| pool.acquire_async(bytes)).await;
/// assert_eq!(refused.unwrap_err().status_code(), 413);
///
/// let held = pool.acquire(31 << 20)?;
/// let refused = collect(request(), 8 << 20, async |_| pool.acquire(2 << 20)).await;
/// assert_eq!(refused.unwrap_err().status_code(), 503);
/// # Ok::<(), Box<dyn std::error::Error>>(()) })?;
/// # }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub async fn collect<B, L, A, F>(
    body: B,
    limit: usize,
    mut acquire: A,
) -> Result<Buf<L>, CollectError<B::Error>>
where
    B: Body,
    L: Lease,
    A: FnMut(usize) -> F,
    F: Future<Output = Result<Buf<L>, AcquireError>>,
{
    let announced = body.size_hint();
    if announced.lower() > limit as u64 {
        return Err(CollectError::TooLarge { limit });
    }
    // Not over the limit, so a `usize` holds it.
    let first = announced.exact().map_or(FIRST_BYTES.min(limit), |bytes| bytes as usize);
    let mut body = pin!(body);
    let mut collected: Option<Buf<L>> = None;
    while let Some(frame) = poll_fn(|cx| body.as_mut().poll_frame(cx)).await {
        // Trailers are left out.
        let Ok(mut data) = frame.map_err(CollectError::Body)?.into_data() else { continue };
        let len = collected.as_deref().map_or(0, <[u8]>::len);
        let needed = len.saturating_add(data.remaining());
        if needed > limit {
            return Err(CollectError::TooLarge { limit });
        }
        let mut buf = match collected.take() {
            None if needed == 0 => continue,
            None => emptied(acquire(needed.max(first)).await)?,
            Some(buf) if buf.spare_capacity() >= data.remaining() => buf,
            Some(full) => {
                let bytes = needed.max(len.saturating_mul(2)).min(limit);
                let mut buf = emptied(without_waiting(acquire(bytes), bytes).await)?;
                append(&mut buf, &full)?;
                buf
            }
        };
        while data.has_remaining() {
            let chunk = data.chunk();
            append(&mut buf, chunk)?;
            let n = chunk.len();
            data.advance(n);
        }
        collected = Some(buf);
    }
    match collected {
        Some(buf) => Ok(buf),
        None => emptied(acquire(0).await),
    }
}

/// Clears what was acquired.
fn emptied<L: Lease, E>(acquired: Result<Buf<L>, AcquireError>) -> Result<Buf<L>, CollectError<E>> {
    let mut buf = acquired.map_err(CollectError::Acquire)?;
    buf.clear();
    Ok(buf)
}

/// Appends to a buffer that was asked for with enough room.
fn append<L: Lease, E>(buf: &mut Buf<L>, bytes: &[u8]) -> Result<(), CollectError<E>> {
    buf.extend_from_slice(bytes).map_err(|full| {
        let (requested, available) = (full.requested, full.available);
        CollectError::Acquire(AcquireError::Exhausted { requested, available })
    })
}

/// Polls a request for memory twice at most: the first time it may only have let other tasks run.
async fn without_waiting<T>(
    acquiring: impl Future<Output = Result<T, AcquireError>>,
    requested: usize,
) -> Result<T, AcquireError> {
    let mut acquiring = pin!(acquiring);
    let mut was_pending = false;
    poll_fn(|cx| match acquiring.as_mut().poll(cx) {
        Poll::Pending if was_pending => Poll::Ready(Err(AcquireError::Exhausted { requested, available: 0 })),
        Poll::Pending => {
            was_pending = true;
            cx.waker().wake_by_ref();
            Poll::Pending
        }
        ready => ready,
    })
    .await
}
