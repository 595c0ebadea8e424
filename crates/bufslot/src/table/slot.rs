//! One slot: what the pool and a lease know of a buffer's place.

use core::cell::Cell;
use core::ops::Range;

use bufcore::author::RefCount;
use bufcore::size;
use bufkit::{ControlBlock, SlotState};

/// No slot.
pub(crate) const NONE: u32 = u32::MAX;

/// The most slots that a pool can have: the sentinel's place, in bytes, has to fit in a `u32` below
/// `NONE`, and beside the table there has to be room for buffers.
pub(crate) const MAX_SLOTS: usize = {
    let (counted, there) = (u32::MAX as usize - 1, size::MAX_BYTES / 4);
    (if counted < there { counted } else { there }) / size_of::<Slot>() - 1
};

/// The distance from one slot to the next, in bytes. Slots are named by where they stand in the
/// table, in bytes, because that saves the multiplication on each of the dependent loads of an
/// acquire.
pub(crate) const STEP: u32 = size_of::<Slot>() as u32;

/// One buffer's place.
#[repr(C, align(32))]
pub(super) struct Slot {
    /// Shared by the pool and the lease. The sentinel, which holds no buffer, is held for ever.
    pub(super) state: SlotState,
    /// How many frozen views share the buffer. Used by `bufcore` only.
    pub(super) views: RefCount,
    /// Address of the buffer's first byte, in the memory; for the sentinel, that behind all that
    /// the pool uses of the memory.
    pub(super) start: Cell<usize>,
    /// Address behind its last byte; for the sentinel, that of the memory's start.
    pub(super) end: Cell<usize>,
    /// Neighbours in the list, or `next` in the stack. There, and after the pool's end, `prev` is
    /// where this very slot stands.
    pub(super) prev: Cell<u32>,
    pub(super) next: Cell<u32>,
    #[cfg(any(feature = "wipe", feature = "stats"))]
    pub(super) control: Cell<*const ControlBlock>,
}

// A release goes from a slot to its state.
const _: () = assert!(core::mem::offset_of!(Slot, state) == 0);

impl Slot {
    /// Makes the slot at `at` as it is in a new table: free and on the stack, or the sentinel
    /// around an empty list. `memory` is the addresses of what is handed out.
    pub(super) fn new(at: u32, sentinel: u32, memory: Range<usize>, control: *const ControlBlock) -> Self {
        #[cfg(not(any(feature = "wipe", feature = "stats")))]
        let _ = control;
        Self {
            state: if at == sentinel { SlotState::held() } else { SlotState::free() },
            views: RefCount::new(),
            start: Cell::new(memory.end),
            end: Cell::new(memory.start),
            prev: Cell::new(at),
            next: Cell::new(match at {
                _ if at == sentinel => sentinel,
                _ if at + STEP == sentinel => NONE,
                _ => at + STEP,
            }),
            #[cfg(any(feature = "wipe", feature = "stats"))]
            control: Cell::new(control),
        }
    }
}
