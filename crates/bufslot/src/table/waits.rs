//! The part of the table that serves a request which waits.

use core::ptr::NonNull;

use bufcore::strategy::sync::Ordering;
use bufcore::strategy::{Holder, Taken, WaitPlace};

use super::Table;
use super::control::Control;
use super::layout::TABLE_OFFSET;
use super::slot::{FREE, KIND, LIVE, Slot, WAITED, WATCHED};

impl Table {
    /// The place of the request that waits.
    pub(crate) fn waiter(&self) -> &WaitPlace {
        &self.control().waiter
    }

    /// Looks at how a slot is held that is not the pool's own.
    pub(crate) fn look(&self, at: u32) -> Holder {
        // ORDER: Relaxed: only compared. Whoever looks for memory afterwards looks with Acquire.
        holder(self.slots.slot(at).state.load(Ordering::Relaxed))
    }

    /// Tells the lease of a slot, unless it is free, that somebody waits, who is in the place
    /// already. Returns how the slot was held.
    ///
    /// Cost: a locked instruction.
    pub(crate) fn tell(&self, at: u32) -> Holder {
        let state = &self.slots.slot(at).state;
        // ORDER: Relaxed, also on failure: as in `look`.
        let mut seen = state.load(Ordering::Relaxed);
        // Also where the slot was told before: the release that is under way takes out who is in
        // the place, and who was put there since is to be found by it, or by its next look.
        while seen != FREE {
            // ORDER: Release pairs with the Acquire in `SlotHandle::free_watched`.
            let exchange = state.compare_exchange(seen, at | WAITED, Ordering::Release, Ordering::Relaxed);
            match exchange {
                Ok(_) => break,
                Err(now) => seen = now,
            }
        }
        holder(seen)
    }
}

/// How a slot of this state is held.
fn holder(state: u32) -> Holder {
    match state {
        FREE => Holder::Nobody,
        LIVE => Holder::Plain,
        WATCHED => Holder::Watched,
        _ => Holder::Told,
    }
}

/// Takes out who waits, for the release of a slot whose state was `told`.
///
/// # Safety
///
/// The slot is one of a table, which told it by `told`; it is not free, and so its pool's control
/// block is there.
pub(super) unsafe fn take_waiter(slot: NonNull<Slot>, told: u32) -> Option<Taken> {
    debug_assert_eq!(told & KIND, WAITED, "a slot is released once");
    let back = (told & !KIND) as usize + TABLE_OFFSET;
    // SAFETY: so far behind its control block stands the slot, in one region, which is all in reach
    // of the handle's pointer.
    let control = unsafe { slot.cast::<u8>().sub(back) }.cast::<Control>();
    // SAFETY: valid while the slot is not free. Only this field is borrowed, which is atomic.
    let waiter = unsafe { &(*control.as_ptr()).waiter };
    waiter.take()
}
