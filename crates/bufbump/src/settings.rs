//! The settings of a pool, as they were checked.

use bufcore::{RegionError, size};
use bufkit::DedicatedPages;

use crate::depot::CLASSES;
use crate::shard::{HEADER_BYTES, Layout};

/// The most free shards that a thread keeps to itself. Fewer in models, whose atomics are dear.
pub(crate) const MAX_SPARES: usize = if cfg!(any(loom, shuttle)) { 2 } else { 4 };
/// The size from which classes are counted: of smaller ones no four are in a doubling.
const LEAST_CLASS_BYTES: usize = 16;

/// Settings that have been checked.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Settings {
    /// The largest request that a shard serves.
    pub(crate) shard_bytes: usize,
    pub(crate) max_probes: usize,
    /// Idle memory that the pool keeps.
    pub(crate) max_idle_bytes: usize,
    /// Bytes of that for each shard.
    pub(crate) shard_idle_bytes: usize,
    /// From which size on shards and larger pieces have which pages of their own.
    pub(crate) mapped: Option<(usize, DedicatedPages)>,
    /// Spare shards that a thread keeps.
    pub(crate) spare_shards: usize,
    /// A power of two, at least `LEAST_ALIGNMENT`.
    pub(crate) alignment: usize,
    #[cfg_attr(not(feature = "wipe"), allow(dead_code, reason = "what wipes reads it"))]
    pub(crate) wipe: bool,
}

impl Settings {
    /// Returns the largest request that can ever succeed.
    pub(crate) fn max_capacity(&self) -> usize {
        // Room for a header, to round up, and to align the start.
        // In 32 bits the largest alignment leaves nothing.
        (size::MAX_BYTES - HEADER_BYTES).saturating_sub(3 * self.alignment.max(DedicatedPages::ALIGNMENT))
    }

    /// Returns the layout in memory of a shard, or of a piece of `bytes` bytes, which are not a
    /// shard's.
    pub(crate) fn layout(&self, bytes: usize) -> Result<Layout, RegionError> {
        let pages = self.mapped.filter(|&(from, _)| bytes >= from).map(|(_, pages)| pages);
        let is_dedicated = bytes != self.shard_bytes;
        Layout::new(bytes, self.alignment, is_dedicated, pages, self.mapped.is_none())
    }

    /// Returns the class and the size of the pieces that serve requests of `bytes` bytes, which are
    /// more than a shard's. Returns `None` where no such pieces are kept.
    pub(crate) fn large_class(&self, bytes: usize) -> Option<(usize, usize)> {
        let (number, size) = class_of(bytes)?;
        let (first, _) = class_of(self.shard_bytes + 1)?;
        let class = number.checked_sub(first)?;
        (class < CLASSES && self.idle_bytes(size)? <= self.max_idle_bytes).then_some((class, size))
    }

    /// Returns how much of the budget a piece of `bytes` bytes takes, or a shard. Returns `None`
    /// where none can exist.
    pub(crate) fn idle_bytes(&self, bytes: usize) -> Option<usize> {
        if self.mapped.is_none() {
            return Some(bytes);
        }
        Some(self.layout(bytes).ok()?.page_bytes().unwrap_or(bytes))
    }
}

/// Returns the number of the class of pieces for requests of `bytes` bytes, and their size: 4, 5, 6
/// or 7 times a power of two.
fn class_of(bytes: usize) -> Option<(usize, usize)> {
    let last = bytes.max(LEAST_CLASS_BYTES) - 1;
    let number = last.ilog2() as usize * 4 + (last >> (last.ilog2() - 2) & 3) + 1;
    let size = (4 + number % 4).checked_mul(1_usize << (number / 4 - 2))?;
    Some((number, size))
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::class_of;

    /// Checks that each request fits its class, of which less than a quarter is over, and not the
    /// class below.
    #[test]
    fn classes_fit() {
        let mut before = 0;
        for bytes in (16..5000).chain(
            (13..40).flat_map(|bits| [-1, 0, 1].map(|step| (1_usize << bits).wrapping_add_signed(step))),
        ) {
            let (number, size) = class_of(bytes).expect("not too large");
            assert!(size >= bytes && size - bytes <= bytes / 4, "{bytes} in {size}");
            assert!(number >= before, "{bytes}");
            assert_eq!(class_of(size), Some((number, size)), "{bytes}");
            assert_eq!(class_of(size + 1).map(|(next, _)| next), Some(number + 1));
            before = number;
        }
        assert_eq!(class_of(1), class_of(16));
        assert_eq!(class_of(usize::MAX), None);
    }
}
