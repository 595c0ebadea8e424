//! Atomics, locks and fences, and wakers of threads and tasks.
//!
//! The atomics and locks are those of [`bufcore::author::sync`]. Other crates in the program may
//! select them.

#[cfg(feature = "fences")]
pub mod biased;
#[cfg(feature = "std")]
pub(crate) mod coop;
#[cfg(feature = "fences")]
pub mod fences;
#[cfg(feature = "std")]
pub(crate) mod growth_signal;
#[cfg(feature = "alloc")]
pub(crate) mod waiter;

pub use bufcore::author::sync::*;
/// A number that orders nothing, where a model has none: in a static.
#[cfg(feature = "page-heap")]
pub(crate) use core::sync::atomic::AtomicUsize as CountUsize;
// Loom has none; what it models are processors, and its compiler moves nothing.
#[cfg(feature = "fences")]
pub(crate) use core::sync::atomic::compiler_fence;

/// Locks `mutex` if no thread holds it.
///
/// ```
/// use std::sync::Mutex;
///
/// use bufkit::sync::{lock, try_lock};
///
/// let bins = Mutex::new(());
/// let guard = lock(&bins);
/// assert!(try_lock(&bins).is_none());
/// drop(guard);
/// assert!(try_lock(&bins).is_some());
/// ```
#[cfg(any(feature = "std", loom, shuttle))]
pub fn try_lock<T>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    mutex.try_lock().ok()
}
