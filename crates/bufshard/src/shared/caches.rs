//! The caches of a pool's threads: how a thread comes to one, and what all of them are told.

use super::Shared;
use crate::cache::ThreadCache;
use crate::sync::{self, Ordering};

use bufcore::strategy::threads;

impl Shared {
    /// Makes a cache that no thread has, and puts it on the list for good (P2). For holders of a
    /// handle.
    fn enlist(&self) -> Option<()> {
        // ORDER: Relaxed: any order of numbers will do.
        let home = self.homes.fetch_add(1, Ordering::Relaxed);
        let cache = self.caches.add(ThreadCache::new(self, home)?)?;
        if self.has_budget() {
            self.flag_new(cache);
        }
        // Whoever found out meanwhile may not have met this one.
        sync::full_fence();
        if self.is_plain() {
            cache.set_plain();
        }
        Some(())
    }

    /// Whether all requests go the slow path.
    pub(crate) fn is_plain(&self) -> bool {
        // ORDER: Relaxed: whether a cache's thread knows is said by the cache.
        self.is_plain.load(Ordering::Relaxed) != 0
    }

    /// The system refuses the fence for the fast paths, which it gave before: all go the slow one
    /// from here on.
    #[cold]
    pub(crate) fn go_plain(&self) {
        // ORDER: Relaxed: the fence orders it before the look at the caches, as that in `enlist`
        // does the other way round.
        self.is_plain.store(1, Ordering::Relaxed);
        sync::full_fence();
        self.caches().for_each(ThreadCache::set_plain);
    }

    /// A cache for the calling thread: its own, or one that no thread has. `None` for a thread that
    /// is ending, and when there is none. By pool, not by handle: a release may look for one.
    pub(crate) fn cache(&self) -> Option<&ThreadCache> {
        if let Some(cache) = ThreadCache::find(self.id) {
            return Some(cache);
        }
        if !self.caches().any(ThreadCache::is_free) {
            return None;
        }
        threads::register()?;
        // That may have called an allocator that uses the pool.
        if let Some(cache) = ThreadCache::find(self.id) {
            return Some(cache);
        }
        // The thread's reference, from before the pool's end could take it over.
        self.ref_counts.add_ref();
        let Some(cache) = self.caches().find(|cache| cache.adopt()).filter(|cache| cache.list()) else {
            let was_last = self.ref_counts.drop_refs(1);
            debug_assert!(!was_last, "the caller has a handle or a block");
            return None;
        };
        Some(cache)
    }

    /// The same, made if there is none. For holders of a handle.
    pub(crate) fn cache_or_new(&self) -> Option<&ThreadCache> {
        if let Some(cache) = self.cache() {
            return Some(cache);
        }
        threads::register()?;
        // Until one is ours: others may be quicker.
        loop {
            self.enlist()?;
            if let Some(cache) = self.cache() {
                return Some(cache);
            }
        }
    }

    /// Makes sure that a thread that only releases finds a cache: a release makes none, since it
    /// does not allocate. For holders of a handle.
    pub(crate) fn prepare_cache(&self) {
        if self.settings.has_thread_caches() && !self.caches().any(ThreadCache::is_free) {
            // Without one, its blocks go to the shards one by one.
            let _ = self.enlist();
        }
    }
}
