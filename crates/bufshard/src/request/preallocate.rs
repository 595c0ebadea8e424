//! Blocks that are made ahead of any request.

use core::ptr::NonNull;

use bufcore::AcquireError;

use super::{Obtained, Turn};
use crate::block::Block;
use crate::cache::batch;
use crate::chain::Chain;
use crate::class::{self, class_of};
use crate::counts::Why;
use crate::settings::LARGE_FROM_BYTES;
use crate::shared::Shared;

impl Shared {
    /// Makes blocks for requests of `size` bytes and keeps them in the shards; see
    /// [`ShardPool::preallocate`](crate::ShardPool::preallocate).
    pub(crate) fn preallocate(&self, count: usize, size: usize) -> Result<usize, AcquireError> {
        let class = class_of(size);
        if !self.settings.is_pooled(class) {
            return Err(AcquireError::TooLarge { requested: size, limit: self.settings.largest_pooled() });
        }
        if self.settings.shard_limit(class) == 0 && class::bytes_of(class) >= LARGE_FROM_BYTES {
            return self.preallocate_pages(count, size);
        }
        let has_bins = self.depot.prepare_all(&self.settings, class);
        let mut kept = 0;
        while kept < count {
            let room = self.depot.room(class, self.settings.shard_limit(class));
            let length = room.min(batch(class));
            if length == 0 {
                break;
            }
            // A block of a larger class that has room is not what was asked for.
            let (mut chain, mut larger) = (Chain::new(), Chain::new());
            let mut refused = None;
            for _ in 0..length.min(count - kept) {
                match self.fresh(size, Turn::Spare) {
                    Ok(Obtained { block, .. }) => {
                        // SAFETY: just made, so ours.
                        let is_other = unsafe { block.as_ref() }.class() != class;
                        // SAFETY: likewise.
                        unsafe { if is_other { &mut larger } else { &mut chain }.push(block) };
                        if is_other {
                            refused = Some(AcquireError::Exhausted { requested: size, available: 0 });
                            break;
                        }
                        // SAFETY: likewise.
                        unsafe { Block::touch(block) };
                    }
                    Err(why) => {
                        refused = Some(why.error);
                        break;
                    }
                }
            }
            // SAFETY: ours, of this pool.
            unsafe { Shared::free_chain(NonNull::from(self), larger, Why::Uncounted) };
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

    /// Makes blocks of a large class, and leaves their pages in the heap.
    fn preallocate_pages(&self, count: usize, size: usize) -> Result<usize, AcquireError> {
        let (mut chain, mut refused) = (Chain::new(), None);
        while chain.len() < count {
            match self.fresh(size, Turn::Spare) {
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
        // SAFETY: ours, of this pool, which the handle keeps.
        unsafe { Shared::free_chain(NonNull::from(self), chain, Why::Uncounted) };
        match refused {
            Some(error @ AcquireError::OutOfMemory { .. }) if made == 0 => Err(error),
            _ => Ok(made),
        }
    }
}
