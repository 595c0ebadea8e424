//! Where the parts of the bookkeeping stand in the region, and how sizes are rounded.

use bufcore::size;

use super::control::CONTROL;
use super::guard::{GUARD, PLACE, TABLE_FROM, UNIT};

/// The most bytes of blocks and their guards that a ring counts.
pub(crate) const MAX_BYTES: usize = {
    let counted = u32::MAX as u64 * UNIT as u64;
    if counted < size::MAX_BYTES as u64 { counted as usize } else { size::MAX_BYTES }
};

/// Units of a place in a table of guards.
const PLACE_UNITS: usize = PLACE / UNIT;
const _: () = assert!(
    cfg!(loom) || MAX_BYTES / TABLE_FROM * PLACE_UNITS <= u32::MAX as usize,
    "the places of a table are counted in a `u32` of units"
);

/// How sizes are rounded: blocks have a number of bytes such that the start of each is aligned as
/// its allocator wants it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Grid {
    /// What a request has to be raised by before it is cut down to the grid: its guard, if that is
    /// in front of the block, and the grid less one.
    raise: usize,
    pub(super) mask: usize,
    /// Whether the guards are in a table.
    has_table: bool,
}

impl Grid {
    /// Makes the grid for starts that are multiples of `alignment`, a power of two of at most a
    /// quarter of the address space. A ring is built with a grid of which one block is at most
    /// `MAX_BYTES`; the builder refuses others.
    pub(crate) fn new(alignment: usize) -> Self {
        let step = alignment.max(UNIT);
        let has_table = step >= TABLE_FROM;
        let guard = if has_table { 0 } else { GUARD };
        Self { raise: guard + step - 1, mask: !(step - 1), has_table }
    }

    pub(super) fn step(self) -> usize {
        !self.mask + 1
    }

    /// Returns the alignment that every block has.
    pub(crate) fn alignment(self) -> usize {
        self.step()
    }

    /// Returns whether the guards are in a table, and not in front of their blocks.
    pub(crate) fn has_table(self) -> bool {
        self.has_table
    }

    /// Returns the bytes of a block for `bytes` bytes, at most `MAX_BYTES`: with its guard, if that
    /// is in front of it. The result is a multiple of a unit.
    #[inline(always)]
    pub(crate) fn block_bytes(self, bytes: usize) -> usize {
        (bytes + self.raise) & self.mask
    }

    /// Returns the units of a block for `bytes` bytes, where guards are in front of their blocks.
    #[inline(always)]
    pub(crate) fn units_in_front(self, bytes: usize) -> usize {
        self.block_bytes(bytes) / UNIT
    }

    /// Returns the distance from one guard to the next, in units, for a block of `bytes` bytes.
    pub(crate) fn units(self, bytes: usize) -> usize {
        self.units_of(self.block_bytes(bytes))
    }

    /// Returns the distance from one guard to the next, in units, for `block_bytes` bytes of a
    /// block.
    pub(super) fn units_of(self, block_bytes: usize) -> usize {
        if self.has_table { block_bytes / self.step() * PLACE_UNITS } else { block_bytes / UNIT }
    }
}

/// Returns the bytes of a block that has `units` from its guard to the next one, none for none.
/// `step` is that of the table, or 0.
#[inline]
pub(super) fn room(units: usize, step: usize) -> usize {
    if step == 0 { (units * UNIT).saturating_sub(GUARD) } else { units / PLACE_UNITS * step }
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
    /// Computes the layout for `blocks` bytes of blocks in a region that starts at `address`.
    /// Returns `None` when they cannot be counted in a `usize`.
    fn new(address: usize, grid: Grid, blocks: usize) -> Option<Self> {
        let first = size::align_up(address, UNIT)?;
        if grid.has_table {
            // Guards in a table stand half a unit behind a multiple of one (`is_in_table`).
            let control = first.checked_add(UNIT / 2)?;
            let front = control.checked_add(CONTROL)?;
            let places = (blocks / grid.step()).checked_mul(PLACE)?;
            let table = front.checked_add(2 * GUARD)?.checked_add(places)?;
            let memory = size::align_up(table, grid.step())?;
            return Some(Self {
                control: control - address,
                front: front - address,
                memory: memory - address,
            });
        }
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
        let blocks = blocks.unwrap_or_else(|| Self::most(address, len, grid)).max(grid.block_bytes(1));
        let layout = Self::new(address, grid, blocks).ok_or(usize::MAX)?;
        let required = blocks.saturating_add(layout.memory);
        if required > len { Err(required) } else { Ok((layout, blocks)) }
    }

    /// Returns the most bytes of blocks in a region of `len` bytes that starts at `address`; none
    /// when it is too small.
    fn most(address: usize, len: usize, grid: Grid) -> usize {
        let left =
            |blocks| Self::new(address, grid, blocks).map_or(0, |layout| len.saturating_sub(layout.memory));
        if !grid.has_table {
            return left(0).min(MAX_BYTES) & grid.mask;
        }
        let step = grid.step();
        // The bytes that the table takes besides may be so much that one block less has room.
        let most = left(0).min(MAX_BYTES) / (step + PLACE) + 1;
        let fits = |&places: &usize| places * step <= left(places * step);
        (0..=most).rev().find(fits).unwrap_or(0) * step
    }
}

/// Returns the bytes of bookkeeping, wherever the region starts, beside `blocks` bytes of blocks.
/// Returns `None` when there is no such number.
pub(crate) fn overhead_bytes(grid: Grid, blocks: usize) -> Option<usize> {
    // The worst start is one byte behind an aligned address.
    Layout::new(0, grid, blocks)?.memory.checked_add(grid.step())
}

/// Returns the bytes of `buffers` blocks for `capacity` bytes together, or `None` when there is no
/// such number.
///
/// Guards in front of blocks are in it, and room to round each size up. In a ring with a table
/// there are neither: it has room for `buffers` blocks of one size, or one of all bytes.
pub(crate) fn blocks_bytes(capacity: usize, buffers: usize, grid: Grid) -> Option<usize> {
    if grid.has_table {
        let step = grid.step();
        let each = size::align_up((capacity / buffers).max(1), step)?;
        return Some(each.checked_mul(buffers)?.max(size::align_up(capacity, step)?));
    }
    let all = capacity.checked_add(grid.raise.checked_mul(buffers)?)?;
    Some(all & grid.mask)
}

/// Returns the largest capacity for which `buffers` blocks have at most `MAX_BYTES`, or 0.
pub(crate) fn most_capacity(buffers: usize, grid: Grid) -> usize {
    if grid.has_table {
        // `blocks_bytes` rounds the share of a buffer down, so `buffers - 1` bytes more have the
        // same shares; together they are at most all blocks.
        let shares = ((MAX_BYTES / buffers) & grid.mask) * buffers + (buffers - 1);
        return shares.min(MAX_BYTES & grid.mask);
    }
    most_bytes(grid).saturating_sub(grid.raise.saturating_mul(buffers))
}

/// Returns the most buffers with which blocks for `capacity` bytes have at most `MAX_BYTES`. One
/// buffer can have the capacity.
pub(crate) fn most_buffers(capacity: usize, grid: Grid) -> usize {
    if grid.has_table {
        return MAX_BYTES / grid.step();
    }
    (most_bytes(grid) - capacity) / grid.raise
}

/// Returns the most bytes that are at most `MAX_BYTES` when they are cut down to the grid.
fn most_bytes(grid: Grid) -> usize {
    (MAX_BYTES & grid.mask) + grid.step() - 1
}
