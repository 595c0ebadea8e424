//! Trims: what frees the memory that holds no buffers.

use core::time::Duration;
use std::time::Instant;

use bufkit::sync::try_lock;

use crate::shard::{Block, Chain};
use crate::shared::Shared;

impl Shared {
    /// Frees idle memory, that of threads too. The caller holds a handle.
    pub(crate) fn trim(&self) {
        let mut chain = Chain::new();
        self.take_all_idle(false, &mut chain);
        // SAFETY: nothing is out of what was taken, and it is ours.
        unsafe { Self::free_all(chain) };
        self.free_kept(false);
        self.heap.trim(0);
        self.keep_budget();
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
        let mut chain = Chain::new();
        self.take_all_idle(true, &mut chain);
        drop(since);
        // SAFETY: nothing is out of what was taken, and it is ours.
        let bytes = unsafe { Self::free_all(chain) } + self.free_kept(true);
        // These were idle for as long as pages that no request needed.
        self.heap.trim_unused(bytes);
        self.keep_budget();
    }

    /// Frees the larger buffers that threads keep; with `unused`, those that the last such look saw
    /// as well. Returns their bytes. The caller holds a handle.
    fn free_kept(&self, unused: bool) -> usize {
        let mut bytes = 0;
        for kept in self.caches.iter().filter_map(|cache| cache.trim_large(unused)) {
            // SAFETY: just taken, so ours alone.
            bytes += unsafe { Block::span_bytes(kept) };
            // SAFETY: likewise.
            unsafe { Self::free_large(kept) };
        }
        bytes
    }

    /// Takes idle shards of the pool, and of all threads: their spares, and those on their lists of
    /// which nothing is out. With `unused`, only what nobody needed since the last such look. The
    /// caller holds a handle.
    pub(crate) fn take_all_idle(&self, unused: bool, chain: &mut Chain) {
        self.depot.take_idle(unused, chain);
        self.caches.iter().for_each(|cache| cache.trim(unused, chain));
    }
}
