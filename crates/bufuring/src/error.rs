//! The errors of a driver. An error of the file itself comes with the buffer, in
//! [`Done`](crate::Done).

use core::fmt;
use std::io;

use bufcore::{AcquireError, Lease};

use crate::Operation;

/// Says that a driver could not wait, and returns the operation.
///
/// The operation is still in flight, and has its buffer. It can be waited for again.
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

/// Says why a receiver has no bytes.
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
