//! Trims: what frees the memory that holds no buffers.

use bufcore::strategy::sync::Ordering;

use crate::cache::local;
use crate::depot::Depot;
use crate::shard::Chain;
use crate::shared::Shared;

impl Shared {
    /// Frees idle shards, the calling thread's too, and asks other threads to free theirs. For
    /// holders of a handle.
    pub(crate) fn trim(&self) {
        // ORDER: Relaxed: a request; each thread reads it when it next looks.
        self.trims.fetch_add(1, Ordering::Relaxed);
        self.free_idle();
        // SAFETY: a cache of this thread's is valid (`local`, L2).
        if let Some(cache) = unsafe { local::find(self.id).as_ref() } {
            cache.trim();
        }
        self.free_headers();
    }

    /// Frees the idle shards of the pool, not those of caches. For holders of a handle.
    fn free_idle(&self) {
        let mut chain = Chain::new();
        // ORDER: Relaxed: a bound, so that this ends while others give shards back all the time.
        for _ in 0..self.idle_shards.load(Ordering::Relaxed) {
            let Some(shard) = self.idle() else { break };
            // SAFETY: ours from here on.
            chain.push(unsafe { shard.as_ref() });
        }
        // SAFETY: what was idle is free, and ours.
        unsafe { Self::free_all(chain) };
    }

    /// Frees headers that have no memory, if nobody looks at headers at this moment. For holders of
    /// a handle.
    fn free_headers(&self) {
        let chain = self.depot.take_off();
        // SAFETY: taken off just now.
        unsafe { Depot::free(chain) };
    }

    /// Makes all memory that there is stale.
    pub(crate) fn outdate(&self) {
        // ORDER: Relaxed, as in `fresh`.
        self.generation.fetch_add(1, Ordering::Relaxed);
    }
}
