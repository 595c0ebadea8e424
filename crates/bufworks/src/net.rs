//! Sockets of tokio: buffers that are taken only when there is something to read.

use core::fmt;
use core::future::poll_fn;
use core::pin::Pin;
use core::task::Poll;
use std::io;

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

/// The reason why [`read_ready`] returns no bytes. No byte that had come is lost: the next call
/// finds it.
///
/// ```
/// use bufworks::net::{ReadError, read_ready};
/// use bufworks::{BufferPool, HeapPool, Reject};
///
/// # tokio::runtime::Builder::new_current_thread().enable_io().build()?.block_on(async {
/// # let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
/// # let mut client = tokio::net::TcpStream::connect(listener.local_addr()?).await?;
/// # let mut socket = listener.accept().await?.0;
/// # tokio::io::AsyncWriteExt::write_all(&mut client, b"hello").await?;
/// let refused = read_ready(&mut socket, || Reject.acquire(4096)).await;
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

/// `OutOfMemory` for a buffer that was refused, `StorageFull` for one without room.
impl From<ReadError> for io::Error {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Acquire(_) => Self::new(io::ErrorKind::OutOfMemory, error),
            ReadError::NoRoom => Self::new(io::ErrorKind::StorageFull, error),
            ReadError::Io(error) => error,
        }
    }
}

/// Reads the bytes that have come into a buffer from `acquire`; returns `None` at the end of the
/// stream.
///
/// `acquire` is called when the stream is readable and not before, so a task that waits for an idle
/// stream holds no buffer.
///
/// The bytes are appended to the buffer, which may have some already. Should there be nothing to
/// read after all, the buffer goes back before it waits again.
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
    loop {
        stream.readable().await?;
        let mut buf = acquire().map_err(ReadError::Acquire)?;
        let mut room = ReadBuf::new(buf.spare_mut());
        if room.remaining() == 0 {
            return Err(ReadError::NoRoom);
        }
        let start = room.filled().as_ptr().addr();
        // Not the `await` of a read: that would keep the buffer while it waits.
        let polled = poll_fn(|cx| Poll::Ready(Pin::new(&mut *stream).poll_read(cx, &mut room))).await;
        let n = room.filled().len();
        // A stream of the user's may have put another buffer in the place of this one: then nothing
        // was read.
        if room.filled().as_ptr().addr() != start {
            let error = io::Error::new(io::ErrorKind::InvalidData, "stream reads into a buffer of its own");
            return Err(ReadError::Io(error));
        }
        match polled {
            Poll::Ready(Ok(())) if n == 0 => return Ok(None),
            Poll::Ready(Ok(())) => {
                buf.commit(n);
                return Ok(Some(buf));
            }
            Poll::Ready(Err(error)) => return Err(ReadError::Io(error)),
            Poll::Pending => drop(buf),
        }
        // The read will wake the task: when there is more, or because the task has had its turn.
        until_woken().await;
    }
}

/// Lets others run until the task is woken.
async fn until_woken() {
    let mut has_waited = false;
    poll_fn(|_| if core::mem::replace(&mut has_waited, true) { Poll::Ready(()) } else { Poll::Pending })
        .await;
}
