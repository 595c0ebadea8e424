//! The lease in a buffer: what it keeps of the slot pool that the buffer came from.

use core::fmt;
use core::mem::ManuallyDrop;
use core::ptr::{self, NonNull};

use bufcore::author::RefCount;
use bufcore::{Buf, Frozen, Lease, SplitLease};

use crate::table::SlotHandle;

#[cfg(feature = "alloc")]
type DefaultLease = bufcore::HeapLease;
#[cfg(not(feature = "alloc"))]
type DefaultLease = bufcore::NoLease;

/// A buffer of a [`SlotPool`](crate::SlotPool) whose fallback has leases `L`; the default is that
/// of the default fallback.
///
/// ```
/// # #[cfg(feature = "alloc")] {
/// use bufslot::{SlotBuf, SlotPool, SlotView};
///
/// struct Connection {
///     pool: SlotPool,
///     incoming: SlotBuf,
///     outgoing: Vec<SlotView>,
/// }
///
/// let mut pool = SlotPool::new(64 * 1024, 8)?;
/// let incoming = pool.acquire(4096)?;
/// let mut connection = Connection { pool, incoming, outgoing: Vec::new() };
/// connection.outgoing.push(connection.pool.acquire_zeroed(8)?.freeze());
/// # assert!(connection.incoming.is_empty());
/// # }
/// # Ok::<(), bufslot::Error>(())
/// ```
pub type SlotBuf<L = DefaultLease> = Buf<SlotLease<L>>;

/// A view of a buffer of a [`SlotPool`](crate::SlotPool) whose fallback has leases `L`.
///
/// ```
/// # #[cfg(feature = "alloc")] {
/// use std::sync::mpsc;
///
/// use bufslot::{SlotPool, SlotView};
///
/// let mut pool = SlotPool::new(64 * 1024, 8)?;
/// let (sender, receiver) = mpsc::channel::<SlotView>();
/// let mut event = pool.acquire(16)?;
/// event.extend_from_slice(b"started")?;
/// let event: SlotView = event.freeze();
/// sender.send(event.clone()).unwrap(); // the bytes are shared, not copied
/// assert_eq!(receiver.recv().unwrap(), event);
/// # }
/// # Ok::<(), bufslot::Error>(())
/// ```
pub type SlotView<L = DefaultLease> = Frozen<SlotLease<L>>;

/// The lease of a [`SlotPool`](crate::SlotPool) whose fallback has leases `L`.
///
/// ```
/// use bufslot::bufcore::{Buf, BufferPool};
/// use bufslot::{SlotLease, SlotPool};
///
/// /// Returns how many bytes of `bufs` the region of their pool has.
/// fn pooled<L>(bufs: &[Buf<SlotLease<L>>]) -> usize
/// where
///     SlotLease<L>: bufslot::Lease,
/// {
///     let pooled = bufs.iter().filter(|buf| !buf.lease().is_fallback());
///     pooled.map(|buf| buf.capacity()).sum()
/// }
/// # #[cfg(feature = "alloc")] {
/// let mut pool = SlotPool::new(1000, 8)?;
/// assert_eq!(pooled(&[pool.acquire(700)?, pool.acquire(2000)?]), 700);
/// # }
/// # Ok::<(), bufslot::Error>(())
/// ```
pub struct SlotLease<L = DefaultLease> {
    /// Dropped once, in `Drop`.
    place: ManuallyDrop<Place<L>>,
}

/// Where a buffer's memory is.
#[derive(Debug)]
enum Place<L> {
    /// In a slot of the region, all of it. A release looks for that first, in one comparison.
    Slot(SlotHandle),
    /// In a slot of the region, of which others have parts.
    Part(SlotHandle),
    /// With the fallback.
    Fallback(L),
    /// Nowhere: the buffer has no bytes.
    Nowhere,
}

impl<L> SlotLease<L> {
    #[inline(always)]
    fn at(place: Place<L>) -> Self {
        Self { place: ManuallyDrop::new(place) }
    }

    /// Makes the lease of a slot that was just taken.
    #[inline(always)]
    pub(crate) fn of(handle: SlotHandle) -> Self {
        Self::at(Place::Slot(handle))
    }

    /// Makes the lease of a buffer of the fallback's.
    #[inline]
    pub(crate) fn fallback(lease: L) -> Self {
        Self::at(Place::Fallback(lease))
    }

    /// Makes the lease of a buffer of no bytes.
    #[inline]
    pub(crate) fn nowhere() -> Self {
        Self::at(Place::Nowhere)
    }

