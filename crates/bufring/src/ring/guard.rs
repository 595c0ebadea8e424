//! The guard of each block.

use core::cell::Cell;
use core::ptr::NonNull;

use bufcore::strategy::Views;
use bufcore::strategy::sync::AtomicU32;

/// Blocks are measured in units of this number of bytes, so that a `u32` reaches to 64 GiB.
pub(crate) const UNIT: usize = 16;

/// Bytes of a guard: what each buffer takes beside its own.
pub(crate) const GUARD: usize = size_of::<Guard>();

/// Bytes of a guard's place in a table: the guard, and the address of its block's first byte.
pub(super) const PLACE: usize = GUARD.next_multiple_of(UNIT) + UNIT;

/// From this alignment on, guards stand in a table of their own, and not in front of their blocks:
/// there each would take a whole alignment from blocks that are multiples of it. A table takes at
/// most a sixteenth of what its blocks have.
///
/// Not in models: where a guard stands is in its address, and the guards of models are larger.
pub(super) const TABLE_FROM: usize = if cfg!(loom) { usize::MAX } else { 512 };

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

/// A buffer owns the block, and its release is an exchange that sees whether it was told of a
/// request that waits.
#[cfg(feature = "alloc")]
pub(super) const WATCHED: u32 = 4;
/// As `WATCHED`, and the buffer was told that a request waits: the state is this and the units from
/// the guard at the front, which the release needs to find the control block. There is one at the
/// least.
#[cfg(feature = "alloc")]
pub(super) const WAITED: u32 = WATCHED;
/// The block is free, but put aside by `trim_idle` (see `trim`). Only the allocator makes it so,
/// and makes it free again. No block is so far behind the front that this is a state of `WAITED`:
/// even the last one has two units of its own.
pub(super) const PARKED: u32 = u32::MAX;
/// No guard is so many units behind the one at the front that such a state could not be counted.
pub(super) const MOST_UNITS: u32 = u32::MAX - 4;

/// Stands in front of a block, at a multiple of a unit, or in a table, half a unit behind one. It
/// has no padding, so a guard that is merged into a block leaves initialised bytes.
#[cfg_attr(not(loom), repr(C, align(8)))]
#[cfg_attr(loom, repr(C, align(16)))]
pub(crate) struct Guard {
    /// `FREE`, `LIVE`, and after the allocator's end `ORPHANED` or `SETTLED`. Set to `LIVE` by the
    /// allocator, to `FREE` by the lease. Instead of `LIVE` it is `WATCHED`, or `WAITED` and more,
    /// for buffers that may be waited for; only the allocator makes it the latter. `PARKED` is a
    /// block of the allocator's own.
    pub(super) state: AtomicU32,
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

/// Whether the guard stands in a table.
#[inline]
pub(super) fn is_in_table(at: At) -> bool {
    !cfg!(loom) && !at.addr().get().is_multiple_of(UNIT)
}

/// The first byte of the guard's block.
///
/// # Safety
///
/// `at` is a guard that has a block, made from the region's own pointer. If it stands in a table,
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

/// Notes where the block of the guard starts, which stands in a table.
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
