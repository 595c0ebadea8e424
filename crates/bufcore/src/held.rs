//! The lease inside a buffer, with what happens around its release for every strategy alike.

use core::mem::ManuallyDrop;
use core::ptr;

use crate::Lease;
use crate::track::Ticket;

/// A lease and the tracker's ticket for it. Dropping it wipes, if the pool asked for that, and releases.
pub(crate) struct Held<L: Lease> {
    pub(crate) lease: L,
    pub(crate) ticket: Ticket,
}

impl<L: Lease> Held<L> {
    /// Takes the two apart without wiping or releasing.
    #[inline]
    pub(crate) fn into_parts(self) -> (L, Ticket) {
        let held = ManuallyDrop::new(self);
        // SAFETY: `held` is never dropped, so this moves the lease out, once.
        let lease = unsafe { ptr::read(&raw const held.lease) };
        // SAFETY: likewise for the ticket.
        let ticket = unsafe { ptr::read(&raw const held.ticket) };
        (lease, ticket)
    }
}

#[cfg(feature = "wipe")]
impl<L: Lease> Drop for Held<L> {
    #[inline]
    fn drop(&mut self) {
        if cfg!(bufworks_broken = "nowipe") {
            return;
        }
        if let Some(range) = self.lease.wipe_range() {
            // SAFETY: the range is the memory of a lease that is being dropped (`Lease`, rule 4): valid, initialised, and by
            // rule 1 exclusive to this last holder.
            unsafe { crate::strategy::wipe(range) };
        }
    }
}
