//! The settings of a pool, as they were checked.

use bufcore::size;

use crate::block::{self, LEAST_ALIGNMENT, LINES_FROM_BYTES, Layout, MOST_SLAB_CLASS};
use crate::class::{self, NO_CLASS, class_of};

/// A thread keeps this number of buffers of a class at most,
pub(crate) const MOST_THREAD_CACHE: usize = 1024;
/// and this number of bytes.
const THREAD_CLASS_BYTES: usize = 4 << 20;
/// A shard keeps this number of bytes of a class.
const SHARD_CLASS_BYTES: usize = 16 << 20;
/// From this size on, a thread keeps one block of a class, and shards none: the pages serve
/// requests of any size, and the page heap takes little beside touching them.
pub(crate) const LARGE_FROM_BYTES: usize = 256 << 10;
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

/// The largest class that any pool has.
const LAST_CLASS: usize = 96;

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
    /// Bytes of a page of the heap.
    pub(crate) page_bytes: usize,
    /// What memory is taken in multiples of, and what aligning it takes beside.
    pub(crate) unit_bytes: usize,
    pub(crate) aligning_bytes: usize,
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
    /// pooled.
    pub(crate) fn has_room(&self, class: usize) -> bool {
        self.class_total(class) <= self.max_bytes
    }

    /// Returns the shape of a block for a request: of its class, or of a span for it alone.
    pub(crate) fn layout_for(&self, bytes: usize) -> Layout {
        let class = class_of(bytes);
        if self.is_pooled(class) {
            return self.class_layout(class);
        }
        match block::class_of_small(bytes, self.alignment_of(bytes)) {
            Some(class) => self.class_layout(class).single(),
            None => Layout::of(NO_CLASS, bytes, self.alignment_of(bytes)),
        }
    }

    /// Returns the shape of a block of a class.
    pub(crate) fn class_layout(&self, class: usize) -> Layout {
        let bytes = class::bytes_of(class);
        Layout::of(class as u8, bytes, self.alignment_of(bytes))
    }

    /// Returns the bytes of the budget that a new block takes at least.
    pub(crate) fn total(&self, layout: Layout) -> usize {
        let aligning = if layout.slab().is_some() { 0 } else { self.aligning_bytes };
        let total = layout.total(self.page_bytes).saturating_add(aligning);
        size::align_up(total, self.unit_bytes).unwrap_or(usize::MAX)
    }

    fn class_total(&self, class: usize) -> usize {
        self.total(self.class_layout(class))
    }

    /// Returns whether the headers of all blocks are apart from their bytes.
    pub(crate) fn has_headers_apart(&self) -> bool {
        block::is_apart(self.alignment_of(1))
    }

    /// Returns the largest request that can ever succeed.
    pub(crate) fn max_capacity(&self) -> usize {
        self.most_within(self.max_bytes)
    }

    /// Returns the largest request that `left` bytes of the budget serve, with nothing idle; 0 when
    /// they serve none.
    pub(crate) fn most_within(&self, left: usize) -> usize {
        let whole = (left - left % self.unit_bytes).saturating_sub(self.aligning_bytes);
        let span =
            block::most_span(size::MAX_BYTES.min(whole), self.alignment_of(size::MAX_BYTES), self.page_bytes);
        // What is in a class is served as a whole.
        if span > 0
            && !self.is_pooled(class_of(span))
            && block::class_of_small(span, self.alignment).is_none()
        {
            return span;
        }
        let fits = |class: &usize| self.total(self.layout_for(class::bytes_of(*class))) <= left;
        let largest =
            class_of(span.max(class::LEAST_BYTES)).max(self.classes).clamp(MOST_SLAB_CLASS, LAST_CLASS);
        (0..=largest).rev().find(fits).map_or(0, class::bytes_of)
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
        let bytes = class::bytes_of(class);
        self.thread_cache.min(if bytes >= LARGE_FROM_BYTES { 1 } else { THREAD_CLASS_BYTES / bytes })
    }

    /// Returns how many blocks of a class a shard keeps.
    pub(crate) fn shard_limit(&self, class: usize) -> usize {
        let bytes = class::bytes_of(class);
        if bytes >= LARGE_FROM_BYTES {
            return 0;
        }
        let usual = (USUAL_SHARD_BYTES / bytes).clamp(LEAST_SHARD_BUFFERS, MOST_USUAL_SHARD_BUFFERS);
        self.shard_buffers.unwrap_or(usual).min(SHARD_CLASS_BYTES / bytes)
    }

    /// Returns how much of the budget a request takes at least, where slabs have free blocks.
    pub(crate) fn need(&self, bytes: usize) -> usize {
        self.layout_for(bytes).least(self.page_bytes)
    }

    /// Returns how much of the budget requests of these sizes take together at most: spans, and
    /// slabs of the usual size.
    pub(crate) fn most_need(&self, sizes: impl Iterator<Item = usize>) -> usize {
        let (mut bytes, mut blocks) = (0_usize, [0_usize; MOST_SLAB_CLASS + 1]);
        for size in sizes {
            let layout = self.layout_for(size);
            match layout.slab() {
                Some(shape) => blocks[usize::from(shape.number())] += 1,
                None => bytes = bytes.saturating_add(self.total(layout)),
            }
        }
        for (class, blocks) in blocks.into_iter().enumerate().filter(|(_, blocks)| *blocks > 0) {
            let slab = self.class_layout(class).slab();
            let slabs = slab.map_or(0, |shape| shape.bytes_of(blocks, self.page_bytes, self.max_bytes));
            bytes = bytes.saturating_add(slabs);
        }
        bytes
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
