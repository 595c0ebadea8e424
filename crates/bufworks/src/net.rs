//! tokio sockets: buffers are acquired only when there are bytes to read.

use core::fmt;
use core::future::poll_fn;
use core::pin::Pin;
use core::task::{Context, Poll, ready};
use std::io;

use bufcore::author::count_filled;
use bufcore::{AcquireError, Buf, Lease};
use tokio::io::{AsyncRead, ReadBuf};

/// A stream whose readiness can be queried without reading: tokio's sockets and their read halves.
///
/// A wrapper implements it by querying the stream that it wraps, if it buffers no bytes itself.
///
/// ```
/// use std::io;
/// use std::pin::Pin;
/// use std::task::{Context, Poll};
/// use bufworks::net::ReadReady;
/// use tokio::io::{AsyncRead, ReadBuf};
///
/// /// Counts the bytes that come in.
/// struct Counted<S> {
///     inner: S,
///     bytes: usize,
/// }
///
/// impl<S: AsyncRead + Unpin> AsyncRead for Counted<S> {
///     fn poll_read(
///         mut self: Pin<&mut Self>,
///         cx: &mut Context<'_>,
///         buf: &mut ReadBuf<'_>,
///     ) -> Poll<io::Result<()>> {
///         let before = buf.filled().len();
///         let polled = Pin::new(&mut self.inner).poll_read(cx, buf);
///         self.bytes += buf.filled().len() - before;
///         polled
///     }
/// }
///
/// impl<S: ReadReady + Sync> ReadReady for Counted<S> {
///     async fn readable(&self) -> io::Result<()> {
///         self.inner.readable().await
///     }
/// }
/// #
/// # tokio::runtime::Builder::new_current_thread().enable_io().build()?.block_on(async {
/// # use bufworks::{BufferPool, HeapPool};
/// # let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
/// # let mut client = tokio::net::TcpStream::connect(listener.local_addr()?).await?;
/// # let inner = listener.accept().await?.0;
/// # let mut pool = HeapPool::new();
/// # tokio::io::AsyncWriteExt::write_all(&mut client, b"hello").await?;
///
/// let mut stream = Counted { inner, bytes: 0 };
/// let buf = bufworks::net::read_ready(&mut stream, || pool.acquire(4096)).await?;
/// assert_eq!(stream.bytes, buf.map_or(0, |buf| buf.len()));
/// # assert_eq!(stream.bytes, 5);
/// # io::Result::Ok(()) })?;
/// # Ok::<(), io::Error>(())
/// ```
pub trait ReadReady: AsyncRead + Unpin {
    /// Waits until a read would not wait: there are bytes, or the end, or an error.
    ///
    /// It may return too early, as tokio does for newly accepted sockets; the read then waits.
    ///
    /// # Errors
    ///
    /// The runtime's error if it can no longer watch the stream.
    ///
    /// ```
    /// use bufworks::net::ReadReady;
    ///
    /// # tokio::runtime::Builder::new_current_thread().enable_io().build()?.block_on(async {
    /// # let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    /// # let mut client = tokio::net::TcpStream::connect(listener.local_addr()?).await?;
    /// # let mut socket = listener.accept().await?.0;
    /// # tokio::io::AsyncWriteExt::write_all(&mut client, b"hello").await?;
    /// ReadReady::readable(&socket).await?;
    /// let mut room = [0; 16]; // taken when there are bytes for it, and not before
    /// assert_eq!(tokio::io::AsyncReadExt::read(&mut socket, &mut room).await?, 5);
    /// # std::io::Result::Ok(()) })?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    fn readable(&self) -> impl Future<Output = io::Result<()>> + Send;
}

macro_rules! sockets {
    ($($type:ty),+) => {
        $(impl ReadReady for $type {
            #[inline]
            async fn readable(&self) -> io::Result<()> {
                // The type's own, which is found before the trait's.
                self.readable().await
            }
        })+
    };
}

