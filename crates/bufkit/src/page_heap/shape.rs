//! How slabs are cut into blocks.

use super::slab::Slab;

/// How many kinds of slabs a heap can have.
pub(super) const KINDS: usize = 64;

/// How a slab of one kind is divided.
///
/// ```
/// use bufkit::SlabShape;
///
/// let shape = SlabShape::new(0, 1100, 64, 16);
/// assert!(shape.stride() >= 1100 && shape.stride() % 64 == 0);
/// assert!(shape.first() >= SlabShape::HEAD_BYTES && (shape.first() + 16) % 64 == 0);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SlabShape {
    pub(super) number: u8,
    pub(super) stride: u32,
    pub(super) first: u16,
}

/// The most bytes of a slab.
const MOST_BYTES: usize = 128 << 10;
/// Of a slab at most this part is waste, where a size up to `MOST_BYTES` has as little.
const WASTE: usize = 16;
/// Of a limit a slab is at most this part, unless it has one block.
const LIMIT_PART: usize = 16;
/// So many blocks a slab has at most, a bit for each.
const MOST_BLOCKS: usize = 64;
/// A slab has at least this number of blocks, where `MOST_BYTES` are enough for them.
const LEAST_BLOCKS: usize = 4;

impl SlabShape {
    /// The bytes in front of all blocks of a slab.
    pub const HEAD_BYTES: usize = size_of::<Slab>();

    /// Makes the shape of slabs with this number, below 64. Their blocks have `bytes` bytes, at
    /// least 16. The address `lead` bytes after the start of a block is a multiple of `alignment`,
    /// a power of two from 16 to 4096; `lead` is a multiple of 16 and at most `bytes`.
    ///
    /// Within a heap, shapes with a larger number have blocks that are at least as large and as
    /// aligned, with the same `lead`, and shapes with the same number are equal.
    ///
    /// # Panics
    ///
    /// Panics if the number is too large, if a block has more than a quarter of 128 KiB, or if the
    /// alignment or `lead` is invalid.
    #[must_use]
    pub const fn new(number: u8, bytes: usize, alignment: usize, lead: usize) -> Self {
        assert!((number as usize) < KINDS && bytes >= 16 && bytes <= MOST_BYTES / LEAST_BLOCKS + 256);
        assert!(alignment.is_power_of_two() && alignment >= 16 && alignment <= 4096);
        assert!(lead.is_multiple_of(16) && lead <= bytes);
        let first = (Self::HEAD_BYTES + lead).next_multiple_of(alignment) - lead;
        Self { number, stride: bytes.next_multiple_of(alignment) as u32, first: first as u16 }
    }

    /// Returns the number.
    #[must_use]
    pub const fn number(self) -> u8 {
        self.number
    }

    /// Returns the distance between blocks, in bytes.
    #[must_use]
    pub const fn stride(self) -> usize {
        self.stride as usize
    }

    /// Returns the distance from the start of a slab to its first block, in bytes.
    #[must_use]
    pub const fn first(self) -> usize {
        self.first as usize
    }

    /// Returns the bytes of the smallest slab, which has one block.
    #[must_use]
    pub const fn least_bytes(self, page_bytes: usize) -> usize {
        (self.first as usize + self.stride as usize).next_multiple_of(page_bytes)
    }

    /// Returns the bytes of the slabs for this number of blocks, in a heap with a limit.
    #[must_use]
    pub fn bytes_of(self, blocks: usize, page_bytes: usize, limit: usize) -> usize {
        let slab = self.pages(page_bytes, limit / page_bytes) * page_bytes;
        blocks.div_ceil(self.blocks(slab)).saturating_mul(slab)
    }

    /// Returns the pages of a slab: the fewest with little waste, and a small part of the limit.
    pub(super) fn pages(self, page_bytes: usize, limit: usize) -> usize {
        let least = self.least_bytes(page_bytes) / page_bytes;
        if cfg!(any(loom, shuttle)) {
            return least;
        }
        let most = (MOST_BYTES / page_bytes).min(limit / LIMIT_PART).max(least);
        let waste = |pages: usize| {
            let bytes = pages * page_bytes;
            bytes - self.blocks(bytes) * self.stride()
        };
        let is_good = |&pages: &usize| {
            self.blocks(pages * page_bytes) >= LEAST_BLOCKS && waste(pages) * WASTE <= pages * page_bytes
        };
        (least..=most).find(is_good).unwrap_or(most)
    }

    /// Returns the blocks of a slab of `bytes` bytes; in models one, so that each is a span.
    pub(super) fn blocks(self, bytes: usize) -> usize {
        let blocks = (bytes - self.first()) / self.stride();
        if cfg!(any(loom, shuttle)) { 1 } else { blocks.min(MOST_BLOCKS) }
    }
}
