//! The part of the table that serves a request which waits.

use core::ptr::NonNull;

use bufcore::strategy::{Holder, Taken, WaitPlace};

use super::Table;
use super::control::Control;
use super::layout::TABLE_OFFSET;
use super::slot::Slot;

impl Table {
    /// Returns the place of the request that waits.
    pub(crate) fn waiter(&self) -> &WaitPlace {
        &self.control().waiter
    }

    /// Looks at how a slot is held that is not the pool's own.
    pub(crate) fn look(&self, at: u32) -> Holder {
        self.slots.slot(at).state.look()
    }

    /// Tells the lease of a slot, unless it is free, that somebody waits, who is in the place
    /// already. Returns how the slot was held.
    ///
    /// Cost: a locked instruction.
    pub(crate) fn tell(&self, at: u32) -> Holder {
        self.slots.slot(at).state.tell(at)
    }
}

/// Takes out who waits, for the release of a slot that was told by its number.
///
/// # Safety
///
/// The slot is one of a table, which told it that it stands `at` there. It is not free, and so its
/// pool's control block is there.
pub(super) unsafe fn take_waiter(slot: NonNull<Slot>, at: u32) -> Option<Taken> {
    let back = at as usize + TABLE_OFFSET;
    // SAFETY: so far behind its control block stands the slot, in one region, which is all in reach
    // of the handle's pointer.
    let control = unsafe { slot.cast::<u8>().sub(back) }.cast::<Control>();
    // SAFETY: valid while the slot is not free. Only this field is borrowed, which is atomic.
    let waiter = unsafe { &(*control.as_ptr()).waiter };
    waiter.take()
}
