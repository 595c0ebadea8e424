//! One slot: what the pool and a lease know of a buffer's place.

use core::cell::Cell;
use core::ops::Range;

use bufcore::strategy::Views;
use bufcore::strategy::sync::AtomicU32;

#[cfg(any(feature = "wipe", feature = "stats"))]
use super::control::Control;

/// The slot is free: its memory may be carved again.
pub(super) const FREE: u32 = 0;
/// A buffer or the open frame owns the slot.
pub(super) const LIVE: u32 = 1;
/// A buffer owned the slot when its pool ended: its release is counted in the control block, and
/// leaves the state as it is.
pub(super) const ORPHANED: u32 = 2;

/// The sentinel, which holds no buffer and is never free.
const SENTINEL: u32 = 3;

/// The slot was free when its pool ended, or its release was found afterwards.
pub(super) const SETTLED: u32 = 4;

/// No slot.
pub(crate) const NONE: u32 = u32::MAX;

/// A buffer owns the slot, and its release is an exchange that sees whether it was told of a
/// request that waits.
#[cfg(feature = "alloc")]
pub(super) const WATCHED: u32 = 5;
/// As `WATCHED`, and the buffer was told that a request waits. These are the low bits of the state;
/// in the others is where the slot stands, which the release needs to find the control block.
#[cfg(feature = "alloc")]
pub(super) const WAITED: u32 = 6;
/// The slot holds no buffer, and memory that `trim_idle` has put aside (see `trim`). Only the pool
/// makes it so, and makes it free again.
pub(super) const PARKED: u32 = 7;
/// The low bits of a state.
#[cfg(feature = "alloc")]
pub(super) const KIND: u32 = 31;
#[cfg(feature = "alloc")]
const _: () = assert!(STEP & KIND == 0 && WAITED <= KIND, "where a slot stands is in other bits");

/// The most slots that a pool can have: the sentinel's place, in bytes, has to fit in a `u32` below
/// `NONE`.
pub(crate) const MAX_SLOTS: usize = (u32::MAX as usize - 1) / size_of::<Slot>() - 1;

/// The distance from one slot to the next, in bytes. Slots are named by where they stand in the
/// table, in bytes, because that saves the multiplication on each of the dependent loads of an
/// acquire.
pub(crate) const STEP: u32 = size_of::<Slot>() as u32;

/// One buffer's place.
#[repr(C, align(32))]
pub(super) struct Slot {
    /// `FREE`, `LIVE`, `SENTINEL`, and after the pool's end `ORPHANED` or `SETTLED`. Set to `LIVE`
    /// by the pool, to `FREE` by the lease. Instead of `LIVE` it is `WATCHED` or `WAITED` for
    /// buffers that may be waited for; only the pool makes it `WAITED`. `PARKED` is a slot of the
    /// pool's own.
    pub(super) state: AtomicU32,
    /// How many frozen views share the buffer. Used by `bufcore` only.
    pub(super) views: Views,
    /// Address of the buffer's first byte, in the memory; for the sentinel, that of the memory's
    /// end.
    pub(super) start: Cell<usize>,
    /// Address behind its last byte; for the sentinel, that of the memory's start.
    pub(super) end: Cell<usize>,
    /// Neighbours in the list, or `next` in the stack. There, and after the pool's end, `prev` is
    /// where this very slot stands.
    pub(super) prev: Cell<u32>,
    pub(super) next: Cell<u32>,
    #[cfg(any(feature = "wipe", feature = "stats"))]
    pub(super) extra: Extra,
}

impl Slot {
    /// The slot at `at` as a table starts with it: free and on the stack, or the sentinel around an
    /// empty list. `memory` is the addresses of what is handed out.
    pub(super) fn new(
        at: u32,
        sentinel: u32,
        memory: Range<usize>,
        #[cfg(any(feature = "wipe", feature = "stats"))] control: *const Control,
    ) -> Self {
        Self {
            state: AtomicU32::new(if at == sentinel { SENTINEL } else { FREE }),
            views: Views::new(),
            start: Cell::new(memory.end),
            end: Cell::new(memory.start),
            prev: Cell::new(at),
            next: Cell::new(match at {
                _ if at == sentinel => sentinel,
                _ if at + STEP == sentinel => NONE,
                _ => at + STEP,
            }),
            #[cfg(any(feature = "wipe", feature = "stats"))]
            extra: Extra { control: Cell::new(control), capacity: Cell::new(0) },
        }
    }
}

/// What a lease has to know for the optional features; written while the slot is free, read while
/// it is live.
#[cfg(any(feature = "wipe", feature = "stats"))]
pub(super) struct Extra {
    pub(super) control: Cell<*const Control>,
    pub(super) capacity: Cell<usize>,
}
