//! The atomics of this crate: `core`'s, or the model checker's under `--cfg loom`.

#[cfg(not(loom))]
pub use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicUsize, Ordering, fence};
#[cfg(loom)]
pub use loom::sync::atomic::{AtomicPtr, AtomicU32, AtomicUsize, Ordering, fence};

/// The ordering of every store that gives memory back.
///
/// `Release`, but in the build that exists to show that the models and sanitizers notice (docs/testing.md).
pub const RELEASE: Ordering =
    if cfg!(bufworks_broken = "relaxed") { Ordering::Relaxed } else { Ordering::Release };
