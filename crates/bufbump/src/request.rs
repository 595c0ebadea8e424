//! Requests that the shard which the thread carves did not serve.

use core::ptr::NonNull;

use bufcore::strategy::Served;
use bufcore::{AcquireError, RegionError};

use crate::cache::local;
use crate::counts::Piece;
use crate::shard::Block;
use crate::shared::Shared;

/// A block for a request, with what is known of it.
pub(crate) struct Found {
    pub(crate) block: NonNull<Block>,
    pub(crate) served: Served,
}

impl Shared {
    /// A block for a request of at least one byte: from another shard, or in memory of its own. For
    /// holders of a handle.
    pub(crate) fn find(&self, bytes: usize) -> Result<Found, AcquireError> {
        let settings = &self.settings;
        let limit = settings.max_capacity();
        if bytes > limit {
            return Err(AcquireError::TooLarge { requested: bytes, limit });
        }
        if bytes <= settings.shard_bytes
            && let Some((block, is_fresh)) = self.refill(bytes)?
        {
            let served = if is_fresh { Served::Fresh } else { Served::Reused };
            return Ok(Found { block, served });
        }
        let block = self.single(bytes).map_err(|_refused| AcquireError::OutOfMemory { requested: bytes })?;
        Ok(Found { block, served: Served::Fallback })
    }

    /// A block from another shard than the one that the thread carves, which it carves from then
    /// on; `None` on a thread that is ending. The flag says that the shard is new.
    fn refill(&self, bytes: usize) -> Result<Option<(NonNull<Block>, bool)>, AcquireError> {
        // SAFETY: a cache of this thread's is valid (`local`, L2).
        let cache = match unsafe { local::find(self.id).as_ref() } {
            Some(cache) => cache,
            None => {
                let Some(token) = local::register() else { return Ok(None) };
                let refused = AcquireError::OutOfMemory { requested: bytes };
                let cache = self.cache(token).ok_or(refused)?;
                // The allocator may have used the pool meanwhile, on this thread: one cache is
                // enough.
                // SAFETY: as above.
                match unsafe { local::find(self.id).as_ref() } {
                    Some(first) => {
                        self.give_back(cache);
                        first
                    }
                    None => {
                        local::add(cache);
                        cache
                    }
                }
            }
        };
        let (shard, is_fresh) = cache.refill(bytes)?;
        local::remember(self.id, shard);
        Ok(NonNull::new(shard.carve(bytes, self.settings.alignment - 1)).map(|block| (block, is_fresh)))
    }

    /// Memory for one buffer of `bytes` bytes, whatever their number. For holders of a handle.
    fn single(&self, bytes: usize) -> Result<NonNull<Block>, RegionError> {
        let block = self.fresh(bytes, Piece::Allocated)?.single();
        // SAFETY: the start of memory is not null.
        Ok(unsafe { NonNull::new_unchecked(block) })
    }
}
