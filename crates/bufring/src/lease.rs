//! What a buffer keeps of the ring it came from.

use core::ptr::NonNull;

use bufcore::strategy::Views;
use bufcore::{Buf, Frozen, Lease, SplitLease};

use crate::ring::GuardHandle;

/// A buffer of a [`RingPool`](crate::RingPool).
pub type RingBuf = Buf<RingLease>;

/// A view of a buffer of a [`RingPool`](crate::RingPool).
pub type RingView = Frozen<RingLease>;

/// The lease of a [`RingPool`](crate::RingPool)'s buffer.
#[derive(Debug)]
pub struct RingLease {
    pub(crate) handle: GuardHandle,
}

// SAFETY:
// - memory: a block is handed out again only after its handle has stored that it is free, and the
//   region is freed only when all have (`ring`).
// - copies: a handle is raw pointers to shared atomics.
// - count: in the guard, which nobody else uses while the block is live; none for a buffer of no
//   bytes.
// - wipe, start: the block's memory, as handed out.
unsafe impl Lease for RingLease {
    #[inline]
    fn views(&self) -> Option<&Views> {
        self.handle.views()
    }

    #[inline(always)]
    fn is_shared(&self) -> bool {
        self.handle.is_shared()
    }

    #[cfg(feature = "wipe")]
    #[inline]
    fn wipe_range(&self) -> Option<NonNull<[u8]>> {
        self.handle.wipe_range()
    }

    #[cfg(not(feature = "wipe"))]
    #[inline]
    fn wipe_range(&self) -> Option<NonNull<[u8]>> {
        None
    }

    fn start(&self) -> Option<NonNull<u8>> {
        self.handle.start()
    }

    fn another_of_nothing(&self) -> Option<Self> {
        Some(SplitLease::nothing())
    }
}

// SAFETY: the mark is in the pointer, which is what copies are made of; a new lease has none, as
// guards are aligned.
unsafe impl SplitLease for RingLease {
    #[inline]
    fn into_shared(self) -> Self {
        Self { handle: self.handle.into_shared() }
    }

    #[inline]
    fn nothing() -> Self {
        Self { handle: GuardHandle::nothing() }
    }
}