    /// Returns the slot, if the memory is in one.
    #[inline]
    pub(crate) fn slot(&self) -> Option<&SlotHandle> {
        match &*self.place {
            Place::Slot(handle) | Place::Part(handle) => Some(handle),
            Place::Fallback(_) | Place::Nowhere => None,
        }
    }

    /// Returns the slot, if the buffer has all of it.
    #[inline]
    pub(crate) fn slot_alone(&self) -> Option<&SlotHandle> {
        match &*self.place {
            Place::Slot(handle) => Some(handle),
            _ => None,
        }
    }

    /// Returns whether the memory came from the fallback.
    ///
    /// ```
    /// # #[cfg(feature = "alloc")] {
    /// use bufslot::SlotPool;
    ///
    /// let mut pool = SlotPool::new(4096, 1)?;
    /// let (first, second) = (pool.acquire(100)?, pool.acquire(100)?);
    /// assert_eq!((first.lease().is_fallback(), second.lease().is_fallback()), (false, true));
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn is_fallback(&self) -> bool {
        matches!(&*self.place, Place::Fallback(_))
    }
}

/// Returns whether a buffer that has not all of a slot is one of several. It takes the place by
/// value and in a call, so that a release looks at nothing of this first.
#[cold]
#[inline(never)]
fn is_shared_slow<L: Lease>(place: ManuallyDrop<Place<L>>) -> bool {
    match &*place {
        Place::Part(_) => true,
        Place::Fallback(lease) => lease.is_shared(),
        Place::Slot(_) | Place::Nowhere => false,
    }
}

#[cold]
#[inline(never)]
fn drop_slow<L>(place: Place<L>) {
    drop(place);
}

// SAFETY:
// - memory: a slot is carved again only after its handle has stored that it is free, and the region
//   is freed only when all have (`table`); the fallback's lease promises the same for its own.
// - copies: a handle is one raw pointer to shared atomics.
// - count: in the slot, which nobody else uses while it is live; none for a buffer of no bytes.
// - wipe, start: the slot's memory, as carved.
unsafe impl<L: Lease> Lease for SlotLease<L> {
    #[inline]
    fn views(&self) -> Option<&RefCount> {
        match &*self.place {
            Place::Slot(handle) | Place::Part(handle) => Some(handle.views()),
            Place::Fallback(lease) => lease.views(),
            Place::Nowhere => None,
        }
    }

    #[inline(always)]
    fn is_shared(&self) -> bool {
        match &*self.place {
            Place::Slot(_) => false,
            // SAFETY: a copy of the lease in it, which is not dropped, may be used while this one
            // lives (`Lease`, rule 2).
            _ => is_shared_slow(unsafe { ptr::read(&raw const self.place) }),
        }
    }

    #[inline]
    fn wipe_range(&self) -> Option<NonNull<[u8]>> {
        match &*self.place {
            #[cfg(feature = "wipe")]
            Place::Slot(handle) | Place::Part(handle) => handle.wipe_range(),
            Place::Fallback(lease) => lease.wipe_range(),
            _ => None,
        }
    }

    fn start(&self) -> Option<NonNull<u8>> {
        match &*self.place {
            Place::Slot(handle) | Place::Part(handle) => Some(handle.start()),
            Place::Fallback(lease) => lease.start(),
            Place::Nowhere => None,
        }
    }

    #[inline]
    fn empty() -> Option<Self> {
        Some(Self::nowhere())
    }
}

// SAFETY: a part of a slot is another place than all of one, and copies have it too; the fallback's
// lease promises the same of its own mark. What is nowhere is over no bytes. Nothing here panics,
// as the fallback's lease does not.
unsafe impl<L: SplitLease> SplitLease for SlotLease<L> {
    #[inline]
    fn into_shared(self) -> Self {
        let lease = ManuallyDrop::new(self);
        // SAFETY: `lease` is not dropped, so this moves the place out, once.
        let place = ManuallyDrop::into_inner(unsafe { ptr::read(&raw const lease.place) });
        Self::at(match place {
            Place::Slot(handle) | Place::Part(handle) => Place::Part(handle),
            Place::Fallback(lease) => Place::Fallback(lease.into_shared()),
            Place::Nowhere => Place::Nowhere,
        })
    }
}

impl<L> Drop for SlotLease<L> {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: the lease is being dropped, so its place is taken out once.
        match unsafe { ManuallyDrop::take(&mut self.place) } {
            Place::Slot(handle) => drop(handle),
            place => drop_slow(place),
        }
    }
}

impl<L: fmt::Debug> fmt::Debug for SlotLease<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SlotLease").field("place", &*self.place).finish()
    }
}
