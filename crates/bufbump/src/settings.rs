//! The settings of a pool, as they were checked.

use bufcore::size;

use crate::shard::HEADER_BYTES;

/// The most free shards that a thread keeps to itself. Fewer in models, which look at each.
const MAX_SPARES: usize = if cfg!(any(loom, shuttle)) { 2 } else { 4 };

/// Bytes from the start of pages to the first bytes of a buffer, at least.
///
/// Where a system call copies to the first 32 bytes of a page and on, some processors (AMD's Zen 3)
/// take several times as long: 26 µs for 64 KiB, and 4 µs a line further.
const LEAD_BYTES: usize = size::CACHE_LINE_BYTES;

/// Settings that have been checked.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Settings {
    /// The largest request that a shard serves.
    pub(crate) shard_bytes: usize,
    /// Bytes of a shard's span.
    pub(crate) span_bytes: usize,
    pub(crate) max_probes: usize,
    /// Idle memory that the pool keeps: shards, and free pages.
    pub(crate) max_idle_bytes: usize,
    /// Spare shards that a thread keeps.
    pub(crate) spare_shards: usize,
    /// A power of two, at least `LEAST_ALIGNMENT`.
    pub(crate) alignment: usize,
    /// Bytes in front of those of a buffer with a span of its own.
    pub(crate) lead: usize,
    /// The largest request that can ever succeed.
    pub(crate) max_capacity: usize,
    /// Bytes of a page of the heap.
    pub(crate) page_bytes: usize,
    #[cfg_attr(not(feature = "wipe"), allow(dead_code, reason = "what wipes reads it"))]
    pub(crate) wipe: bool,
}

impl Settings {
    /// Fills in what follows from the other settings.
    pub(crate) fn complete(&mut self) {
        // Where no memory is so large, each request is refused.
        self.span_bytes = self.span_for(self.shard_bytes).unwrap_or(usize::MAX);
        self.spare_shards = (self.max_idle_bytes / self.span_bytes).min(MAX_SPARES);
        self.lead = self.lead();
        self.max_capacity = self.max_capacity();
    }

    /// Returns the largest request that can ever succeed.
    fn max_capacity(&self) -> usize {
        // Room for what is in front, to round up, and to align the start.
        // In 32 bits the largest alignment leaves nothing.
        (size::MAX_BYTES - HEADER_BYTES).saturating_sub(3 * self.alignment.max(self.page_bytes))
    }

    /// Returns the bytes from the start of a shard's span to its first block. The bytes behind a
    /// block are aligned: those of the first, and of the others, whose distances are multiples.
    pub(crate) fn first(&self) -> usize {
        self.alignment.max(LEAD_BYTES).max(HEADER_BYTES) - HEADER_BYTES
    }

    /// Returns the bytes in front of those of a buffer with a span of its own: none where buffers
    /// are to start at pages.
    fn lead(&self) -> usize {
        let header = if cfg!(any(loom, shuttle)) { HEADER_BYTES } else { 0 };
        let lead = if self.alignment < self.page_bytes { self.alignment.max(LEAD_BYTES) } else { 0 };
        lead.max(header.next_multiple_of(self.alignment))
    }

    /// Returns the bytes of the span of a shard that serves requests of `shard_bytes` bytes, or
    /// `None` if no memory is so large.
    fn span_for(&self, shard_bytes: usize) -> Option<usize> {
        let blocks = size::align_up(shard_bytes.checked_add(HEADER_BYTES)?, self.alignment)?;
        size::align_up(self.first().checked_add(blocks)?, self.page_bytes)
    }
}
