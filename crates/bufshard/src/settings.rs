//! The settings of a pool, as they were checked.

use bufcore::size;

use crate::block::{Block, LEAST_ALIGNMENT, LINES_FROM_BYTES};
use crate::class::{self, class_of};

/// A thread keeps so many bytes of a class, or one block if that is larger.
const THREAD_CLASS_BYTES: usize = 4 << 20;
/// A shard keeps so many bytes of a class, or one block if that is larger.
const SHARD_CLASS_BYTES: usize = 16 << 20;

/// Settings that have been checked.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Settings {
    /// Buffers of a class that a thread keeps, at the most.
    pub(crate) thread_cache: usize,
    /// The first class that is pooled.
    pub(crate) smallest_class: usize,
    /// Classes up to the largest that is pooled.
    pub(crate) classes: usize,
    /// A power of two.
    pub(crate) shards: usize,
    /// Buffers of a class in a shard, at the most.
    pub(crate) shard_buffers: usize,
    /// Bytes of memory at the most.
    pub(crate) max_bytes: usize,
    /// What was asked for, a power of two; what holds is `alignment_of`.
    pub(crate) alignment: usize,
    #[cfg_attr(not(feature = "wipe"), allow(dead_code, reason = "what wipes reads it"))]
    pub(crate) wipe: bool,
}

impl Settings {
    /// What the start of a buffer is a multiple of, by the bytes of its class, or of its request if
    /// it has none.
    pub(crate) fn alignment_of(&self, bytes: usize) -> usize {
        let least = if bytes < LINES_FROM_BYTES { LEAST_ALIGNMENT } else { size::CACHE_LINE_BYTES };
        self.alignment.max(least)
    }

    /// Whether the budget has room for a block of this class. One that it has none for is not
    /// pooled: its requests are served to the byte.
    pub(crate) fn has_room(&self, class: usize) -> bool {
        let bytes = class::bytes_of(class);
        Block::most_total(bytes, self.alignment_of(bytes)) <= self.max_bytes
    }

    /// The largest request that can ever succeed.
    pub(crate) fn max_capacity(&self) -> usize {
        self.most_single(size::MAX_BYTES.min(self.max_bytes))
    }

    /// The largest request that so many bytes of the budget serve, with nothing idle; 0 when they
    /// serve none.
    pub(crate) fn most_within(&self, left: usize) -> usize {
        let single = self.most_single(size::MAX_BYTES.min(left));
        let class = class::class_of(single);
        if single == 0 || !self.is_pooled(class) {
            return single;
        }
        let bytes = class::bytes_of(class);
        if Block::total(bytes, self.alignment_of(bytes), 0) <= left {
            return bytes;
        }
        // A class is served as a whole. The one before is smaller than the request for which there
        // is room to the byte.
        class.checked_sub(1).map_or(0, class::bytes_of)
    }

    /// The largest request that `limit` bytes serve, with an allocation to the byte.
    fn most_single(&self, limit: usize) -> usize {
        // What is around the bytes of such a request, which no class rounds up.
        let rest = |bytes: usize| limit.saturating_sub(Block::total(0, self.alignment_of(bytes), 0));
        let most = rest(LINES_FROM_BYTES);
        if most >= LINES_FROM_BYTES {
            return most;
        }
        // Just below, less goes into aligning.
        rest(LINES_FROM_BYTES - 1).min(LINES_FROM_BYTES - 1)
    }

    /// Whether requests of this class are pooled.
    #[inline]
    pub(crate) fn is_pooled(&self, class: usize) -> bool {
        class >= self.smallest_class && class < self.classes
    }

    /// Whether threads keep any blocks.
    pub(crate) fn has_thread_caches(&self) -> bool {
        self.thread_cache > 0
    }

    /// Blocks of a class that a thread keeps.
    pub(crate) fn thread_limit(&self, class: usize) -> usize {
        if !self.is_pooled(class) {
            return 0;
        }
        self.thread_cache.min((THREAD_CLASS_BYTES / class::bytes_of(class)).max(1))
    }

    /// Blocks of a class that a shard keeps.
    pub(crate) fn shard_limit(&self, class: usize) -> usize {
        self.shard_buffers.min((SHARD_CLASS_BYTES / class::bytes_of(class)).max(1))
    }

    /// What a request takes of the budget at the least.
    pub(crate) fn need(&self, bytes: usize) -> usize {
        let class = class_of(bytes);
        let bytes = if self.is_pooled(class) { class::bytes_of(class) } else { bytes };
        Block::total(bytes, self.alignment_of(bytes), 0)
    }

    /// The largest request that is pooled; 0 when the budget has no room for the smallest class.
    pub(crate) fn largest_pooled(&self) -> usize {
        self.classes.checked_sub(1).map_or(0, class::bytes_of)
    }
}
