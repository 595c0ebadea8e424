//! Where the parts of the bookkeeping stand in the region, and how sizes are rounded.

use bufcore::size;
use bufkit::ControlBlock;

use super::guard::{GUARD, Guard, UNIT};

/// Bytes from the control block to the guard at the front, which stands right behind it.
pub(super) const CONTROL: usize = size_of::<ControlBlock>().next_multiple_of(UNIT);
const _: () = assert!(
    align_of::<ControlBlock>() <= align_of::<Guard>(),
    "in front of a guard a control block is aligned"
);

/// The most bytes of blocks and their guards that a ring counts.
pub(crate) const MAX_BYTES: usize = {
    let counted = u32::MAX as u64 * UNIT as u64;
    if counted < size::MAX_BYTES as u64 { counted as usize } else { size::MAX_BYTES }
};

/// The bytes that a ring uses first. It has at least as many more when it needs more.
pub(crate) const FIRST_BYTES: usize = 16 << 10;

/// How sizes are rounded: blocks have a number of bytes such that the start of each is aligned as
/// its allocator wants it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Grid {
    /// What a request has to be raised by before it is cut down to the grid: its guard, and the
    /// grid less one.
    raise: usize,
    pub(super) mask: usize,
}

impl Grid {
    /// Makes the grid for starts that are multiples of `alignment`, a power of two of at most a
    /// quarter of the address space. A ring is built with a grid of which one block is at most
    /// `MAX_BYTES`; the builder refuses others.
    pub(crate) fn new(alignment: usize) -> Self {
        let step = alignment.max(UNIT);
        Self { raise: GUARD + step - 1, mask: !(step - 1) }
    }

    pub(super) fn step(self) -> usize {
        !self.mask + 1
    }

    /// Returns the alignment that every block has.
    pub(crate) fn alignment(self) -> usize {
        self.step()
    }

    /// Returns the bytes of a block for `bytes` bytes, at most `MAX_BYTES`, with its guard. The
    /// result is a multiple of a unit.
    #[inline(always)]
    pub(crate) fn block_bytes(self, bytes: usize) -> usize {
        (bytes + self.raise) & self.mask
    }

    /// Returns the distance from one guard to the next, in units, for a block of `bytes` bytes.
    #[inline(always)]
    pub(crate) fn units(self, bytes: usize) -> usize {
        self.block_bytes(bytes) / UNIT
    }
}

/// Returns the bytes of a block that has `units` from its guard to the next one, none for none.
#[inline]
pub(crate) fn room(units: usize) -> usize {
    (units * UNIT).saturating_sub(GUARD)
}

/// Where the parts of the bookkeeping stand, in bytes from the region's start.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Layout {
    pub(super) control: usize,
    /// The guard at the front; the first block's guard comes right behind it.
    pub(super) front: usize,
    /// The first block.
    pub(super) memory: usize,
}

impl Layout {
    /// Computes the layout of a region that starts at `address`. Returns `None` when it cannot be
    /// counted in a `usize`.
    fn new(address: usize, grid: Grid) -> Option<Self> {
        let first = size::align_up(address, UNIT)?;
        let memory = size::align_up(first.checked_add(CONTROL + 2 * GUARD)?, grid.step())?;
        let front = memory - 2 * GUARD - address;
        Some(Self { control: front - CONTROL, front, memory: memory - address })
    }

    /// Computes the layout of a region of `len` bytes that starts at `address`, for `blocks` bytes
    /// of blocks or for all that there is room for. Returns it with the bytes of the blocks, which
    /// are at least one block's.
    ///
    /// # Errors
    ///
    /// The error is the bytes that the region would need.
    pub(super) fn within(
        address: usize,
        len: usize,
        grid: Grid,
        blocks: Option<usize>,
    ) -> Result<(Self, usize), usize> {
        let layout = Self::new(address, grid).ok_or(usize::MAX)?;
        let most = len.saturating_sub(layout.memory).min(MAX_BYTES) & grid.mask;
        let blocks = blocks.unwrap_or(most).max(grid.block_bytes(1));
        let required = blocks.saturating_add(layout.memory);
        if required > len { Err(required) } else { Ok((layout, blocks)) }
    }
}

/// Returns the bytes of bookkeeping, wherever the region starts, beside those of the blocks.
/// Returns `None` when there is no such number.
pub(crate) fn overhead_bytes(grid: Grid) -> Option<usize> {
    // The worst start is one byte behind an aligned address.
    Layout::new(0, grid)?.memory.checked_add(grid.step())
}

/// Returns the bytes of `buffers` blocks for `capacity` bytes together, with their guards and room
/// to round each size up, or `None` when there is no such number.
pub(crate) fn blocks_bytes(capacity: usize, buffers: usize, grid: Grid) -> Option<usize> {
    let all = capacity.checked_add(grid.raise.checked_mul(buffers)?)?;
    Some(all & grid.mask)
}

/// Returns the largest capacity for which `buffers` blocks have at most `MAX_BYTES`, or 0.
pub(crate) fn most_capacity(buffers: usize, grid: Grid) -> usize {
    most_bytes(grid).saturating_sub(grid.raise.saturating_mul(buffers))
}

/// Returns the most buffers with which blocks for `capacity` bytes have at most `MAX_BYTES`. One
/// buffer can have the capacity.
pub(crate) fn most_buffers(capacity: usize, grid: Grid) -> usize {
    (most_bytes(grid) - capacity) / grid.raise
}

/// Returns the most bytes that are at most `MAX_BYTES` when they are cut down to the grid.
fn most_bytes(grid: Grid) -> usize {
    (MAX_BYTES & grid.mask) + grid.step() - 1
}
