//! Sockets of tokio: buffers that are taken only when there is something to read.

use core::fmt;
use core::future::poll_fn;
use core::pin::Pin;
use core::task::{Context, Poll, ready};
use std::io;

use bufcore::author::count_filled;
use bufcore::{AcquireError, Buf, Lease};
use tokio::io::{AsyncRead, ReadBuf};

/// A stream that can be asked whether it is readable, without being read: the sockets of tokio and
/// their reading halves.
///
/// A wrapper implements it by asking the stream that it wraps, if it keeps no bytes of its own
/// back.
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
    /// Waits until a read would not have to wait: there are bytes, or the end, or an error.
    ///
    /// It may return too early, as tokio does for sockets that were just accepted; then the read
    /// waits.
    ///
    /// # Errors
    ///
    /// The runtime's error when it can watch the stream no longer.
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

/// The reason why [`read_ready`], [`read_ready_waiting`] or [`read_exact_waiting`] returns no
/// bytes.
///
/// The first two lose no byte that had come: the next call finds it. [`read_exact_waiting`] says
/// which errors lose bytes.
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
    /// No buffer could be had. The stream is readable, and its bytes wait in the system.
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

/// The kind of the [`AcquireError`] for a buffer that was refused, `StorageFull` for one without
/// room.
impl From<ReadError> for io::Error {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Acquire(refused) => Self::new(Self::from(refused).kind(), error),
            ReadError::NoRoom => Self::new(io::ErrorKind::StorageFull, error),
            ReadError::Io(error) => error,
        }
    }
}

/// Reads the bytes that have come into a buffer from `acquire`; returns `None` at the end of the
/// stream.
///
/// `acquire` is called when the runtime says that the stream is readable and not before, so a task
/// that waits for an idle stream holds no buffer. It says so once too often after a read that took
/// all there was and no more, such as that of a header: then `acquire` is called twice.
///
/// The bytes are appended to the buffer, which may have some already. Should there be nothing to
/// read after all, the buffer goes back before it waits again. At the end it goes back, too. So a
/// program that wakes tasks of its own when a buffer is dropped misses these; tasks that share a
/// bounded pool wait for it with [`read_ready_waiting`].
///
/// Cost: one system call for a read that does not fill its buffer, where the runtime is told of
/// changes only (Linux, macOS, the BSDs). No copy.
///
/// # Errors
///
/// [`ReadError`] when `acquire` fails, when its buffer is full already, or when the stream fails. A
/// stream that reads into another buffer than the one that it is lent is broken and gets
/// `InvalidData`.
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

/// Reads the bytes that have come, as [`read_ready`] does, into a buffer that it waits for; returns
/// `None` at the end of the stream.
///
/// `acquire` is called when the stream is readable. Its future may take as long as it likes, as
/// `acquire_async` of a bounded pool does. Meanwhile nothing is held, and the bytes wait in the
/// system, which makes their sender wait when its window is full. So a server under a budget serves
/// its clients in turn, where it would refuse some of them otherwise.
///
/// # Which buffer first
///
/// A task that holds one buffer while it waits for another one can wait for ever: for itself, or
/// for others that do the same. A server keeps out of that by one of these rules:
///
/// - It holds no buffer of the pool while it waits for one. A header of some bytes is read into an
///   array, or kept in a buffer of another pool.
/// - It takes one buffer for all that it needs, and splits it; or several in one request, with
///   `acquire_each_async` of the sharded pool.
/// - It takes the largest buffer first. The smaller ones come from a pool of their own, or from
///   `acquire`, which does not wait: a pool refuses what it would have to allocate while others do.
///
/// # Errors
///
/// As [`read_ready`].
///
/// # Cancel safety
///
/// Dropping the future loses no byte, and gives the request up.
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
/// A slot pool or a ring refuses and cannot be waited for. [`read_ready`] returns its refusal.
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

/// Reads the next `len` bytes of the stream into one buffer that it waits for, such as a frame
/// whose length is known.
///
/// `acquire` is called when the stream is readable, as by [`read_ready_waiting`], whose
/// rules about the order of requests hold here too. The buffer is held until the last of them has
/// come, so a server under a budget
/// sets a deadline. `len` bytes
/// are appended, and no more are read.
///
/// # Errors
///
/// As [`read_ready`]; [`ReadError::NoRoom`] also for a buffer with less room than `len`, of which
/// none is read then. [`ReadError::Io`] of kind `UnexpectedEof` when the stream ends in between.
/// Each [`ReadError::Io`] loses the bytes that were read before it.
///
/// # Cancel safety
///
/// Dropping the future while it waits for the first bytes, or for the buffer, loses no byte. Later
/// the bytes that were read are lost.
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
