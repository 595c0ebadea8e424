//! Atomics, locks and fences, and what wakes threads and tasks.
//!
//! The atomics are those of `core` and the locks those of `std`, or atomics of `portable-atomic`
//! with the feature of that name.
//! Under `--cfg loom` or `--cfg shuttle` they are those of a model checker. Other packages in the
//! program may decide which they are.

#[cfg(feature = "std")]
pub(crate) mod coop;
#[cfg(feature = "fences")]
pub mod fences;
#[cfg(feature = "std")]
pub(crate) mod growth_signal;
#[cfg(feature = "alloc")]
pub(crate) mod waiter;

#[cfg(any(loom, shuttle))]
pub use checker::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicUsize, Ordering, fence};
// Loom has none; what it models are processors, and its compiler moves nothing.
#[cfg(feature = "fences")]
pub(crate) use core::sync::atomic::compiler_fence;
#[cfg(all(not(feature = "portable-atomic"), not(any(loom, shuttle))))]
pub use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicUsize};
#[cfg(not(any(loom, shuttle)))]
pub use core::sync::atomic::{Ordering, fence};
#[cfg(loom)]
pub use loom as checker;
#[cfg(shuttle)]
pub use shuttle as checker;

#[cfg(all(feature = "portable-atomic", not(any(loom, shuttle))))]
pub use portable_atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicUsize};

#[cfg(any(loom, shuttle))]
pub use checker::sync::{Mutex, MutexGuard};
#[cfg(all(feature = "std", not(any(loom, shuttle))))]
pub use std::sync::{Mutex, MutexGuard};

/// The ordering of every store that gives memory back.
pub const RELEASE: Ordering = Ordering::Release;

/// Locks `mutex`, ignoring poisoning.
///
/// ```
/// use std::sync::Mutex;
///
/// use bufkit::sync::{lock, try_lock};
///
/// let bins = Mutex::new(vec![1]);
/// let guard = lock(&bins);
/// assert!(try_lock(&bins).is_none());
/// drop(guard);
/// lock(&bins).push(2);
/// assert_eq!(*lock(&bins), [1, 2]);
/// ```
#[cfg(any(feature = "std", loom, shuttle))]
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    match mutex.lock() {
        Ok(guard) => guard,
        Err(poisoned) => poisoned.into_inner(),
    }
}

/// Locks `mutex`, if no thread holds it.
#[cfg(any(feature = "std", loom, shuttle))]
pub fn try_lock<T>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    mutex.try_lock().ok()
}