sockets!(tokio::net::TcpStream, tokio::net::tcp::ReadHalf<'_>, tokio::net::tcp::OwnedReadHalf);
#[cfg(unix)]
sockets!(tokio::net::UnixStream, tokio::net::unix::ReadHalf<'_>, tokio::net::unix::OwnedReadHalf);

/// Why [`read_ready`], [`read_ready_waiting`] or [`read_exact_waiting`] returned no bytes.
///
/// The first two lose no bytes: the next call returns them. [`read_exact_waiting`] describes which
/// errors lose bytes.
///
/// ```
/// use bufworks::net::{ReadError, read_ready};
/// use bufworks::{BufferPool, HeapPool, NoFallback};
///
/// # tokio::runtime::Builder::new_current_thread().enable_io().build()?.block_on(async {
/// # let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
/// # let mut client = tokio::net::TcpStream::connect(listener.local_addr()?).await?;
/// # let mut socket = listener.accept().await?.0;
/// # tokio::io::AsyncWriteExt::write_all(&mut client, b"hello").await?;
/// let refused = read_ready(&mut socket, || NoFallback.acquire(4096)).await;
/// assert!(matches!(refused, Err(ReadError::Acquire(_)))); // a pool that has nothing to give
/// let later = read_ready(&mut socket, || HeapPool::new().acquire(4096)).await?;
/// assert_eq!(&later.unwrap()[..], b"hello");
/// # std::io::Result::Ok(()) })?;
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum ReadError {
    /// No buffer could be acquired. The stream is readable, and its bytes stay in the socket.
    Acquire(AcquireError),
    /// The buffer that was acquired has no room for a byte.
    NoRoom,
    /// The stream has failed.
    Io(io::Error),
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Acquire(_) => write!(f, "no buffer to read into"),
            Self::NoRoom => write!(f, "the buffer to read into has no room"),
            Self::Io(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for ReadError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Self::Acquire(error) => Some(error),
            Self::NoRoom => None,
            // It prints as itself.
            Self::Io(error) => error.source(),
        }
    }
}

impl From<io::Error> for ReadError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// The kind of the [`AcquireError`] for a failed acquire, `StorageFull` for a buffer without room.
impl From<ReadError> for io::Error {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Acquire(refused) => Self::new(Self::from(refused).kind(), error),
            ReadError::NoRoom => Self::new(io::ErrorKind::StorageFull, error),
            ReadError::Io(error) => error,
        }
    }
}

/// Reads the available bytes into a buffer from `acquire`; returns `None` at the end of the stream.
///
/// `acquire` is called when the runtime reports that the stream is readable, so a task that waits
/// for an idle stream holds no buffer. The runtime reports this once too often after a read that
/// took exactly the available bytes, such as that of a header: `acquire` is then called twice.
///
/// The bytes are appended to the buffer, which need not be empty. If there is nothing to read after
/// all, the buffer is released before the next wait. At the end of the stream it is released too. A
/// program that wakes its own tasks when a buffer is dropped misses these releases; tasks that
/// share a bounded pool should use [`read_ready_waiting`].
///
/// Cost: one system call for a read that does not fill its buffer, if the runtime uses
/// edge-triggered readiness (Linux, macOS, the BSDs). No copy.
///
/// # Errors
///
/// [`ReadError`] if `acquire` fails, if its buffer is already full, or if the stream fails. A
/// stream that reads into another buffer than the given one is broken and gets `InvalidData`.
///
/// # Cancel safety
///
/// Dropping the future loses no byte: it never waits between reading and returning.
///
/// ```
/// use bufworks::net::read_ready;
/// # use bufworks::{BufferPool, HeapPool};
/// # use tokio::io::AsyncWriteExt;
///
/// # tokio::runtime::Builder::new_current_thread().enable_io().build()?.block_on(async {
/// # let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
/// # let mut client = tokio::net::TcpStream::connect(listener.local_addr()?).await?;
/// # let mut socket = listener.accept().await?.0;
/// # let mut pool = HeapPool::new();
/// client.write_all(b"hello").await?;
/// client.shutdown().await?;
/// while let Some(buf) = read_ready(&mut socket, || pool.acquire(4096)).await? {
///     assert_eq!(&buf[..], b"hello");
/// }
/// # std::io::Result::Ok(()) })?;
/// # Ok::<(), std::io::Error>(())
/// ```
pub async fn read_ready<S, L, A>(stream: &mut S, mut acquire: A) -> Result<Option<Buf<L>>, ReadError>
where
    S: ReadReady,
    L: Lease,
    A: FnMut() -> Result<Buf<L>, AcquireError>,
{
    read_ready_waiting(stream, || core::future::ready(acquire())).await
}

