//! Trims: what frees the memory that holds no buffers.

use core::ptr::NonNull;
use core::time::Duration;
use std::time::Instant;

use bufkit::sync::fences;
use bufkit::sync::{Ordering, lock, try_lock};

use crate::cache::{CLAIMED, PLAIN, Reach, ThreadCache, local};
use crate::counts::Piece;
use crate::depot::Depot;
use crate::shard::Chain;
use crate::shared::Shared;

impl Shared {
    /// Frees idle memory, that of caches too, and asks other threads to free what is only theirs to
    /// free. The caller holds a handle.
    pub(crate) fn trim(&self) {
        // ORDER: Relaxed: a request; each thread reads it when it next looks.
        self.trims.fetch_add(1, Ordering::Relaxed);
        let mut chain = Chain::new();
        self.take_shards(self.budget.shards(), &mut chain);
        // As for shards.
        for _ in 0..self.depot.kept_pieces() {
            let Some(piece) = self.depot.any_piece() else { break };
            // SAFETY: ours from here on.
            self.budget.give_back(unsafe { piece.as_ref() }.held());
            // SAFETY: likewise.
            unsafe { chain.push(piece) };
        }
        // Whoever has it looks, calls nobody, and is soon done.
        let right = lock(&self.idle_since);
        self.take_from_caches(Reach::Idle, &mut chain);
        self.take_from_lists(Reach::Idle, &mut chain);
        drop(right);
        // SAFETY: nothing is out of what was taken, and it is ours.
        unsafe { Self::free_all(chain, Piece::Trimmed) };
        // SAFETY: a cache of this thread's is valid (`local`, L2).
        if let Some(cache) = unsafe { local::find(self.id).as_ref() } {
            cache.trim();
        }
        self.free_headers();
    }

    /// Frees what nobody needed since the last look, if that was `age` ago or more, and looks. The
    /// caller holds a handle.
    pub(crate) fn trim_idle(&self, age: Duration) {
        let Some(mut since) = try_lock(&self.idle_since) else { return };
        let now = Instant::now();
        if since.is_some_and(|since| now.duration_since(since) < age) {
            return;
        }
        *since = Some(now);
        // ORDER: Relaxed: a hint.
        self.is_watched.store(true, Ordering::Relaxed);
        let mut chain = Chain::new();
        self.take_shards(self.budget.unused_shards(), &mut chain);
        self.budget.note_shards();
        let mut pieces = Chain::new();
        {
            let _visit = self.depot.visit();
            // SAFETY: for holders of a handle, and the visit lasts.
            unsafe { self.depot.take_unused_pieces(&mut pieces) };
        }
        // SAFETY: just taken, so ours.
        while let Some(piece) = unsafe { pieces.pop() } {
            // SAFETY: likewise.
            self.budget.give_back(unsafe { piece.as_ref() }.held());
            // SAFETY: likewise.
            unsafe { chain.push(piece) };
        }
        self.take_from_caches(Reach::Unused, &mut chain);
        self.take_from_lists(Reach::Unused, &mut chain);
        drop(since);
        let is_some = !chain.is_empty();
        // SAFETY: nothing is out of what was taken, and it is ours.
        unsafe { Self::free_all(chain, Piece::Trimmed) };
        if is_some {
            self.free_headers();
        }
    }

    /// Takes idle shards of the pool. The caller holds a handle.
    fn take_shards(&self, most: usize, chain: &mut Chain) {
        // A bound, so that this ends while others give shards back all the time.
        for _ in 0..most {
            let Some(shard) = self.idle() else { break };
            // SAFETY: ours from here on.
            unsafe { chain.push(shard) };
        }
    }

    /// Takes what nothing is out of from the caches of all threads, as far as it can be had. The
    /// caller holds a handle, and has the right to look.
    fn take_from_caches(&self, reach: Reach, chain: &mut Chain) {
        let _visit = self.depot.visit();
        let wants = self.caches.iter().any(ThreadCache::has_piece);
        let is_claimed = wants && self.claim();
        for cache in self.caches.iter() {
            // SAFETY: for holders of a handle; the visit and the claim last; who looks for what is
            // unused has the lock.
            unsafe { cache.reach(reach, is_claimed, chain) };
        }
        if wants {
            self.unclaim();
        }
    }

    /// Takes the memory of shards on the lists of all threads, of which nothing is out. The caller
    /// holds a handle, and has the right to look.
    fn take_from_lists(&self, reach: Reach, chain: &mut Chain) {
        self.each_shard(|shard| {
            if shard.take_listed(reach == Reach::Unused) {
                // SAFETY: the memory is ours from here on, and valid with it the header.
                unsafe { chain.push(NonNull::from(shard)) };
            }
        });
    }

    /// Frees the shards on the lists of all threads of which nothing is out. The caller holds a
    /// handle.
    #[cfg(all(test, loom))]
    pub(crate) fn free_listed(&self) {
        let mut chain = Chain::new();
        let right = lock(&self.idle_since);
        self.take_from_lists(Reach::Idle, &mut chain);
        drop(right);
        // SAFETY: nothing is out of what was taken, and it is ours.
        unsafe { Self::free_all(chain, Piece::Trimmed) };
    }

    /// Claims the pieces in caches; `false` when they are not to be had, for want of a fence. The
    /// caller holds a handle, and has the right to look.
    fn claim(&self) -> bool {
        // ORDER: Relaxed: the fence orders it.
        let before = self.claims.fetch_or(CLAIMED, Ordering::Relaxed);
        fences::heavy(before & PLAIN != 0)
    }

    /// Ends a claim.
    fn unclaim(&self) {
        // ORDER: Release pairs with the Acquire in `reuse_begun` and `hand_out`: what was taken out
        // is gone from the caches.
        self.claims.fetch_and(PLAIN, Ordering::Release);
    }

    /// Frees headers that have no memory, if nobody looks at headers at this moment. The caller
    /// holds a handle.
    fn free_headers(&self) {
        let chain = self.depot.take_off();
        // SAFETY: taken off just now.
        unsafe { Depot::free(chain) };
    }

    /// Frees what is idle, and makes all other memory stale. The caller holds a handle.
    pub(crate) fn clear(&self) {
        // ORDER: Relaxed, as in `fresh`.
        self.generation.fetch_add(1, Ordering::Relaxed);
        // SAFETY: a cache of this thread's is valid (`local`, L2).
        if let Some(cache) = unsafe { local::find(self.id).as_ref() } {
            cache.give_up_large();
        }
        self.trim();
    }
}
