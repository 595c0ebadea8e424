//! What a buffer keeps of a pool whose strategy was chosen at run time.

use core::ptr::NonNull;

use bufcore::strategy::Views;
use bufcore::{Buf, Frozen, HeapLease, Lease, SplitLease};

/// A buffer of an [`AnyPool`](crate::AnyPool).
pub type AnyBuf = Buf<AnyLease>;

/// A view of a buffer of an [`AnyPool`](crate::AnyPool).
pub type AnyView = Frozen<AnyLease>;

/// The lease of an [`AnyPool`](crate::AnyPool)'s buffer: that of its strategy.
#[derive(Debug)]
pub struct AnyLease {
    pub(super) of: Of,
}

/// Whose it is.
#[derive(Debug)]
pub(super) enum Of {
    Heap(HeapLease),
    #[cfg(feature = "slot")]
    Slot(bufslot::SlotLease<HeapLease>),
    #[cfg(feature = "slot")]
    BoundedSlot(bufslot::SlotLease<bufcore::NoLease>),
    #[cfg(feature = "ring")]
    Ring(bufring::RingLease),
    #[cfg(feature = "bump")]
    Bump(bufbump::BumpLease),
    #[cfg(feature = "shard")]
    Shard(bufshard::ShardLease),
}

/// Does the same with the lease of whichever strategy.
macro_rules! each {
    ($of:expr, $lease:ident => $what:expr) => {
        match $of {
            Of::Heap($lease) => $what,
            #[cfg(feature = "slot")]
            Of::Slot($lease) => $what,
            #[cfg(feature = "slot")]
            Of::BoundedSlot($lease) => $what,
            #[cfg(feature = "ring")]
            Of::Ring($lease) => $what,
            #[cfg(feature = "bump")]
            Of::Bump($lease) => $what,
            #[cfg(feature = "shard")]
            Of::Shard($lease) => $what,
        }
    };
}

impl AnyLease {
    /// Whether the memory was taken from the heap because the strategy had none to give. A pool that is the heap does not fall back.
    #[must_use]
    pub fn is_fallback(&self) -> bool {
        match &self.of {
            Of::Heap(_) => false,
            #[cfg(feature = "slot")]
            Of::Slot(lease) => lease.is_fallback(),
            #[cfg(feature = "slot")]
            Of::BoundedSlot(_) => false,
            #[cfg(feature = "ring")]
            Of::Ring(_) => false,
            #[cfg(feature = "bump")]
            Of::Bump(lease) => lease.is_fallback(),
            #[cfg(feature = "shard")]
            Of::Shard(lease) => lease.is_fallback(),
        }
    }
}

// SAFETY: all as the lease in it has them; which one that is never changes.
unsafe impl Lease for AnyLease {
    #[inline]
    fn views(&self) -> Option<&Views> {
        each!(&self.of, lease => lease.views())
    }

    #[inline]
    fn is_shared(&self) -> bool {
        each!(&self.of, lease => lease.is_shared())
    }

    #[inline]
    fn wipe_range(&self) -> Option<NonNull<[u8]>> {
        each!(&self.of, lease => lease.wipe_range())
    }

    fn start(&self) -> Option<NonNull<u8>> {
        each!(&self.of, lease => lease.start())
    }

    fn another_of_nothing(&self) -> Option<Self> {
        let of = match &self.of {
            Of::Heap(lease) => Of::Heap(lease.another_of_nothing()?),
            #[cfg(feature = "slot")]
            Of::Slot(lease) => Of::Slot(lease.another_of_nothing()?),
            #[cfg(feature = "slot")]
            Of::BoundedSlot(lease) => Of::BoundedSlot(lease.another_of_nothing()?),
            #[cfg(feature = "ring")]
            Of::Ring(lease) => Of::Ring(lease.another_of_nothing()?),
            #[cfg(feature = "bump")]
            Of::Bump(lease) => Of::Bump(lease.another_of_nothing()?),
            #[cfg(feature = "shard")]
            Of::Shard(lease) => Of::Shard(lease.another_of_nothing()?),
        };
        Some(Self { of })
    }
}

// SAFETY: as the lease in it has its mark; which one that is never changes. A lease over no bytes holds nothing of any strategy.
unsafe impl SplitLease for AnyLease {
    #[inline]
    fn into_shared(self) -> Self {
        let of = match self.of {
            Of::Heap(lease) => Of::Heap(lease.into_shared()),
            #[cfg(feature = "slot")]
            Of::Slot(lease) => Of::Slot(lease.into_shared()),
            #[cfg(feature = "slot")]
            Of::BoundedSlot(lease) => Of::BoundedSlot(lease.into_shared()),
            #[cfg(feature = "ring")]
            Of::Ring(lease) => Of::Ring(lease.into_shared()),
            #[cfg(feature = "bump")]
            Of::Bump(lease) => Of::Bump(lease.into_shared()),
            #[cfg(feature = "shard")]
            Of::Shard(lease) => Of::Shard(lease.into_shared()),
        };
        Self { of }
    }

    #[inline]
    fn nothing() -> Self {
        Self { of: Of::Heap(SplitLease::nothing()) }
    }
}