/// Reads the available bytes, as [`read_ready`] does, into a buffer for which it waits; returns
/// `None` at the end of the stream.
///
/// `acquire` is called when the stream is readable. Its future may wait for any time, as
/// `acquire_async` of a bounded pool does. During the wait no buffer is held, and the bytes stay in
/// the socket, which blocks their sender when its window is full. A server under a budget thus
/// serves its clients in turn, instead of rejecting some of them.
///
/// # Which buffer first
///
/// A task that holds one buffer while it waits for another one can deadlock: on itself, or with
/// others that do the same. A server avoids that by one of these rules:
///
/// - It holds no buffer of the pool while it waits for one. It reads a header of a few bytes into
///   an array, or into a buffer of another pool.
/// - It acquires one buffer for everything, and splits it; or several in one request, with
///   `acquire_each_async` of the sharded pool.
/// - It acquires the largest buffer first. The smaller ones are from a separate pool, or from
///   `acquire`, which never waits: it fails if it would have to allocate while other requests wait.
///
/// # Errors
///
/// As [`read_ready`].
///
/// # Cancel safety
///
/// Dropping the future loses no byte, and cancels the request.
///
/// ```
/// # #[cfg(feature = "shard")] {
/// use bufworks::net::read_ready_waiting;
/// use bufworks::shard::ShardPool;
/// # use tokio::io::AsyncWriteExt;
///
/// # tokio::runtime::Builder::new_current_thread().enable_io().build()?.block_on(async {
/// # let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
/// # let mut client = tokio::net::TcpStream::connect(listener.local_addr()?).await?;
/// # let mut socket = listener.accept().await?.0;
/// # client.write_all(b"hello").await?;
/// # client.shutdown().await?;
/// let pool = ShardPool::builder().max_bytes(32 << 20).build().expect("settings are right");
/// while let Some(buf) = read_ready_waiting(&mut socket, || pool.acquire_async(4096)).await? {
///     assert_eq!(buf, *b"hello");
/// }
/// # std::io::Result::Ok(()) })?;
/// # }
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// A slot pool or a ring returns an error, and does not support waiting. [`read_ready`] returns its
/// error.
pub async fn read_ready_waiting<S, L, A, F>(
    stream: &mut S,
    mut acquire: A,
) -> Result<Option<Buf<L>>, ReadError>
where
    S: ReadReady,
    L: Lease,
    A: FnMut() -> F,
    F: Future<Output = Result<Buf<L>, AcquireError>>,
{
    loop {
        stream.readable().await?;
        let buf = acquire().await.map_err(ReadError::Acquire)?;
        match read_once(stream, buf, usize::MAX).await? {
            Once::Read(buf) => return Ok(Some(buf)),
            Once::End => return Ok(None),
            Once::NotYet => until_woken().await,
        }
    }
}

