//! Blocks that are made ahead of any request.

use core::ptr::NonNull;

use bufcore::AcquireError;

use super::Turn;
use crate::block::Block;
use crate::cache::{Array, Arrays, ThreadCache, batch};
use crate::chain::Chain;
use crate::class::class_of;
use crate::counts::Why;
use crate::shared::Shared;

impl Shared {
    /// Makes blocks for requests of `size` bytes and keeps them; see
    /// [`ShardPool::preallocate`](crate::ShardPool::preallocate).
    pub(crate) fn preallocate(&self, count: usize, size: usize) -> Result<usize, AcquireError> {
        let class = class_of(size);
        if !self.settings.is_pooled(class) {
            return Err(AcquireError::TooLarge { requested: size, limit: self.settings.largest_pooled() });
        }
        let has_bins = self.depot.prepare_all(&self.settings, class);
        let cache = self.cache_or_new();
        let mut kept = 0;
        while kept < count {
            let room = self.depot.room(class, self.settings.shard_limit(class))
                + cache.map_or(0, |cache| cache.room(class));
            let length = room.min(batch(class) as usize);
            if length == 0 {
                break;
            }
            let mut chain = Chain::new();
            let mut refused = None;
            for _ in 0..length.min(count - kept) {
                match self.pooled(class, size, Turn::Spare) {
                    Ok(block) => {
                        // SAFETY: just made, so ours.
                        unsafe { Block::touch(block) };
                        // SAFETY: likewise.
                        unsafe { chain.push(block) };
                    }
                    Err(why) => {
                        refused = Some(why.error);
                        break;
                    }
                }
            }
            let made = chain.len();
            let rest = self.keep(cache, class, chain);
            kept += made - rest.len();
            self.common.preallocated(class, made - rest.len());
            let is_full = !rest.is_empty();
            // SAFETY: the rest is ours, of this pool.
            unsafe { Shared::free_chain(NonNull::from(self), rest, Why::Uncounted) };
            match refused {
                Some(AcquireError::Exhausted { .. }) => break,
                Some(error) => return Err(error),
                None if is_full => break,
                None => {}
            }
        }
        if kept < count && !has_bins {
            return Err(AcquireError::OutOfMemory { requested: size });
        }
        Ok(kept)
    }

    /// Puts a chain into a shard, or into the calling thread's cache, and returns what there is no
    /// room for.
    fn keep(&self, cache: Option<&ThreadCache>, class: usize, mut chain: Chain) -> Chain {
        let rest = self.put(cache.map_or(0, ThreadCache::home), class, || chain.pop());
        // SAFETY: the handle keeps the pool.
        unsafe { Shared::was_put(NonNull::from(self), Chain::new(), self.keep_for_waiters()) };
        let Some(cache) = cache.filter(|_| !rest.is_empty()) else { return rest };
        let (is_entered, array) = cache.enter_with(|cache| cache.lacks_for(class, rest.len()));
        if !is_entered {
            return rest;
        }
        let (rest, left) = fill(cache, class, rest, array);
        cache.leave_open();
        drop(left);
        self.tell(Some(cache));
        rest
    }
}

/// Puts blocks into the cache that was entered, and returns those that it has no room for, and the
/// slots that are left over.
fn fill(cache: &ThreadCache, class: usize, mut chain: Chain, array: Option<Array>) -> (Chain, Arrays) {
    if cache.is_waited() {
        return (chain, array.into());
    }
    let left = cache.make_room(class, chain.len(), array);
    let mut rest = Chain::new();
    while let Some(block) = chain.pop() {
        // SAFETY: a block of the chain is ours, and of this pool.
        if !unsafe { cache.put_one(class, block) } {
            // SAFETY: not taken, so still ours.
            unsafe { rest.push(block) };
        }
    }
    (rest, left)
}
