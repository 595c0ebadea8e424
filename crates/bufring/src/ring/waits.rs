//! The part of the ring of guards that serves a request which waits.

use core::ptr::NonNull;

use bufcore::strategy::sync::Ordering;
use bufcore::strategy::{Holder, Taken, WaitPlace};

use super::Ring;
use super::control::{CONTROL, Control};
use super::guard::{At, FREE, LIVE, UNIT, WAITED, WATCHED};

impl Ring {
    /// The place of the request that waits.
    pub(crate) fn waiter(&self) -> &WaitPlace {
        &self.control().waiter
    }

    /// Looks at how a block is held that is not the allocator's own.
    pub(crate) fn look(&self, at: At) -> Holder {
        // ORDER: Relaxed: only compared. Whoever looks for memory afterwards looks with Acquire.
        holder(self.guard(at).state.load(Ordering::Relaxed))
    }

    /// Tells the lease of a block, unless it is free, that somebody waits, who is in the place
    /// already. Returns how the block was held.
    ///
    /// Cost: a locked instruction.
    pub(crate) fn tell(&self, at: At) -> Holder {
        let state = &self.guard(at).state;
        let word = self.distance(at) + WAITED;
        // ORDER: Relaxed, also on failure: as in `look`.
        let mut seen = state.load(Ordering::Relaxed);
        // Also where the block was told before: the release that is under way takes out who is in
        // the place, and who was put there since is to be found by it, or by its next look.
        while seen != FREE {
            // ORDER: Release pairs with the Acquire in `GuardHandle::free_watched`.
            let exchange = state.compare_exchange(seen, word, Ordering::Release, Ordering::Relaxed);
            match exchange {
                Ok(_) => break,
                Err(now) => seen = now,
            }
        }
        holder(seen)
    }

    /// Units from the guard `first` to the one behind the block of `last`, which is not in front of
    /// it.
    pub(crate) fn units_between(&self, first: At, last: At) -> usize {
        (self.next(last).addr().get() - first.addr().get()) / UNIT
    }
}

/// How a block of this state is held.
fn holder(state: u32) -> Holder {
    match state {
        FREE => Holder::Nobody,
        LIVE => Holder::Plain,
        WATCHED => Holder::Watched,
        _ => Holder::Told,
    }
}

/// Takes out who waits, for the release of a block whose state was `told`.
///
/// # Safety
///
/// The guard is one of a ring, which told it by `told`; it is not free, and so its allocator's
/// control block is there.
pub(super) unsafe fn take_waiter(guard: At, told: u32) -> Option<Taken> {
    debug_assert!(told > WAITED, "a block is released once");
    let back = (told - WAITED) as usize * UNIT + CONTROL;
    // SAFETY: so far behind its control block stands the guard, in one region, which is all in
    // reach of the handle's pointer.
    let control: NonNull<Control> = unsafe { guard.byte_sub(back) }.cast();
    // SAFETY: valid while the block is not free. Only this field is borrowed, which is atomic.
    let waiter = unsafe { &(*control.as_ptr()).waiter };
    waiter.take()
}
