//! Trims: what frees the memory that holds no buffers.

use core::ptr::NonNull;
use core::time::Duration;
use std::time::Instant;

use bufkit::sync::{Ordering, lock, try_lock};

use crate::shard::{Chain, Shard};
use crate::shared::Shared;

impl Shared {
    /// Frees idle memory, that of threads too. The caller holds a handle.
    pub(crate) fn trim(&self) {
        let mut chain = Chain::new();
        self.take_shards(self.budget.shards(), &mut chain);
        // As for shards.
        for _ in 0..self.depot.large.count() {
            let Some(piece) = self.depot.large.take_any() else { break };
            self.take_out(piece, &mut chain);
        }
        // Whoever has it looks, calls nobody, and is soon done.
        let right = lock(&self.idle_since);
        self.take_from_threads(false, &mut chain);
        drop(right);
        // SAFETY: nothing is out of what was taken, and it is ours.
        unsafe { Self::free_all(chain, true) };
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
        self.depot.large.take_unused(&mut pieces);
        // SAFETY: just taken, so ours.
        while let Some(piece) = unsafe { pieces.pop() } {
            self.take_out(piece, &mut chain);
        }
        self.take_from_threads(true, &mut chain);
        drop(since);
        // SAFETY: nothing is out of what was taken, and it is ours.
        unsafe { Self::free_all(chain, true) };
    }

    /// Counts a piece that was kept as taken, and adds it to a chain.
    fn take_out(&self, piece: NonNull<Shard>, chain: &mut Chain) {
        // SAFETY: just taken by the caller, so ours.
        self.budget.give_back(unsafe { piece.as_ref() }.held());
        // SAFETY: likewise.
        unsafe { chain.push(piece) };
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

    /// Takes what nothing is out of from all threads: their spares, and the memory of shards on
    /// their lists. With `unused`, only what the last such look saw already. The caller holds a
    /// handle, and has the right to look.
    pub(crate) fn take_from_threads(&self, unused: bool, chain: &mut Chain) {
        self.caches.iter().for_each(|cache| cache.take_spares(unused, chain));
        for shard in self.depot.all() {
            if shard.take_listed(unused) {
                // SAFETY: the memory is ours from here on, and valid with it the header.
                unsafe { chain.push(NonNull::from(shard)) };
            }
        }
    }
}
