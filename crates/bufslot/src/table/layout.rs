//! Where the parts of the bookkeeping stand in the region.

use bufcore::size;
use bufkit::{ControlBlock, FreedList};

use super::gaps::Gaps;
use super::slot::Slot;

/// What the bookkeeping begins with.
#[repr(C)]
pub(super) struct Head {
    pub(super) control: ControlBlock,
    /// The slots that were watched, and are released.
    pub(super) freed: FreedList,
}

// A late release goes from the head to its control block.
const _: () = assert!(core::mem::offset_of!(Head, control) == 0);

/// Where the parts of the bookkeeping stand, in bytes from the region's start.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Layout {
    pub(super) control: usize,
    pub(super) slots: usize,
    pub(super) gaps: usize,
    pub(super) memory: usize,
    /// Of the buffers.
    pub(super) alignment: usize,
}

impl Layout {
    /// Computes the layout for `slots` slots in a region that starts at `address`. Returns `None`
    /// when they cannot be counted in a `usize`.
    pub(crate) fn new(address: usize, slots: usize, alignment: usize) -> Option<Self> {
        let control = size::align_up(address, align_of::<Slot>().max(align_of::<Head>()))?;
        let table = size::align_up(control.checked_add(size_of::<Head>())?, align_of::<Slot>())?;
        let bytes = slots.checked_add(1)?.checked_mul(size_of::<Slot>())?;
        let gaps = table.checked_add(bytes)?;
        let memory = size::align_up(gaps.checked_add(Gaps::bytes(slots))?, alignment)?;
        Some(Self {
            control: control - address,
            slots: table - address,
            gaps: gaps - address,
            memory: memory - address,
            alignment,
        })
    }

    /// Returns the bytes in front of the memory that is handed out.
    pub(crate) fn overhead(&self) -> usize {
        self.memory
    }
}

/// Returns the bytes of bookkeeping for `slots` slots wherever the region starts, or `None` when
/// there is no such number.
pub(crate) fn overhead_bytes(slots: usize, alignment: usize) -> Option<usize> {
    // The worst start is one byte behind an aligned address.
    let alignment = alignment.max(align_of::<Slot>());
    Layout::new(0, slots, alignment)?.overhead().checked_add(alignment)
}

/// Bytes from the head to the first slot: `Layout` put the table right behind it, at the
/// next multiple of a slot's alignment.
pub(super) const TABLE_OFFSET: usize = size_of::<Head>().next_multiple_of(align_of::<Slot>());
