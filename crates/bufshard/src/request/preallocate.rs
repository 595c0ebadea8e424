//! Blocks that are made ahead of any request.

use core::ptr::NonNull;

use bufcore::AcquireError;

use super::{Obtained, Turn};
use crate::block::Block;
use crate::cache::batch;
use crate::chain::Chain;
use crate::class::class_of;
use crate::counts::Why;
use crate::shared::Shared;

impl Shared {
    /// Makes blocks for requests of `size` bytes and keeps them in the shards; see
    /// [`ShardPool::preallocate`](crate::ShardPool::preallocate).
    pub(crate) fn preallocate(&self, count: usize, size: usize) -> Result<usize, AcquireError> {
        let class = class_of(size);
        if !self.settings.is_pooled(class) {
            return Err(AcquireError::TooLarge { requested: size, limit: self.settings.largest_pooled() });
        }
        let has_bins = self.depot.prepare_all(&self.settings, class);
        let mut kept = 0;
        while kept < count {
            let room = self.depot.room(class, self.settings.shard_limit(class));
            let length = room.min(batch(class) as usize);
            if length == 0 {
                break;
            }
            let mut chain = Chain::new();
            let mut refused = None;
            for _ in 0..length.min(count - kept) {
                match self.pooled(class, size, Turn::Spare) {
                    Ok(Obtained { block, .. }) => {
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
            let rest = self.put(0, class, || chain.pop());
            kept += made - rest.len();
            self.common.preallocated(class, made - rest.len());
            let is_full = !rest.is_empty();
            // SAFETY: the rest is ours, of this pool.
            unsafe { Shared::free_chain(NonNull::from(self), rest, Why::Uncounted) };
            // SAFETY: the handle keeps the pool.
            unsafe { Shared::after_put(NonNull::from(self), Chain::new(), self.keep_for_waiters()) };
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
}
