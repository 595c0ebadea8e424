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
    /// Finds a block for a request of at least one byte: in another shard, or in a span of its own.
    /// The caller holds a handle.
    pub(crate) fn find(&self, bytes: usize) -> Result<Obtained, AcquireError> {
        let settings = &self.settings;
        let limit = settings.max_capacity;
        if bytes > limit {
            return Err(AcquireError::TooLarge { requested: bytes, limit });
        }
        if bytes <= settings.shard_bytes
            && let Some(found) = self.refill(bytes)?
        {
            return Ok(found);
        }
        let block = self.take_large(bytes)?;
        // SAFETY: just made.
        let is_new = unsafe { Block::was_zero(block) };
        Ok(Obtained { block, served: if is_new { Served::Fallback } else { Served::Reused } })
    }

    /// Returns the calling thread's cache, which is made if there is none, or `None` on a thread
    /// that is ending. The caller holds a handle, and serves a request of `bytes` bytes.
    pub(crate) fn cache_here(&self, bytes: usize) -> Result<Option<&ThreadCache>, AcquireError> {
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
            self.caches.add(|| self.new_cache()).ok_or(AcquireError::OutOfMemory { requested: bytes })?;
        }
    }

    /// Takes a block from another shard than the one that the thread carves. The thread carves that
    /// one from then on. Returns `None` on a thread that is ending.
    fn refill(&self, bytes: usize) -> Result<Option<Obtained>, AcquireError> {
        let here = match local::recall(self.id) {
            None => self.cache_here(bytes)?,
            here => here,
        };
        let Some(cache) = here else { return Ok(None) };
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
}
