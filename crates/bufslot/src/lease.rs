//! What a buffer keeps of the slot pool it came from.

use core::ptr::NonNull;

use bufcore::Lease;
use bufcore::strategy::Views;

use crate::table::SlotHandle;

/// The lease of a [`SlotPool`](crate::SlotPool) whose fallback's leases are `L`.
#[derive(Debug)]
pub struct SlotLease<L> {
    pub(crate) place: Place<L>,
}

/// Where a buffer's memory is.
#[derive(Debug)]
pub(crate) enum Place<L> {
    /// In a slot of the region.
    Slot(SlotHandle),
    /// With the fallback.
    Fallback(L),
    /// Nowhere: the buffer has no bytes.
    Nowhere,
}

impl<L> SlotLease<L> {
    /// Whether the memory came from the fallback.
    #[must_use]
    pub fn is_fallback(&self) -> bool {
        matches!(self.place, Place::Fallback(_))
    }
}

// SAFETY:
// - memory: a slot is carved again only after its handle has stored that it is free, and the region is freed only when all
//   have (`table`); the fallback's lease promises the same for its own.
// - copies: a handle is one raw pointer to shared atomics.
// - count: in the slot, which nobody else uses while it is live; none for a buffer of no bytes.
// - wipe: the slot's memory, as carved.
unsafe impl<L: Lease> Lease for SlotLease<L> {
    #[inline]
    fn views(&self) -> Option<&Views> {
        match &self.place {
            Place::Slot(handle) => Some(handle.views()),
            Place::Fallback(lease) => lease.views(),
            Place::Nowhere => None,
        }
    }

    #[inline]
    fn is_shared(&self) -> bool {
        match &self.place {
            Place::Fallback(lease) => lease.is_shared(),
            _ => false,
        }
    }

    #[inline]
    fn wipe_range(&self) -> Option<NonNull<[u8]>> {
        match &self.place {
            #[cfg(feature = "wipe")]
            Place::Slot(handle) => handle.wipe_range(),
            Place::Fallback(lease) => lease.wipe_range(),
            _ => None,
        }
    }

    fn another_of_nothing(&self) -> Option<Self> {
        let place = match &self.place {
            Place::Fallback(lease) => Place::Fallback(lease.another_of_nothing()?),
            _ => Place::Nowhere,
        };
        Some(Self { place })
    }
}
