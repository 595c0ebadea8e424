//! The settings of a pool, as they were checked.

use bufcore::size;

use crate::block::{self, LEAST_ALIGNMENT, LINES_FROM_BYTES, Layout, Mapped};
use crate::class::{self, NO_CLASS, class_of};

/// A thread keeps this number of bytes of a class, or one block if that is larger.
const THREAD_CLASS_BYTES: usize = 4 << 20;
/// A shard keeps this number of bytes of a class, or one block if that is larger.
const SHARD_CLASS_BYTES: usize = 16 << 20;
/// For each thread that the machine runs at once, what caches keep together unless set; and the
/// least of that.
const CACHED_BYTES_PER_PROCESSOR: usize = 1 << 20;
const LEAST_CACHED_BYTES: usize = 8 << 20;
/// Unless set, a shard keeps this number of bytes of a class, within these numbers of buffers. More
/// of the large ones would let a handover of them, in which a bin is found locked now and then,
/// hold several times what is under way.
const USUAL_SHARD_BYTES: usize = 1 << 20;
const LEAST_SHARD_BUFFERS: usize = 16;
const MOST_USUAL_SHARD_BUFFERS: usize = 128;
const LEAST_SHARDS: usize = 4;
pub(crate) const MOST_SHARDS: usize = 64;

/// Settings that have been checked.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Settings {
    /// The most buffers of a class that a thread keeps.
    pub(crate) thread_cache: usize,
    /// The most bytes that the slots of all threads' caches are for.
    pub(crate) max_cached_bytes: usize,
    /// The first class that is pooled.
    pub(crate) smallest_class: usize,
    /// Classes up to the largest that is pooled.
    pub(crate) classes: usize,
    /// A power of two.
    pub(crate) shards: usize,
    /// The most buffers of a class in a shard, if that was set.
    pub(crate) shard_buffers: Option<usize>,
    /// The most bytes of memory.
    pub(crate) max_bytes: usize,
    /// What was asked for, a power of two; what holds is `alignment_of`.
    pub(crate) alignment: usize,
    /// Which blocks have mappings of their own.
    pub(crate) mapped: Option<Mapped>,
    #[cfg_attr(not(feature = "wipe"), allow(dead_code, reason = "what wipes reads it"))]
    pub(crate) wipe: bool,
}

impl Settings {
    /// Returns the alignment of a buffer's start, by the bytes of its class, or of its request if
    /// it has no class.
    pub(crate) fn alignment_of(&self, bytes: usize) -> usize {
        let least = if bytes < LINES_FROM_BYTES { LEAST_ALIGNMENT } else { size::CACHE_LINE_BYTES };
        self.alignment.max(least)
    }

    /// Returns whether the budget has room for a block of this class. A class without room is not
    /// pooled: its requests are served to the byte.
    pub(crate) fn has_room(&self, class: usize) -> bool {
        // The last colour takes the most.
        self.class_layout(class).coloured(usize::MAX).total() <= self.max_bytes
    }

    /// Returns the shape of a block of a class with `bytes` bytes, or of one for one buffer.
    pub(crate) fn layout_of(&self, class: u8, bytes: usize) -> Layout {
        Layout::of(class, bytes, self.alignment_of(bytes), self.mapped)
    }

    /// Returns the shape of a block of a class.
    fn class_layout(&self, class: usize) -> Layout {
        self.layout_of(class as u8, class::bytes_of(class))
    }

    /// Returns whether the headers of all blocks are apart from their bytes.
    pub(crate) fn has_headers_apart(&self) -> bool {
        block::is_apart(self.alignment_of(1))
    }

    /// Returns the largest request that can ever succeed.
    pub(crate) fn max_capacity(&self) -> usize {
        let single = self.most_single(size::MAX_BYTES.min(self.max_bytes));
        // A block of a class has the shorter header.
        if self.smallest_class < self.classes { single.max(self.largest_pooled()) } else { single }
    }

    /// Returns the largest request that `left` bytes of the budget serve, with nothing idle; 0 when
    /// they serve none.
    pub(crate) fn most_within(&self, left: usize) -> usize {
        let single = self.most_single(size::MAX_BYTES.min(left));
        let class = class::class_of(single);
        // A class is served as a whole. Its header is shorter: the next may fit where as many bytes
        // without a class do not. Or it has more around, to lie evenly: then this one may not fit.
        let fits = |class: usize| self.is_pooled(class) && self.class_layout(class).total() <= left;
        if let Some(class) = [class.saturating_add(1), class].into_iter().find(|&class| fits(class)) {
            return class::bytes_of(class);
        }
        if single == 0 || !self.is_pooled(class) {
            return single;
        }
        // Two classes below there is room for what lies around any.
        let below = class.checked_sub(1).filter(|&class| !self.is_pooled(class) || fits(class));
        below.or(class.checked_sub(2)).map_or(0, class::bytes_of)
    }

    /// Returns the largest request that `limit` bytes serve, with an allocation to the byte.
    fn most_single(&self, limit: usize) -> usize {
        block::most_single(limit, self.mapped, |bytes| self.alignment_of(bytes))
    }

    /// Returns whether requests of this class are pooled.
    #[inline]
    pub(crate) fn is_pooled(&self, class: usize) -> bool {
        class >= self.smallest_class && class < self.classes
    }

    /// Returns how many blocks of a class a thread keeps.
    pub(crate) fn thread_limit(&self, class: usize) -> usize {
        if !self.is_pooled(class) {
            return 0;
        }
        self.thread_cache.min((THREAD_CLASS_BYTES / class::bytes_of(class)).max(1))
    }

    /// Returns how many blocks of a class a shard keeps.
    pub(crate) fn shard_limit(&self, class: usize) -> usize {
        let bytes = class::bytes_of(class);
        let usual = (USUAL_SHARD_BYTES / bytes).clamp(LEAST_SHARD_BUFFERS, MOST_USUAL_SHARD_BUFFERS);
        self.shard_buffers.unwrap_or(usual).min((SHARD_CLASS_BYTES / bytes).max(1))
    }

    /// Returns how much of the budget a request takes at least.
    pub(crate) fn need(&self, bytes: usize) -> usize {
        let class = class_of(bytes);
        let layout =
            if self.is_pooled(class) { self.class_layout(class) } else { self.layout_of(NO_CLASS, bytes) };
        layout.total()
    }

    /// Returns how much of the budget a request takes at most.
    pub(crate) fn most_need(&self, bytes: usize) -> usize {
        let class = class_of(bytes);
        // The last colour takes the most.
        if self.is_pooled(class) {
            self.class_layout(class).coloured(usize::MAX).total()
        } else {
            self.need(bytes)
        }
    }

    /// Returns the largest request that is pooled; 0 when the budget has no room for the smallest
    /// class.
    pub(crate) fn largest_pooled(&self) -> usize {
        self.classes.checked_sub(1).map_or(0, class::bytes_of)
    }
}

/// Returns how many threads the machine runs at once, or 1 if it does not say so.
fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, core::num::NonZero::get)
}

pub(crate) fn default_shards() -> usize {
    processors().clamp(LEAST_SHARDS, MOST_SHARDS)
}

pub(crate) fn default_cached_bytes() -> usize {
    processors().saturating_mul(CACHED_BYTES_PER_PROCESSOR).max(LEAST_CACHED_BYTES)
}
