//! Requests that the thread's cache did not serve at once.

mod allocate;
mod preallocate;

use core::ptr::NonNull;

use bufcore::AcquireError;

use crate::block::Block;
use crate::cache::{Arrays, ThreadCache};
use crate::class::class_of;
use crate::counts::Tier;
use crate::shared::Shared;

/// A block for a request, with what is known of it.
pub(crate) struct Obtained {
    pub(crate) block: NonNull<Block>,
    pub(crate) tier: Tier,
    /// Whether nobody wrote to its bytes yet.
    pub(crate) is_zero: bool,
}

/// Why there is none.
pub(crate) struct NoBlock {
    pub(crate) error: AcquireError,
    /// Not all that is idle could be looked at: to look again soon may help.
    pub(crate) again: bool,
}

/// Whose turn it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Turn {
    /// A request like any other: while somebody waits, it gets what is idle, and no budget.
    Any,
    /// That of the first who waits.
    First,
    /// One for later: it gets budget that nobody has or waits for, and nothing idle makes room for
    /// it.
    Spare,
}

impl From<AcquireError> for NoBlock {
    fn from(error: AcquireError) -> Self {
        Self { error, again: false }
    }
}

impl From<NoBlock> for AcquireError {
    fn from(refused: NoBlock) -> Self {
        refused.error
    }
}

impl Shared {
    /// Finds a block for a request of at least one byte, wherever there is one.
    pub(crate) fn find(&self, bytes: usize, turn: Turn) -> Result<Obtained, NoBlock> {
        let limit = self.settings.max_capacity();
        if bytes > limit {
            return Err(AcquireError::TooLarge { requested: bytes, limit }.into());
        }
        let class = class_of(bytes);
        let cache = match ThreadCache::recall(self.id) {
            Some(cache) if !cache.is_round_due() => Some(cache),
            Some(_) => self.look_up_cache(),
            None => {
                let cache = self.look_up_cache();
                // The fast path did not get as far as its magazines.
                if let Some(found) = cache.and_then(|cache| self.find_cached(cache, class)) {
                    return Ok(found);
                }
                cache
            }
        };
        if let Some(cache) = cache {
            // Whatever a fast path announced.
            cache.settle_fast();
        }
        let counts = cache.map_or(&self.common, |cache| &cache.counts);
        let found = if self.settings.is_pooled(class) {
            self.find_pooled(cache, class, bytes, turn)?
        } else {
            self.fresh(bytes, turn)?
        };
        counts.look_at_others(self.counts());
        // SAFETY: just taken.
        let bytes = unsafe { Block::counted_bytes(found.block) };
        // Where there was no room it may be of a larger class.
        // SAFETY: likewise.
        counts.acquired(found.tier, unsafe { found.block.as_ref() }.class(), bytes);
        Ok(found)
    }

    /// Takes the block that the fast path would have taken, if it had found the cache at once. A
    /// thread that uses many pools by turns so pays for a search of its list, and for no slow path.
    pub(crate) fn find_cached(&self, cache: &ThreadCache, class: usize) -> Option<Obtained> {
        let block = cache.pop(class)?;
        // SAFETY: just taken.
        let bytes = unsafe { Block::counted_bytes(block) };
        cache.counts.acquired(Tier::Thread, class, bytes);
        Some(Obtained { block, tier: Tier::Thread, is_zero: false })
    }

    /// Returns the calling thread's cache, made if there is none, where the fast paths find it. The
    /// search of the thread's list lets go of caches of pools that are gone.
    #[cold]
    #[inline(never)]
    fn look_up_cache(&self) -> Option<&ThreadCache> {
        let cache = self.cache_or_new()?;
        cache.remember();
        Some(cache)
    }

    /// Finds a block of a class: in the thread's cache, in the shards with others for the cache, or
    /// new.
    fn find_pooled(
        &self,
        cache: Option<&ThreadCache>,
        class: usize,
        bytes: usize,
        turn: Turn,
    ) -> Result<Obtained, NoBlock> {
        let home = cache.map_or(0, ThreadCache::home);
        let (found, lacks_bins);
        let mut array = None;
        let mut left = Arrays::new();
        let entered = cache.filter(|cache| {
            let is_entered;
            (is_entered, array) = cache.enter_for_miss(class);
            is_entered
        });
        if let Some(block) = entered.and_then(|cache| cache.take_one(class)) {
            (found, lacks_bins) = (Some(Obtained { block, tier: Tier::Thread, is_zero: false }), false);
        } else {
            let taker = entered.filter(|cache| !cache.is_waited());
            if let Some(cache) = taker {
                left = cache.note_miss(class, array.take());
            }
            let block;
            (block, lacks_bins) = self.refill(taker, home, class);
            found = block.map(|block| Obtained { block, tier: Tier::Shard, is_zero: false });
        }
        if let Some(cache) = entered {
            cache.leave_open();
        } else if let Some(cache) = cache {
            // SAFETY: the handle keeps the pool.
            unsafe { Self::empty_disabled(NonNull::from(self), cache) };
        }
        drop((array, left));
        self.prepare_cache();
        if lacks_bins {
            self.depot.prepare(&self.settings, class);
        }
        if let Some(found) = found {
            return Ok(found);
        }
        self.fresh(bytes, turn)
    }

    /// Takes a block of a class out of the shards, and others into the cache, which has none, if
    /// there is one. Returns as well whether the shards lack bins of the class.
    ///
    /// Apart, so that the loop has registers of its own.
    #[inline(never)]
    fn refill(
        &self,
        cache: Option<&ThreadCache>,
        home: usize,
        class: usize,
    ) -> (Option<NonNull<Block>>, bool) {
        let wanted = cache.map_or(1, |cache| cache.wanted(class));
        let mut first = None;
        let lacks_bins = self.depot.take(home, class, wanted, |block| match cache {
            Some(cache) if first.is_some() => {
                // SAFETY: just taken out of the shards of this pool.
                let is_kept = unsafe { cache.put_one(class, block) };
                debug_assert!(
                    is_kept,
                    "the cache had nothing of the class, and is asked to keep less than its limit"
                );
            }
            _ => first = Some(block),
        });
        if first.is_some()
            && let Some(cache) = cache
        {
            cache.note_served(class);
        }
        (first, lacks_bins)
    }
}
