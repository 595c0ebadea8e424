//! Requests that the shard which the thread carves did not serve.

use core::ptr::NonNull;

use bufcore::AcquireError;
use bufcore::author::Served;

use crate::cache::{ThreadCache, local};
use crate::shard::{Block, Chain};
use crate::shared::Shared;

/// A block for a request, with what is known of it.
pub(crate) struct Obtained {
    pub(crate) block: NonNull<Block>,
    pub(crate) served: Served,
}

impl Shared {
    /// Finds a block for a request of at least one byte: in another shard, or in memory of its own.
    /// The caller holds a handle.
    pub(crate) fn find(&self, bytes: usize) -> Result<Obtained, AcquireError> {
        let settings = &self.settings;
        let limit = settings.max_capacity();
        if bytes > limit {
            return Err(AcquireError::TooLarge { requested: bytes, limit });
        }
        let found = if bytes <= settings.shard_bytes { self.refill(bytes)? } else { self.large(bytes) };
        if let Some(found) = found {
            return Ok(found);
        }
        let refused = |_refused| AcquireError::OutOfMemory { requested: bytes };
        let block = self.fresh(bytes).map_err(refused)?.dedicate(bytes, false);
        Ok(Obtained { block, served: Served::Fallback })
    }

    /// Returns the calling thread's cache, which is made if there is none, or `None` on a thread
    /// that is ending. The caller holds a handle, and serves a request of `bytes` bytes.
    fn cache_here(&self, bytes: usize) -> Result<Option<&ThreadCache>, AcquireError> {
        if let Some(cache) = local::find(self.id) {
            return Ok(Some(cache));
        }
        let Some(_token) = local::register() else { return Ok(None) };
        loop {
            // Again, as the allocator was called: a thread has one cache.
            if let Some(cache) = local::find(self.id) {
                return Ok(Some(cache));
            }
            if let Some(cache) = self.caches.iter().find(|cache| cache.take()) {
                self.ref_counts.add_ref();
                local::add(cache);
                return Ok(Some(cache));
            }
            let cache = ThreadCache::new(NonNull::from(self), self.id);
            self.caches.add(cache).ok_or(AcquireError::OutOfMemory { requested: bytes })?;
        }
    }

    /// Takes a block from another shard than the one that the thread carves. The thread carves that
    /// one from then on. Returns `None` on a thread that is ending.
    fn refill(&self, bytes: usize) -> Result<Option<Obtained>, AcquireError> {
        let Some(cache) = self.cache_here(bytes)? else { return Ok(None) };
        let mut over = Chain::new();
        let found = cache.refill(bytes, &mut over).map(|(shard, is_fresh)| {
            local::remember(self.id, shard);
            let served = if is_fresh { Served::Fresh } else { Served::Reused };
            let block = shard.carve(bytes, self.settings.alignment - 1);
            NonNull::new(block).map(|block| Obtained { block, served })
        });
        // SAFETY: taken out of the list, with nothing out.
        unsafe { Self::recycle_all(over) };
        found
    }

    /// Takes a piece for a request larger than a shard: one that is kept, or a new one. Returns
    /// `None` where no pieces of that size are kept, and where there is no memory of a piece's
    /// size.
    fn large(&self, bytes: usize) -> Option<Obtained> {
        let (class, size) = self.settings.large_class(bytes)?;
        self.depot.large.make();
        if let Some(piece) = self.depot.large.take(class) {
            // SAFETY: just taken, so ours alone.
            let piece = unsafe { piece.as_ref() };
            self.budget.give_back(piece.held());
            return Some(Obtained { block: piece.dedicate(bytes, true), served: Served::Reused });
        }
        self.make_room(self.settings.idle_bytes(size).unwrap_or(size));
        let piece = self.fresh(size).ok()?;
        Some(Obtained { block: piece.dedicate(bytes, false), served: Served::Fallback })
    }

    /// Frees what the pool keeps, other pieces first, until a piece of `bytes` bytes can be kept
    /// when it is released: so that sizes may change. The caller holds a handle.
    fn make_room(&self, bytes: usize) {
        let mut chain = Chain::new();
        while self.budget.is_short_of(bytes) {
            let piece = self.depot.large.take_any();
            if let Some(piece) = piece {
                // SAFETY: just taken, so ours alone.
                self.budget.give_back(unsafe { piece.as_ref() }.held());
            }
            let Some(shard) = piece.or_else(|| self.idle()) else { break };
            // SAFETY: likewise.
            unsafe { chain.push(shard) };
        }
        // SAFETY: nothing is out of them, and they are ours.
        unsafe { Self::free_all(chain, false) };
    }
}
