//! The value that a full vector gives back.

use core::fmt;

/// The value for which a full [`RingVec`](crate::RingVec) had no room.
///
/// ```
/// # #[cfg(feature = "alloc")] {
/// use bufring::{PushError, RingPool};
///
/// let mut ring = RingPool::new(1024)?;
/// let mut names = ring.acquire_vec::<String>(1)?;
/// names.push("Ada".into())?;
/// let PushError(refused) = names.push("Grace".into()).unwrap_err();
/// assert_eq!(refused, "Grace"); // the error returns the value
/// # }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct PushError<T>(pub T);

impl<T> fmt::Debug for PushError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PushError").finish_non_exhaustive()
    }
}

impl<T> fmt::Display for PushError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("vector is full")
    }
}

impl<T> core::error::Error for PushError<T> {}
