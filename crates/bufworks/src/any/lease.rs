//! What a buffer keeps of a pool whose strategy was chosen at run time.

use core::ptr::NonNull;

use bufcore::strategy::Views;
use bufcore::{Buf, Frozen, Lease, SplitLease};

use super::variants::Of;

/// A buffer of an [`AnyPool`](crate::AnyPool).
pub type AnyBuf = Buf<AnyLease>;

/// A view of a buffer of an [`AnyPool`](crate::AnyPool).
pub type AnyView = Frozen<AnyLease>;

/// The lease of an [`AnyPool`](crate::AnyPool)'s buffer: that of its strategy.
#[derive(Debug)]
pub struct AnyLease {
    pub(super) of: Of,
}

impl AnyLease {
    /// Returns whether the memory was taken from the heap because the strategy had none to give. A
    /// pool that is the heap does not fall back.
    #[must_use]
    #[inline]
    pub fn is_fallback(&self) -> bool {
        self.of.is_fallback()
    }
}

// SAFETY: all as the lease in it has them; which one that is never changes.
unsafe impl Lease for AnyLease {
    #[inline]
    fn views(&self) -> Option<&Views> {
        each!(&self.of, Of(lease) => lease.views())
    }

    #[inline]
    fn is_shared(&self) -> bool {
        each!(&self.of, Of(lease) => lease.is_shared())
    }

    #[inline]
    fn wipe_range(&self) -> Option<NonNull<[u8]>> {
        each!(&self.of, Of(lease) => lease.wipe_range())
    }

    fn start(&self) -> Option<NonNull<u8>> {
        each!(&self.of, Of(lease) => lease.start())
    }

    fn another_of_nothing(&self) -> Option<Self> {
        let of = each!(&self.of, Of(lease) => Of(lease.another_of_nothing()?));
        Some(Self { of })
    }
}

// SAFETY: as the lease in it has its mark; which one that is never changes. A lease over no bytes
// holds nothing of any strategy.
unsafe impl SplitLease for AnyLease {
    #[inline]
    fn into_shared(self) -> Self {
        let of = each!(self.of, Of(lease) => Of(lease.into_shared()));
        Self { of }
    }

    #[inline]
    fn nothing() -> Self {
        Self { of: Of::Heap(SplitLease::nothing()) }
    }
}
