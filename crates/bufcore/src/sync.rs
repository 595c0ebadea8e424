//! The atomics and locks of the libraries: `core`'s and `std`'s, `portable-atomic`'s for processors
//! that `core` has none for, or those of a model checker under `--cfg loom` or `--cfg shuttle`.

#[cfg(any(loom, shuttle))]
pub use checker::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicUsize, Ordering, fence};
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

/// The ordering of every store that releases memory.
pub const RELEASE: Ordering = Ordering::Release;

/// Locks `mutex`, ignoring poisoning.
///
/// ```
/// use std::sync::Mutex;
///
/// use bufcore::author::sync::lock;
///
/// let bins = Mutex::new(vec![1]);
/// lock(&bins).push(2);
/// assert_eq!(*lock(&bins), [1, 2]);
/// ```
#[cfg(any(feature = "std", loom, shuttle))]
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // ThreadSanitizer sees nothing of a lock that is taken in the precompiled part of the standard
    // library, where threads contend for it.
    #[cfg(tsan)]
    loop {
        match mutex.try_lock() {
            Ok(guard) => return guard,
            Err(std::sync::TryLockError::Poisoned(poisoned)) => return poisoned.into_inner(),
            Err(std::sync::TryLockError::WouldBlock) => std::thread::yield_now(),
        }
    }
    #[cfg(not(tsan))]
    match mutex.lock() {
        Ok(guard) => guard,
        Err(poisoned) => poisoned.into_inner(),
    }
}
