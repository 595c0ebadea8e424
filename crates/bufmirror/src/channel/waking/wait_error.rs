//! Why a wait ended.

use core::fmt;

/// Why a wait ended before the bytes were available. Nothing was read, written or lost.
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
    /// The other end was dropped. A consumer can still read the remaining bytes.
    Closed {
        /// Bytes waited for.
        requested: usize,
        /// The available bytes.
        available: usize,
    },
    /// Time was up.
    TimedOut {
        /// Bytes waited for.
        requested: usize,
        /// The available bytes.
        available: usize,
    },
    /// The other end is another process, which wrote an invalid position into the shared header. An
    /// invalid position is never used to lend or copy bytes. Each later wait for more than the
    /// available bytes ends the same way, even if the header is valid again.
    Corrupt,
    /// Another process cannot wake tasks: only threads can wait with ends that are shared between
    /// processes.
    NoTasks,
    /// The ring is smaller: this number of bytes can never be available at once.
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
