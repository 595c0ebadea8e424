//! The guard of each block.

use core::cell::Cell;
use core::ptr::NonNull;

use bufcore::strategy::{ReleaseState, Views};

/// Blocks are measured in units of this number of bytes, so that a `u32` reaches to 64 GiB.
pub(crate) const UNIT: usize = 16;

/// Bytes of a guard: what each buffer takes beside its own.
pub(crate) const GUARD: usize = size_of::<Guard>();

/// Bytes of a guard's place in a table: the guard, and the address of its block's first byte.
pub(super) const PLACE: usize = GUARD.next_multiple_of(UNIT) + UNIT;

/// From this alignment on, guards are in a table of their own, and not in front of their blocks:
/// there each would take a whole alignment from blocks that are multiples of it. A table takes at
/// most a sixteenth of what its blocks have.
///
/// Not in models: where a guard stands is in its address, and the guards of models are larger.
pub(super) const TABLE_FROM: usize = if cfg!(loom) { usize::MAX } else { 512 };

/// Where a guard is. Made from the region's own pointer, so that it reaches all of the region.
pub(crate) type At = NonNull<Guard>;

/// Stands in front of a block, at a multiple of a unit, or in a table, half a unit behind one. It
/// has no padding, so a guard that is merged into a block leaves initialised bytes.
#[cfg_attr(not(loom), repr(C, align(8)))]
#[cfg_attr(loom, repr(C, align(16)))]
pub(crate) struct Guard {
    /// Shared by the allocator and the lease. The two guards at the ends are held for ever. A
    /// parked block is put aside by `trim_idle` (see `trim`).
    pub(super) state: ReleaseState,
    /// How many frozen views share the buffer. Used by `bufcore` only.
    pub(super) views: Views,
    /// Units from this guard to the next one; 0 for the guard at the end. In a table, those of the
    /// places between the two.
    pub(super) size: Cell<u32>,
    /// Units from the guard in front to this one; 0 for the guard at the front. After the
    /// allocator's end, those from the guard at the front.
    pub(super) before: Cell<u32>,
}

#[cfg(not(loom))]
const _: () = assert!(GUARD == 16, "four words, and no padding");
const _: () = assert!(GUARD.is_multiple_of(UNIT), "a block starts where its guard ends");
#[cfg(not(loom))]
const _: () = assert!(align_of::<Guard>() >= align_of::<usize>(), "an address is behind a guard in a table");

// A release goes from a guard to its state.
const _: () = assert!(core::mem::offset_of!(Guard, state) == 0);

impl Guard {
    pub(super) fn new(state: ReleaseState, size: u32, before: u32) -> Self {
        Self { state, views: Views::new(), size: Cell::new(size), before: Cell::new(before) }
    }
}

/// Returns whether the guard is in a table.
#[inline]
pub(super) fn is_in_table(at: At) -> bool {
    !cfg!(loom) && !at.addr().get().is_multiple_of(UNIT)
}

/// Returns the first byte of the guard's block.
///
/// # Safety
///
/// `at` is a guard that has a block, made from the region's own pointer. If it is in a table,
/// [`set_data`] was called for it, and nobody calls that meanwhile.
#[inline]
pub(super) unsafe fn data(at: At) -> NonNull<u8> {
    // SAFETY: in front of a block stands its guard; in a table there are as many bytes behind it.
    let behind = unsafe { at.byte_add(GUARD) };
    if !is_in_table(at) {
        return behind.cast();
    }
    // SAFETY: the address behind a guard in a table, which was written; the place is aligned as the
    // guard is.
    let address = unsafe { behind.cast::<usize>().read() };
    let byte = at.cast::<u8>().as_ptr().with_addr(address);
    // SAFETY: no byte of a region is at address zero.
    unsafe { NonNull::new_unchecked(byte) }
}

/// Notes where the block of the guard starts, which is in a table.
///
/// # Safety
///
/// `at` is a place in the table of a region, made from the region's own pointer. The block is the
/// ring's own, and `address` is in the region.
pub(super) unsafe fn set_data(at: At, address: usize) {
    debug_assert!(is_in_table(at));
    // SAFETY: a place in the table has `GUARD` bytes behind its guard.
    let behind = unsafe { at.byte_add(GUARD) }.cast::<usize>();
    // SAFETY: likewise; nobody else uses them. They are aligned as the guard is.
    unsafe { behind.write(address) };
}
