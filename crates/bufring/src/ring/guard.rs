//! The guard of each block.

use core::cell::Cell;
use core::ptr::NonNull;

use bufcore::author::RefCount;
use bufkit::SlotState;

/// Blocks are measured in units of this number of bytes, so that a `u32` reaches to 64 GiB.
pub(crate) const UNIT: usize = 16;

/// Bytes of a guard: what each buffer takes beside its own.
pub(crate) const GUARD: usize = size_of::<Guard>();

/// Where a guard is. Made from the region's own pointer, so that it reaches all of the region.
pub(crate) type GuardPtr = NonNull<Guard>;

/// Stands in front of a block, at a multiple of a unit. It has no padding, so a guard that is
/// merged into a block leaves initialised bytes.
#[cfg_attr(not(loom), repr(C, align(8)))]
#[cfg_attr(loom, repr(C, align(16)))]
pub(crate) struct Guard {
    /// Shared by the allocator and the lease. The two guards at the ends are held.
    pub(super) state: SlotState,
    /// How many frozen views share the buffer. Used by `bufcore` only.
    pub(super) views: RefCount,
    /// Units from this guard to the next one; 0 for the guard at the end.
    pub(super) size: Cell<u32>,
    /// Units from the guard in front to this one; 0 for the guard at the front. After the
    /// allocator's end, those from the guard at the front.
    pub(super) before: Cell<u32>,
}

#[cfg(not(loom))]
const _: () = assert!(GUARD == 16, "four words, and no padding");
const _: () = assert!(GUARD.is_multiple_of(UNIT), "a block starts where its guard ends");

// A release goes from a guard to its state.
const _: () = assert!(core::mem::offset_of!(Guard, state) == 0);

impl Guard {
    pub(super) fn new(state: SlotState, size: u32, before: u32) -> Self {
        Self { state, views: RefCount::new(), size: Cell::new(size), before: Cell::new(before) }
    }
}

/// Returns the first byte of the guard's block.
///
/// # Safety
///
/// `at` is a guard of a ring, made from the region's own pointer.
#[inline(always)]
pub(super) unsafe fn data(at: GuardPtr) -> NonNull<u8> {
    // SAFETY: a guard is in the region, so the byte behind it is as well, or one past its end.
    unsafe { at.byte_add(GUARD) }.cast()
}
