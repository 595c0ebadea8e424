//! The guard in front of each block.

use core::cell::Cell;
use core::ptr::NonNull;

use bufcore::strategy::Views;
use bufcore::strategy::sync::AtomicU32;

/// Blocks are measured in units of so many bytes, so that a `u32` reaches to 64 GiB.
pub(crate) const UNIT: usize = 16;

/// Bytes of a guard: what each buffer takes beside its own.
pub(crate) const GUARD: usize = size_of::<Guard>();

/// Where a guard is. Made from the region's own pointer, so that it reaches all of the region.
pub(crate) type At = NonNull<Guard>;

/// The block is free: its memory may be handed out.
pub(super) const FREE: u32 = 0;
/// A buffer or an open frame owns the block; or it is one of the two guards at the ends.
pub(super) const LIVE: u32 = 1;
/// A buffer owned the block when its allocator ended: its release is counted in the control block,
/// and leaves the state as it is.
pub(super) const ORPHANED: u32 = 2;
/// The block was free when its allocator ended, or its release was found afterwards.
pub(super) const SETTLED: u32 = 3;

/// Stands in front of a block. It has no padding, so a guard that is merged into a block leaves
/// initialised bytes.
#[repr(C, align(16))]
pub(crate) struct Guard {
    /// `FREE`, `LIVE`, and after the allocator's end `ORPHANED` or `SETTLED`. Set to `LIVE` by the
    /// allocator, to `FREE` by the lease.
    pub(super) state: AtomicU32,
    /// How many frozen views share the buffer. Used by `bufcore` only.
    pub(super) views: Views,
    /// Units from this guard to the next one; 0 for the guard at the end.
    pub(super) size: Cell<u32>,
    /// Units from the guard in front to this one; 0 for the guard at the front. After the
    /// allocator's end, those from the guard at the front.
    pub(super) before: Cell<u32>,
}

#[cfg(not(loom))]
const _: () = assert!(GUARD == 16, "four words, and no padding");
const _: () = assert!(GUARD.is_multiple_of(UNIT), "a block starts where its guard ends");

impl Guard {
    pub(super) fn new(state: u32, size: u32, before: u32) -> Self {
        Self {
            state: AtomicU32::new(state),
            views: Views::new(),
            size: Cell::new(size),
            before: Cell::new(before),
        }
    }
}
