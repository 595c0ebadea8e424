//! The atomics and locks of this crate: `core`'s and `std`'s, `portable-atomic`'s for processors that `core` has none for, or the model
//! checker's under `--cfg loom`.

// Loom has none; what it models are processors, and its compiler moves nothing.
/// Shared ownership, of what is no part of the models.
#[cfg(all(feature = "alloc", feature = "stats", not(feature = "portable-atomic")))]
pub(crate) use alloc::sync::Arc;
#[cfg(feature = "fences")]
pub(crate) use core::sync::atomic::compiler_fence;
#[cfg(all(not(feature = "portable-atomic"), not(loom)))]
pub use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicUsize};
#[cfg(not(loom))]
pub use core::sync::atomic::{Ordering, fence};
#[cfg(loom)]
pub use loom::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicUsize, Ordering, fence};
#[cfg(all(feature = "alloc", feature = "stats", feature = "portable-atomic"))]
pub(crate) use portable_atomic_util::Arc;

#[cfg(all(feature = "portable-atomic", not(loom)))]
pub use portable_atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicUsize};

#[cfg(loom)]
pub use loom::sync::{Mutex, MutexGuard};
#[cfg(all(feature = "std", not(loom)))]
pub use std::sync::{Mutex, MutexGuard};

/// The ordering of every store that gives memory back.
///
/// `Release`, but in the build that exists to show that the models and sanitizers notice (docs/testing.md).
pub const RELEASE: Ordering =
    if cfg!(bufworks_broken = "relaxed") { Ordering::Relaxed } else { Ordering::Release };

/// The lock, whatever became of those who had it before.
#[cfg(any(feature = "std", loom))]
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    match mutex.lock() {
        Ok(guard) => guard,
        Err(poisoned) => poisoned.into_inner(),
    }
}

/// The lock, if nobody has it.
#[cfg(any(feature = "std", loom))]
pub fn try_lock<T>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    mutex.try_lock().ok()
}
