//! The part of the ring of guards that serves a request which waits.

use core::ptr::NonNull;

use bufcore::strategy::{Holder, Taken, WaitPlace};

use super::Ring;
use super::control::{CONTROL, Control};
use super::guard::{At, UNIT};

impl Ring {
    /// Returns the place of the request that waits.
    pub(crate) fn waiter(&self) -> &WaitPlace {
        &self.control().waiter
    }

    /// Looks at how a block is held that is not the allocator's own.
    pub(crate) fn look(&self, at: At) -> Holder {
        self.guard(at).state.look()
    }

    /// Tells the lease of a block, unless it is free, that somebody waits, who is in the place
    /// already. Returns how the block was held.
    ///
    /// Cost: a locked instruction.
    pub(crate) fn tell(&self, at: At) -> Holder {
        self.guard(at).state.tell(self.distance(at))
    }

    /// Returns the units from the guard `first` to the one behind the block of `last`, which is not
    /// in front of it.
    pub(crate) fn units_between(&self, first: At, last: At) -> usize {
        (self.next(last).addr().get() - first.addr().get()) / UNIT
    }
}

/// Takes out who waits, for the release of a block that was told by its number.
///
/// # Safety
///
/// The guard is one of a ring, which told it that it is `distance` units behind the guard at the
/// front. It is not free, and so its allocator's control block is there.
pub(super) unsafe fn take_waiter(guard: At, distance: u32) -> Option<Taken> {
    let back = distance as usize * UNIT + CONTROL;
    // SAFETY: so far behind its control block stands the guard, in one region, which is all in
    // reach of the handle's pointer.
    let control: NonNull<Control> = unsafe { guard.byte_sub(back) }.cast();
    // SAFETY: valid while the block is not free. Only this field is borrowed, which is atomic.
    let waiter = unsafe { &(*control.as_ptr()).waiter };
    waiter.take()
}
