//! The caches of a pool's threads: how a thread comes to one, and what all of them are told.

use core::ptr::NonNull;

use bufkit::thread_cache;

use super::Shared;
use crate::block::Block;
use crate::cache::ThreadCache;
use crate::class::class_of;
use crate::sync::{self, Ordering};

impl Shared {
    /// Makes a cache that no thread has, and puts it on the list for good (P2). The caller holds a
    /// handle.
    fn enlist(&self) -> Option<()> {
        // ORDER: Relaxed: any order of numbers will do.
        let home = self.homes.fetch_add(1, Ordering::Relaxed);
        let cache = self.caches.add(|| ThreadCache::new(self, home))?;
        if self.has_budget() {
            self.flag_new(cache);
        }
        // A thread that disables the caches at this moment may not have met this one.
        sync::full_fence();
        // ORDER: Relaxed: the fence orders it.
        if self.is_disabled.load(Ordering::Relaxed) != 0 {
            cache.disable();
        }
        Some(())
    }

    /// Makes all threads keep nothing from here on, because the system refuses the fence with which
    /// others take what they keep.
    #[cold]
    pub(crate) fn disable_caches(&self) {
        // ORDER: Relaxed: the fence orders it before the look at the caches, as that in `enlist`
        // does the other way round.
        if self.is_disabled.swap(1, Ordering::Relaxed) == 0 {
            sync::full_fence();
            self.caches().for_each(ThreadCache::disable);
        }
    }

    /// Returns a cache for the calling thread: its own, or one that no thread has. Returns `None`
    /// on a thread that is ending, and when there is no cache. The pool is enough, without a
    /// handle: a release may look for a cache.
    pub(crate) fn cache(&self) -> Option<&ThreadCache> {
        if let Some(cache) = ThreadCache::find(self.id) {
            return Some(cache);
        }
        if !self.caches().any(ThreadCache::is_free) {
            return None;
        }
        thread_cache::register()?;
        // That may have called an allocator that uses the pool.
        if let Some(cache) = ThreadCache::find(self.id) {
            return Some(cache);
        }
        let cache = self.caches().find(|cache| cache.adopt())?;
        if self.has_budget() {
            // One that waits for memory and has not met the cache is seen from here on.
            sync::full_fence();
        }
        // The thread's reference (`cache`, N6).
        self.ref_counts.add_ref();
        cache.list();
        Some(cache)
    }

    /// Returns a cache for the calling thread, made if there is none. The caller holds a handle.
    pub(crate) fn cache_or_new(&self) -> Option<&ThreadCache> {
        if let Some(cache) = self.cache() {
            return Some(cache);
        }
        thread_cache::register()?;
        // Until one is ours: others may be quicker.
        loop {
            self.enlist()?;
            if let Some(cache) = self.cache() {
                return Some(cache);
            }
        }
    }

    /// Notes that a release found no cache for its thread. The release makes none, since it does
    /// not allocate.
    #[cold]
    pub(crate) fn note_uncached(&self) {
        // ORDER: Relaxed: a hint.
        self.is_uncached.store(1, Ordering::Relaxed);
    }

    /// Makes a cache that no thread has, if a thread that only releases was without one: the next
    /// time it finds that. The caller holds a handle, and has nothing locked or entered.
    pub(crate) fn prepare_cache(&self) {
        // ORDER: Relaxed: a hint. Without a cache, blocks go to the shards one by one.
        if self.is_uncached.load(Ordering::Relaxed) != 0 {
            self.prepare_free_cache();
        }
    }

    #[cold]
    fn prepare_free_cache(&self) {
        // ORDER: Relaxed, as in `prepare_cache`.
        self.is_uncached.store(0, Ordering::Relaxed);
        if self.settings.thread_cache > 0 && !self.caches().any(ThreadCache::is_free) {
            let _ = self.enlist();
        }
    }

    /// Returns whether slots for `bytes` bytes may be charged.
    pub(crate) fn can_charge(&self, bytes: usize) -> bool {
        // ORDER: Relaxed: a count.
        let charged = self.charged.load(Ordering::Relaxed);
        bytes <= self.settings.max_cached_bytes.saturating_sub(charged)
    }

    /// Charges slots for `bytes` bytes to what all caches may keep together. Returns `false` when
    /// that is too much.
    pub(crate) fn charge(&self, bytes: usize) -> bool {
        // Without a look first, a pool whose caches keep all that they may would write here with
        // each trip.
        if !self.can_charge(bytes) {
            return false;
        }
        let most = self.settings.max_cached_bytes;
        // ORDER: Relaxed: a count.
        if self.charged.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes) <= most {
            return true;
        }
        self.discharge(bytes);
        false
    }

    /// Takes back what was charged.
    pub(crate) fn discharge(&self, bytes: usize) {
        // ORDER: Relaxed: a count.
        self.charged.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Returns the number of the next look of `trim_idle`.
    pub(crate) fn next_look(&self) -> u32 {
        // ORDER: Relaxed: a look that is counted late is one more chance for a magazine.
        self.looks.load(Ordering::Relaxed)
    }

    /// Begins a look of `trim_idle`, and returns its number. The caller has the lock for that.
    pub(crate) fn begin_look(&self) -> u32 {
        // ORDER: Relaxed, as in `next_look`.
        self.looks.fetch_add(1, Ordering::Relaxed)
    }

    /// Takes a block for a request from the calling thread's cache, if both are found at once. In
    /// most pools `ShardPool::acquire` does this by itself. The caller holds a handle.
    pub(crate) fn recall_block(&self, bytes: usize) -> Option<NonNull<Block>> {
        let cache = ThreadCache::recall(self.id)?;
        Some(self.find_cached(cache, class_of(bytes))?.block)
    }
}
