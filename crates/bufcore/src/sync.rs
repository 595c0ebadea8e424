//! The atomics and locks of this crate: `core`'s and `std`'s, `portable-atomic`'s for processors
//! that `core` has none for, or those of a model checker under `--cfg loom` or `--cfg shuttle`.

#[cfg(all(feature = "stats", any(loom, shuttle)))]
pub(crate) use checker::sync::atomic::AtomicUsize;
#[cfg(any(loom, shuttle))]
pub(crate) use checker::sync::atomic::{AtomicU32, Ordering};
#[cfg(all(not(feature = "portable-atomic"), not(any(loom, shuttle))))]
pub(crate) use core::sync::atomic::AtomicU32;
#[cfg(all(feature = "stats", all(not(feature = "portable-atomic"), not(any(loom, shuttle)))))]
pub(crate) use core::sync::atomic::AtomicUsize;
#[cfg(not(any(loom, shuttle)))]
pub(crate) use core::sync::atomic::Ordering;
#[cfg(loom)]
pub(crate) use loom as checker;
#[cfg(shuttle)]
pub(crate) use shuttle as checker;

#[cfg(all(feature = "portable-atomic", not(any(loom, shuttle))))]
pub(crate) use portable_atomic::AtomicU32;
#[cfg(all(feature = "stats", all(feature = "portable-atomic", not(any(loom, shuttle)))))]
pub(crate) use portable_atomic::AtomicUsize;

#[cfg(any(loom, shuttle))]
pub(crate) use checker::sync::{Mutex, MutexGuard};
#[cfg(all(feature = "std", not(any(loom, shuttle))))]
pub(crate) use std::sync::{Mutex, MutexGuard};

/// The ordering of every store that gives memory back.
pub(crate) const RELEASE: Ordering = Ordering::Release;

/// Locks `mutex`, ignoring poisoning.
#[cfg(any(feature = "std", loom, shuttle))]
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    match mutex.lock() {
        Ok(guard) => guard,
        Err(poisoned) => poisoned.into_inner(),
    }
}
