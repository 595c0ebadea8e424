//! Where the parts of the bookkeeping stand in the region, and how sizes are rounded.

use bufcore::size;

use super::control::CONTROL;
use super::guard::{GUARD, UNIT};

/// The most bytes of blocks and their guards that a ring counts.
pub(crate) const MAX_BYTES: usize = {
    let counted = u32::MAX as u64 * UNIT as u64;
    if counted < size::MAX_BYTES as u64 { counted as usize } else { size::MAX_BYTES }
};

/// How sizes are rounded: blocks are so many bytes that the start of each is aligned as its
/// allocator wants it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Grid {
    /// What a request has to be raised by before it is cut down to the grid: its guard, and the
    /// grid less one.
    raise: usize,
    pub(super) mask: usize,
}

impl Grid {
    /// For starts that are multiples of `alignment`, a power of two of at most a quarter of the
    /// address space. A ring is built with a grid of which one block is at most `MAX_BYTES`; the
    /// builder refuses others.
    pub(crate) fn new(alignment: usize) -> Self {
        let step = alignment.max(UNIT);
        Self { raise: GUARD + step - 1, mask: !(step - 1) }
    }

    pub(super) fn step(self) -> usize {
        !self.mask + 1
    }

    /// The alignment that every block has.
    pub(crate) fn alignment(self) -> usize {
        self.step()
    }

    /// Bytes of a block, guard included, for `bytes` bytes, at most `MAX_BYTES`. A multiple of a
    /// unit.
    #[inline(always)]
    pub(crate) fn block_bytes(self, bytes: usize) -> usize {
        (bytes + self.raise) & self.mask
    }

    /// The same in units.
    #[inline(always)]
    pub(crate) fn units(self, bytes: usize) -> usize {
        self.block_bytes(bytes) / UNIT
    }
}

/// Where the parts of the bookkeeping stand, in bytes from the region's start.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Layout {
    pub(super) control: usize,
    /// The guard at the front; the first block's guard comes right behind it.
    pub(super) front: usize,
}

impl Layout {
    /// The layout of a region that starts at `address`; `None` when they cannot be counted in a
    /// `usize`.
    pub(crate) fn new(address: usize, grid: Grid) -> Option<Self> {
        let least = size::align_up(address, UNIT)?.checked_add(CONTROL + 2 * GUARD)?;
        let block = size::align_up(least, grid.step())?;
        let front = block - 2 * GUARD - address;
        Some(Self { control: front - CONTROL, front })
    }

    /// Bytes that do not go to blocks and their guards.
    pub(crate) fn overhead(&self) -> usize {
        self.front + 2 * GUARD
    }
}

/// Bytes of bookkeeping, wherever the region starts, beside the blocks and their guards; `None`
/// when there is no such number.
pub(crate) fn overhead_bytes(grid: Grid) -> Option<usize> {
    // The worst start is one byte behind an aligned address.
    Layout::new(0, grid)?.overhead().checked_add(grid.step())
}

/// Bytes of `buffers` blocks with their guards for `capacity` bytes together; `None` when there is
/// no such number.
pub(crate) fn blocks_bytes(capacity: usize, buffers: usize, grid: Grid) -> Option<usize> {
    let each = GUARD + grid.step() - 1;
    let all = capacity.checked_add(each.checked_mul(buffers)?)?;
    Some(all & grid.mask)
}
