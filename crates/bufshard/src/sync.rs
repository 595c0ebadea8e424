//! The atomics, locks and fences that the rest of the crate uses.
//!
//! A thread announces what it is about to do in its cache, then looks whether another thread claims
//! the cache. A thread that claims a cache announces that, then looks whether the cache's own
//! thread is at work. Between the two steps of each there is a fence of `bufcore`'s, so that not
//! both can miss the other.

pub(crate) use bufkit::sync::fences::{
    full as full_fence, has_heavy as has_heavy_fence, heavy as heavy_fence, light as light_fence,
};
pub(crate) use bufkit::sync::{AtomicPtr, AtomicU32, AtomicUsize, Ordering, RELEASE};
#[cfg(any(loom, shuttle))]
pub(crate) use bufkit::sync::{Mutex, MutexGuard, lock, try_lock};

/// Numbers that order nothing, which a model need not look at: with each atomic that it sees, it
/// has more schedules to try.
pub(crate) use core::sync::atomic::{AtomicU32 as CountU32, AtomicUsize as CountUsize};
