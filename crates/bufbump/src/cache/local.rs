//! A thread's knowledge of this strategy's pools: the shard that it carves, and its caches, one for
//! each pool that it has used. `bufkit::thread_cache` keeps both and lists their invariants;
//! this file has the part that is this crate's.
//!
//! # Invariants
//!
//! - L1: what a thread remembers for a pool is the shard that it carves for it, or the header
//!   without memory that keeps its place. The thread owns it, and its cache leads to the thread's.
//! - L2: the caches on a thread's lists are the thread's: their state is not `FREE`, and each keeps
//!   its pool's bookkeeping.

use core::ptr::NonNull;

use bufkit::thread_cache;
#[cfg(all(test, loom))]
pub(crate) use bufkit::thread_cache::end_of_thread;
pub(crate) use bufkit::thread_cache::{register, token};

use super::ThreadCache;
use crate::shard::Shard;

/// Returns the shard that the calling thread carves for the pool `id`, if it is found at once.
#[inline(always)]
pub(crate) fn shard(id: usize) -> Option<NonNull<Shard>> {
    thread_cache::get_fast(id).map(NonNull::cast)
}

/// Lets the next acquire find the shard at once (L1).
pub(crate) fn remember(id: usize, shard: &Shard) {
    // SAFETY: the caller has a handle, and the cache of whose shard this is on the list; `shard`
    // takes the value for a shard.
    unsafe { thread_cache::set_fast(id, NonNull::from(shard).cast()) };
}

/// Returns the calling thread's cache for the pool `id`, if it has one. The caller has a handle of
/// that pool. Lets go of caches that it meets whose pool is gone.
pub(crate) fn find<'a>(id: usize) -> Option<&'a ThreadCache> {
    // SAFETY: a cache of this thread's is valid (L2), and one of this number is this crate's.
    unsafe { thread_cache::find(id).cast::<ThreadCache>().as_ref() }
}

/// Returns the calling thread's cache for the pool `id`, as `find` does, and lets go of none. The
/// caller keeps that pool's bookkeeping.
#[inline]
pub(crate) fn recall<'a>(id: usize) -> Option<&'a ThreadCache> {
    // SAFETY: as in `find`.
    unsafe { thread_cache::recall(id).cast::<ThreadCache>().as_ref() }
}

/// Adds a new cache of this thread. The thread has a token.
pub(crate) fn add(cache: &ThreadCache) {
    // SAFETY: on no list, since it was free or new; valid by the thread's reference, until the end
    // of the thread, of the pool, or `remove`.
    unsafe { thread_cache::add(NonNull::from(cache).cast()) };
}

/// Takes the cache for the pool `id` off the calling thread's lists, if it is there; else null.
pub(crate) fn remove(id: usize) -> *const ThreadCache {
    // SAFETY: the pool's end calls this, for its own number, and does what is to be done with the
    // cache.
    unsafe { thread_cache::remove(id) }.cast()
}