/// Reads the next `len` bytes of the stream into one buffer for which it waits, such as a frame of
/// known length.
///
/// `acquire` is called when the stream is readable, as by [`read_ready_waiting`], whose rules about
/// the order of requests apply here too. The buffer is held until the last byte has arrived, so a
/// server under a budget needs a deadline. `len` bytes are appended, and no more are read.
///
/// # Errors
///
/// As [`read_ready`]; [`ReadError::NoRoom`] also for a buffer with less room than `len`, in which
/// case nothing is read. [`ReadError::Io`] of kind `UnexpectedEof` if the stream ends early. Each
/// [`ReadError::Io`] loses the bytes that were read before it.
///
/// # Cancel safety
///
/// Dropping the future while it waits for the first bytes, or for the buffer, loses no byte.
/// Dropping it later loses the bytes that were read.
///
/// ```
/// # #[cfg(feature = "shard")] {
/// use bufworks::net::read_exact_waiting;
/// use bufworks::shard::ShardPool;
/// use tokio::io::AsyncReadExt;
/// # use tokio::io::AsyncWriteExt;
///
/// # tokio::runtime::Builder::new_current_thread().enable_io().build()?.block_on(async {
/// # let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
/// # let mut client = tokio::net::TcpStream::connect(listener.local_addr()?).await?;
/// # let mut socket = listener.accept().await?.0;
/// # client.write_all(b"\0\x05hello").await?;
/// let pool = ShardPool::builder().max_bytes(32 << 20).build().expect("settings are right");
/// // The length is on the stack, so the task holds nothing while it waits.
/// let len = usize::from(socket.read_u16().await?);
/// let frame = read_exact_waiting(&mut socket, len, || pool.acquire_async(len)).await?;
/// assert_eq!(frame, *b"hello");
/// # std::io::Result::Ok(()) })?;
/// # }
/// # Ok::<(), std::io::Error>(())
/// ```
pub async fn read_exact_waiting<S, L, A, F>(
    stream: &mut S,
    len: usize,
    mut acquire: A,
) -> Result<Buf<L>, ReadError>
where
    S: ReadReady,
    L: Lease,
    A: FnMut() -> F,
    F: Future<Output = Result<Buf<L>, AcquireError>>,
{
    let mut left = len;
    let mut buf = loop {
        if left > 0 {
            stream.readable().await?;
        }
        let buf = acquire().await.map_err(ReadError::Acquire)?;
        if buf.spare_capacity() < left {
            return Err(ReadError::NoRoom);
        }
        if left == 0 {
            return Ok(buf);
        }
        let before = buf.len();
        match read_once(stream, buf, left).await? {
            Once::Read(buf) => {
                left -= buf.len() - before;
                break buf;
            }
            Once::End => return Err(ended()),
            Once::NotYet => until_woken().await,
        }
    };
    while left > 0 {
        match poll_fn(|cx| poll_into(stream, cx, &mut buf, left)).await? {
            0 => return Err(ended()),
            n => left -= n,
        }
    }
    Ok(buf)
}

/// Makes the error of a stream that ends in a frame.
fn ended() -> ReadError {
    ReadError::Io(io::ErrorKind::UnexpectedEof.into())
}

/// What came of one read.
enum Once<L: Lease> {
    Read(Buf<L>),
    End,
    /// The buffer was given back. The read will wake the task: when there is more, or because the
    /// task has had its turn.
    NotYet,
}

/// Reads up to `limit` bytes once, without waiting.
async fn read_once<S: ReadReady, L: Lease>(
    stream: &mut S,
    mut buf: Buf<L>,
    limit: usize,
) -> Result<Once<L>, ReadError> {
    // Not the `await` of a read: that would keep the buffer while it waits.
    match poll_fn(|cx| Poll::Ready(poll_into(stream, cx, &mut buf, limit))).await {
        Poll::Ready(Ok(0)) => Ok(Once::End),
        Poll::Ready(Ok(_)) => Ok(Once::Read(buf)),
        Poll::Ready(Err(error)) => Err(error),
        Poll::Pending => Ok(Once::NotYet),
    }
}

/// Reads up to `limit` bytes, and appends them to the buffer.
fn poll_into<S: ReadReady, L: Lease>(
    stream: &mut S,
    cx: &mut Context<'_>,
    buf: &mut Buf<L>,
    limit: usize,
) -> Poll<Result<usize, ReadError>> {
    let spare = buf.spare_mut();
    let len = spare.len().min(limit);
    if len == 0 {
        return Poll::Ready(Err(ReadError::NoRoom));
    }
    let n = ready!(poll_read(stream, cx, &mut spare[..len]))?;
    buf.commit(n);
    Poll::Ready(Ok(n))
}

/// Reads into `room`; returns how many bytes came.
pub(crate) fn poll_read<S: AsyncRead + Unpin>(
    stream: &mut S,
    cx: &mut Context<'_>,
    room: &mut [u8],
) -> Poll<io::Result<usize>> {
    let place = room.as_ptr_range();
    let mut into = ReadBuf::new(room);
    ready!(Pin::new(stream).poll_read(cx, &mut into))?;
    Poll::Ready(count_filled(&place, into.filled()))
}

/// Lets others run until the task is woken.
pub(crate) async fn until_woken() {
    let mut has_waited = false;
    poll_fn(|_| if core::mem::replace(&mut has_waited, true) { Poll::Ready(()) } else { Poll::Pending })
        .await;
}
