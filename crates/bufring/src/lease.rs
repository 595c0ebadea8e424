//! What a buffer keeps of the ring it came from.

use core::ptr::NonNull;

use bufcore::Lease;
use bufcore::strategy::Views;

use crate::guard::GuardHandle;

/// The lease of a [`RingPool`](crate::RingPool)'s buffer.
#[derive(Debug)]
pub struct RingLease {
    /// `None` for a buffer of no bytes, which holds nothing.
    pub(crate) handle: Option<GuardHandle>,
}

// SAFETY:
// - memory: a block is handed out again only after its handle has stored that it is free, and the region is freed only when all
//   have (`ring`).
// - copies: a handle is raw pointers to shared atomics.
// - count: in the guard, which nobody else uses while the block is live; none for a buffer of no bytes.
// - wipe: the block's memory, as handed out.
unsafe impl Lease for RingLease {
    #[inline]
    fn views(&self) -> Option<&Views> {
        self.handle.as_ref().map(GuardHandle::views)
    }

    #[cfg(feature = "wipe")]
    #[inline]
    fn wipe_range(&self) -> Option<NonNull<[u8]>> {
        self.handle.as_ref().and_then(GuardHandle::wipe_range)
    }

    #[cfg(not(feature = "wipe"))]
    #[inline]
    fn wipe_range(&self) -> Option<NonNull<[u8]>> {
        None
    }

    fn another_of_nothing(&self) -> Option<Self> {
        Some(Self { handle: None })
    }
}
