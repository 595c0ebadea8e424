//! The shape of a block: what lies around the bytes of its buffer, and how much that is.

use bufcore::size;
use bufkit::SlabShape;

use super::{HEADER_BYTES, KEPT_BYTES};
use crate::class::{self, NO_CLASS};

/// Of every block.
pub(crate) const LEAST_ALIGNMENT: usize = 16;
/// From this size on, buffers start at a cache line. At a multiple of 16, one of 256 bytes mostly
/// takes five lines instead of four, and each is fetched by a thread that gets it from another. For
/// smaller ones the bytes in front would be too many.
pub(crate) const LINES_FROM_BYTES: usize = 256;
/// The largest alignment of buffers.
pub(crate) const MOST_ALIGNMENT: usize = 1 << 30;
/// From this alignment on, the header is apart. In front of the bytes it would take as much as the
/// alignment.
const APART_FROM_ALIGNMENT: usize = 4096;
/// The largest class of slabs. What is larger is a span, of which an eighth is waste at most.
pub(crate) const MOST_SLAB_BYTES: usize = 28 << 10;
/// Its number.
pub(crate) const MOST_SLAB_CLASS: usize = class::class_of(MOST_SLAB_BYTES);
/// Cache lines of the 4 KiB over which the starts of spans are spread.
const COLOURS: usize = 64;

/// What decides how a block lies in memory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Layout {
    /// The size class, or `NO_CLASS`.
    pub(super) class: u8,
    /// Of the buffer: those of the class, or of the request.
    pub(super) bytes: usize,
    /// What the bytes start at a multiple of; at least `LEAST_ALIGNMENT`.
    pub(super) alignment: usize,
    /// How much further the bytes start, for their colour.
    spread: usize,
    /// Whether the block is for one buffer only.
    pub(super) is_single: bool,
}

impl Layout {
    /// Returns the shape of a block whose bytes start at a multiple of `alignment`. The block is of
    /// a class, or for one buffer of `bytes` bytes if `class` is `NO_CLASS`: then it is a span.
    pub(crate) fn of(class: u8, bytes: usize, alignment: usize) -> Self {
        Self { class, bytes, alignment, spread: 0, is_single: class == NO_CLASS }
    }

    /// Returns the same shape for a block that is for one buffer only.
    pub(crate) fn single(self) -> Self {
        Self { is_single: true, ..self }
    }

    /// Returns the same shape with bytes that start `colour` lines further, if the block is a span.
    ///
    /// Blocks whose starts lie a multiple of 4 KiB apart share the same sets of the first-level
    /// cache and evict each other; see `bufkit::staggered`. It never costs alignment: a larger
    /// one than a line stays as it is.
    pub(crate) fn coloured(self, colour: usize) -> Self {
        let is_coloured = self.bytes > MOST_SLAB_BYTES && self.alignment <= size::CACHE_LINE_BYTES;
        let lines = if is_coloured { colour % COLOURS } else { 0 };
        Self { spread: lines * size::CACHE_LINE_BYTES, ..self }
    }

    /// Returns the distance from the start of a span to the bytes.
    pub(super) fn lead(&self) -> usize {
        if is_apart(self.alignment) { 0 } else { KEPT_BYTES.next_multiple_of(self.alignment) + self.spread }
    }

    /// Returns how the slab is cut that the block is of, or `None` for a span.
    pub(crate) fn slab(&self) -> Option<SlabShape> {
        if self.bytes > MOST_SLAB_BYTES || is_apart(self.alignment) {
            return None;
        }
        Some(SlabShape::new(self.class, HEADER_BYTES + self.bytes, self.alignment, HEADER_BYTES))
    }

    /// Returns the bytes of the pages that a new block takes at least, with any colour; more than
    /// there can be for a size that does not exist.
    pub(crate) fn total(&self, page_bytes: usize) -> usize {
        match self.slab() {
            Some(slab) => slab.least_bytes(page_bytes),
            None => size::align_up(self.coloured(usize::MAX).lead().saturating_add(self.bytes), page_bytes)
                .unwrap_or(usize::MAX),
        }
    }

    /// Returns the bytes that a block takes of what there is: of a slab, those of the block.
    pub(crate) fn least(&self, page_bytes: usize) -> usize {
        self.slab().map_or_else(|| self.total(page_bytes), SlabShape::stride)
    }
}

/// Returns whether blocks of this alignment have their headers apart.
pub(crate) fn is_apart(alignment: usize) -> bool {
    alignment >= APART_FROM_ALIGNMENT
}

/// Returns the most bytes of a block that is no slab's, within `limit` bytes; 0 when there are
/// none.
pub(crate) fn most_span(limit: usize, alignment: usize, page_bytes: usize) -> usize {
    let least = if is_apart(alignment) { 1 } else { MOST_SLAB_BYTES + 1 };
    let around = Layout::of(0, MOST_SLAB_BYTES + 1, alignment).coloured(usize::MAX).lead();
    let most = (limit - limit % page_bytes).saturating_sub(around);
    if most < least { 0 } else { most }
}

/// Returns the class that a request outside of the classes has its block of, if that is one of a
/// slab.
pub(crate) fn class_of_small(bytes: usize, alignment: usize) -> Option<usize> {
    (bytes <= MOST_SLAB_BYTES && !is_apart(alignment)).then(|| class::class_of(bytes))
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use crate::class::MAX_CLASSES;

    #[test]
    fn totals_are_what_is_needed_and_no_more() {
        for (layout, total) in [
            (Layout::of(0, 64, 16), 4096),
            (Layout::of(class::class_of(4096) as u8, 4096, 64), 8192),
            (Layout::of(NO_CLASS, 64 << 10, 64), (64 << 10) + 4096),
            (Layout::of(NO_CLASS, 64 << 10, 4096), 64 << 10),
            (Layout::of(NO_CLASS, 100, 1 << 20), 4096),
        ] {
            assert_eq!(layout.total(4096), total, "{layout:?}");
            assert!(layout.least(4096) <= total && layout.least(4096) >= layout.bytes);
        }
        const { assert!(KEPT_BYTES <= 64) };
    }

    #[test]
    fn colours_take_no_page_more() {
        for bytes in (0..MAX_CLASSES).map(class::bytes_of).filter(|&bytes| bytes > MOST_SLAB_BYTES) {
            for colour in 0..COLOURS {
                let layout = Layout::of(NO_CLASS, bytes, 64).coloured(colour);
                assert!(layout.lead() + bytes <= bytes + 4096, "{layout:?}");
            }
        }
    }

    #[test]
    fn the_most_is_exact() {
        for alignment in [16, 64, 256, 2048, 4096, 1 << 20] {
            for limit in (32 << 10..80 << 10).step_by(512) {
                let most = most_span(limit, alignment, 4096);
                let total = |bytes| Layout::of(NO_CLASS, bytes, alignment).total(4096);
                assert!(most == 0 || total(most) <= limit, "{most} of {limit}, {alignment}");
                assert!(
                    total(most.max(if is_apart(alignment) { 0 } else { MOST_SLAB_BYTES }) + 1) > limit,
                    "{most} of {limit}, {alignment}"
                );
            }
        }
    }
}
