//! The errors of a driver. An error of the file itself comes with the buffer, in
//! [`Completion`](crate::Completion).

use core::fmt;
use std::io;

use bufcore::{AcquireError, Lease};

use crate::Operation;

/// Says that a driver could not wait, and returns the operation.
///
/// The operation is still in flight, and has its buffer. It can be waited for again.
///
/// ```
/// use bufcore::Lease;
/// use bufuring::{Completion, Driver, Operation};
///
/// /// Waits, once more if the first wait fails.
/// fn wait<L: Lease>(driver: &Driver, operation: Operation<L>) -> std::io::Result<Completion<L>> {
///     driver.wait(operation).or_else(|refused| Ok(driver.wait(refused.operation)?))
/// }
/// ```
pub struct WaitError<L: Lease> {
    /// The call that failed: `io_uring_enter`.
    pub error: io::Error,
    /// What was waited for.
    pub operation: Operation<L>,
}

impl<L: Lease> fmt::Debug for WaitError<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WaitError").field("error", &self.error).finish_non_exhaustive()
    }
}

impl<L: Lease> fmt::Display for WaitError<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the operation cannot be waited for")
    }
}

impl<L: Lease> core::error::Error for WaitError<L> {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        Some(&self.error)
    }
}

impl<L: Lease> From<WaitError<L>> for io::Error {
    /// Drops the operation, which is cancelled.
    fn from(refused: WaitError<L>) -> Self {
        refused.error
    }
}

/// Says that a write has written fewer bytes than its buffer has.
///
/// It is in the error of [`Completion::into_result`](crate::Completion::into_result), whose kind is
/// [`WriteZero`](io::ErrorKind::WriteZero).
///
/// ```
/// use std::os::unix::net::UnixStream;
///
/// use bufcore::HeapPool;
/// use bufuring::{Descriptor, Driver, ShortWrite};
///
/// let driver = Driver::builder().build();
/// let (_near, far) = UnixStream::pair()?;
/// far.set_nonblocking(true)?;
/// let mut buf = HeapPool::new().acquire(4 << 20)?;
/// buf.resize(4 << 20, 0)?; // more than the socket takes at once
/// let done = driver.wait(driver.write(&Descriptor::new(far), buf))?;
/// let error = done.into_result().expect_err("it is not all written");
/// let short = error.get_ref().and_then(|error| error.downcast_ref::<ShortWrite>());
/// assert!(short.is_some_and(|short| short.written < short.len));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ShortWrite {
    /// How many bytes were written.
    pub written: usize,
    /// How many the buffer has.
    pub len: usize,
}

impl fmt::Display for ShortWrite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} bytes were written", self.written, self.len)
    }
}

impl core::error::Error for ShortWrite {}

impl From<ShortWrite> for io::Error {
    fn from(short: ShortWrite) -> Self {
        Self::new(io::ErrorKind::WriteZero, short)
    }
}

/// Says why a receiver has no bytes.
///
/// ```
/// use bufuring::ReceiveError;
///
/// /// Whether to ask again when buffers were released.
/// fn is_for_later(error: &ReceiveError) -> bool {
///     matches!(error, ReceiveError::Acquire(_))
/// }
/// # assert!(!is_for_later(&ReceiveError::Io(std::io::ErrorKind::Other.into())));
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum ReceiveError {
    /// The pool had no buffer, or other receivers of the group have all that the budget allows.
    /// Receiving can go on once buffers were released.
    Acquire(AcquireError),
    /// The call failed.
    Io(io::Error),
}

impl fmt::Display for ReceiveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Acquire(error) => error.fmt(f),
            Self::Io(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for ReceiveError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Self::Acquire(error) => error.source(),
            Self::Io(error) => error.source(),
        }
    }
}

impl From<AcquireError> for ReceiveError {
    fn from(error: AcquireError) -> Self {
        Self::Acquire(error)
    }
}

impl From<io::Error> for ReceiveError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}
