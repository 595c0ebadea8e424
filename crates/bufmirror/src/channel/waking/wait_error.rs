//! Why a wait ended.

use core::fmt;

/// The reason why a wait ended without the bytes that were waited for. Nothing was read, written or
/// lost.
///
/// ```
/// # #[cfg(feature = "std")] {
/// use bufmirror::{WaitError, channel};
///
/// let (producer, mut consumer) = channel(4096)?;
/// drop(producer);
/// assert!(matches!(consumer.wait(1), Err(WaitError::Closed { .. })));
/// # }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WaitError {
    /// The other end is gone. A consumer can still read the bytes that are left.
    Closed {
        /// Bytes waited for.
        requested: usize,
        /// Bytes that were available.
        available: usize,
    },
    /// Time was up.
    TimedOut {
        /// Bytes waited for.
        requested: usize,
        /// Bytes that were available.
        available: usize,
    },
    /// The other end is another process, which wrote nonsense into what both share. No bytes are
    /// lent or copied by a position that makes no sense. From then on each wait for more than can
    /// be had at once ends so, also if the header makes sense again.
    Corrupt,
    /// Tasks cannot be woken by another process; only ends that threads wait with can be shared
    /// between processes.
    NoTasks,
    /// The ring is smaller: this number of bytes will never be available at once.
    TooLong {
        /// Bytes asked for.
        requested: usize,
        /// Bytes the ring holds.
        capacity: usize,
    },
}

impl fmt::Display for WaitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Closed { requested, available } => {
                write!(f, "other end closed: {requested} bytes waited for, {available} bytes available")
            }
            Self::TimedOut { requested, available } => {
                write!(f, "time is up: {requested} bytes waited for, {available} bytes available")
            }
            Self::Corrupt => write!(f, "the other process wrote nonsense into the ring's header"),
            Self::NoTasks => write!(f, "tasks cannot wait for another process"),
            Self::TooLong { requested, capacity } => {
                write!(f, "cannot wait for {requested} bytes in a ring of {capacity} bytes")
            }
        }
    }
}

impl core::error::Error for WaitError {}

/// `BrokenPipe`, `TimedOut` or `InvalidInput`.
impl From<WaitError> for std::io::Error {
    fn from(error: WaitError) -> Self {
        let kind = match error {
            WaitError::Closed { .. } => std::io::ErrorKind::BrokenPipe,
            WaitError::TimedOut { .. } => std::io::ErrorKind::TimedOut,
            WaitError::NoTasks => std::io::ErrorKind::Unsupported,
            WaitError::Corrupt => std::io::ErrorKind::InvalidData,
            WaitError::TooLong { .. } => std::io::ErrorKind::InvalidInput,
        };
        Self::new(kind, error)
    }
}
