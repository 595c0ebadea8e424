//! The lease in a buffer: what it keeps of the ring that the buffer came from, and its release.

use core::ptr::NonNull;

use bufcore::author::{RefCount, TaggedPtr};
use bufcore::{Buf, Frozen, Lease, SplitLease};
use bufkit::{ControlBlock, SlotState};

use super::guard::{self, Guard, GuardPtr, UNIT};
use super::layout;

/// A buffer of a [`RingPool`](crate::RingPool).
///
/// ```
/// # #[cfg(feature = "alloc")] {
/// use std::collections::VecDeque;
///
/// use bufring::{RingBuf, RingPool};
///
/// let mut ring = RingPool::new(64 << 10)?;
/// let mut queue: VecDeque<RingBuf> = VecDeque::new();
/// for datagram in [&b"first"[..], b"second"] {
///     let mut buf = ring.acquire(1500)?;
///     buf.extend_from_slice(datagram)?;
///     queue.push_back(buf);
/// }
/// assert_eq!(queue.pop_front().unwrap(), *b"first");
/// # }
/// # Ok::<(), bufring::Error>(())
/// ```
pub type RingBuf = Buf<RingLease>;

/// A view of a buffer of a [`RingPool`](crate::RingPool).
///
/// ```
/// # #[cfg(feature = "alloc")] {
/// use bufring::{RingPool, RingView};
///
/// /// A record's parts, of which each keeps the record's memory.
/// struct Record {
///     key: RingView,
///     value: RingView,
/// }
///
/// let mut ring = RingPool::new(64 << 10)?;
/// let mut line = ring.acquire(64)?;
/// line.extend_from_slice(b"colour=red")?;
/// let line = line.freeze();
/// let record = Record { key: line.slice(..6), value: line.slice(7..) };
/// drop(line);
/// assert_eq!((&record.key[..], &record.value[..]), (&b"colour"[..], &b"red"[..]));
/// # }
/// # Ok::<(), bufring::Error>(())
/// ```
pub type RingView = Frozen<RingLease>;

/// The lease of a [`RingPool`](crate::RingPool)'s buffer.
///
/// Name it in a signature that accepts buffers of this kind of pool only.
///
/// ```
/// use bufring::{Buf, Frozen, RingLease};
///
/// /// Fills a record in and shares it; for buffers of rings only.
/// fn seal(mut record: Buf<RingLease>, id: u32) -> Frozen<RingLease> {
///     record[..4].copy_from_slice(&id.to_be_bytes());
///     record.freeze()
/// }
/// # #[cfg(feature = "alloc")] {
/// let mut ring = bufring::RingPool::new(1024)?;
/// assert_eq!(seal(ring.acquire_zeroed(6)?, 7)[..], [0, 0, 0, 7, 0, 0]);
/// # }
/// # Ok::<(), bufring::Error>(())
/// ```
#[derive(Debug)]
pub struct RingLease {
    /// A guard is valid until this lease's drop has freed its block, and not one instruction
    /// longer. None for a buffer of no bytes.
    tagged: TaggedPtr<Guard>,
    /// Dangling for a buffer of no bytes.
    here: Here,
}

/// What a release has to know for the optional features.
#[cfg(any(feature = "wipe", feature = "stats"))]
type Here = NonNull<ControlBlock>;
#[cfg(not(any(feature = "wipe", feature = "stats")))]
type Here = ();

#[inline(always)]
#[cfg_attr(not(any(feature = "wipe", feature = "stats")), allow(unused_variables, reason = "nothing is"))]
fn here(control: NonNull<ControlBlock>) -> Here {
    #[cfg(any(feature = "wipe", feature = "stats"))]
    control
}

// SAFETY: through the lease only the guard's atomics and its `size` are used, and what the control
// block has of atomics and settings; nobody writes the size of a block that a lease owns (R3).
// `before` is used after the allocator's end, which wrote it last.
unsafe impl Send for RingLease {}
// SAFETY: likewise.
unsafe impl Sync for RingLease {}

impl RingLease {
    /// Makes the lease of a live block.
    #[inline]
    pub(super) fn new(guard: GuardPtr, control: NonNull<ControlBlock>) -> Self {
        Self { tagged: TaggedPtr::of(guard), here: here(control) }
    }

    /// Returns the guard, if the buffer has all of its block.
    #[inline(always)]
    pub(crate) fn alone(&self) -> Option<GuardPtr> {
        self.tagged.unmarked()
    }

    /// Returns the bytes of the block.
    ///
    /// # Safety
    ///
    /// `guard` is that of a lease, which lives.
    #[cfg(any(feature = "wipe", feature = "stats"))]
    unsafe fn room(guard: GuardPtr) -> usize {
        // SAFETY: the guard is valid while the lease lives, and nobody writes its size meanwhile
        // (R3).
        let size = unsafe { &(*guard.as_ptr()).size }.get();
        layout::room(size as usize)
    }
}

// SAFETY:
// - memory: a block is handed out again only after its lease has stored that it is free, and the
//   region is freed only when all have (`ring`).
// - copies: a lease is raw pointers to shared atomics.
// - count: in the guard, which nobody else uses while the block is live; none for a buffer of no
//   bytes.
// - wipe, start: the block's memory, as handed out.
unsafe impl Lease for RingLease {
    #[inline]
    fn views(&self) -> Option<&RefCount> {
        // SAFETY: the guard is valid while the lease lives; atomics may be shared.
        self.tagged.block().map(|guard| unsafe { &(*guard.as_ptr()).views })
    }

    #[inline(always)]
    fn is_shared(&self) -> bool {
        self.tagged.is_shared()
    }

    #[cfg(feature = "wipe")]
    #[inline]
    fn wipe_range(&self) -> Option<NonNull<[u8]>> {
        let (guard, first) = (self.tagged.block()?, self.start()?);
        // SAFETY: the control block lives as long as any of its blocks is live, and `wipe` is never
        // written.
        let wipe = unsafe { (*self.here.as_ptr()).wipe };
        // SAFETY: the lease's guard.
        wipe.then(|| NonNull::slice_from_raw_parts(first, unsafe { Self::room(guard) }))
    }

    fn start(&self) -> Option<NonNull<u8>> {
        // SAFETY: the guard of a live block, which is valid while the lease lives.
        self.tagged.block().map(|guard| unsafe { guard::data(guard) })
    }

    #[inline]
    fn empty() -> Option<Self> {
        Some(Self { tagged: TaggedPtr::empty(), here: here(NonNull::dangling()) })
    }
}

// SAFETY: the mark is in the pointer, which is what copies are made of; a new lease has none, as
// guards are aligned.
unsafe impl SplitLease for RingLease {
    #[inline]
    fn into_shared(self) -> Self {
        // Not released: the marked one is the same lease.
        let lease = core::mem::ManuallyDrop::new(self);
        Self { tagged: lease.tagged.shared(), ..*lease }
    }
}

impl Drop for RingLease {
    #[inline]
    fn drop(&mut self) {
        // By value, because a lease whose address is taken has to be in memory, on the fast path
        // too.
        let (tagged, here) = (self.tagged, self.here);
        match tagged.unmarked() {
            // SAFETY: the lease's guard, and this is the drop of the lease.
            Some(guard) => unsafe { Self::release(guard, here) },
            // SAFETY: likewise.
            None => unsafe { Self::release_marked(tagged, here) },
        }
    }
}

impl RingLease {
    /// Releases a block that was split, by its last part, and nothing for a buffer of no bytes.
    ///
    /// # Safety
    ///
    /// As [`release`](Self::release), for the guard that is named.
    #[cold]
    #[inline(never)]
    unsafe fn release_marked(tagged: TaggedPtr<Guard>, here: Here) {
        if let Some(guard) = tagged.block() {
            // SAFETY: the caller's promise.
            unsafe { Self::release(guard, here) };
        }
    }

    /// Releases a block.
    ///
    /// # Safety
    ///
    /// The guard, and what is known here, are a lease's, which is the last of its block and is not
    /// used again.
    #[inline(always)]
    #[cfg_attr(not(feature = "stats"), allow(unused_variables, reason = "nothing is counted"))]
    unsafe fn release(guard: GuardPtr, here: Here) {
        #[cfg(feature = "stats")]
        {
            // SAFETY: the control block lives as long as any of its blocks is live; the counters
            // are atomics.
            let released = unsafe { &(*here.as_ptr()).released };
            // SAFETY: the lease's guard, which lives until the store below.
            released.add(unsafe { Self::room(guard) });
        }
        // SAFETY: the state is the first field of a guard, which is valid until it is free. This is
        // the drop of the lease. From here on the guard may be gone.
        if !unsafe { SlotState::release(guard.cast()) } {
            // SAFETY: the block is not released yet, and this is the drop of the lease.
            unsafe { Self::late(guard) };
        }
    }
}

impl RingLease {
    /// Counts the release of a block whose allocator has ended. Not by the lease: a lease whose
    /// address is taken has to be in memory, on the fast path too.
    ///
    /// # Safety
    ///
    /// The guard is a lease's. [`SlotState::release`] has returned `false` for it, and the
    /// lease is not used again.
    #[cold]
    #[inline(never)]
    unsafe fn late(guard: GuardPtr) {
        // SAFETY: the block is not counted yet, so its guard is valid.
        let guard_at = unsafe { guard.as_ref() };
        guard_at.state.see_end();
        // The allocator has ended, and wrote it last.
        let before = guard_at.before.get();
        // SAFETY: so far in front of it stands the guard at the front, and in front of that the
        // control block (`Layout`), in one region, which is all in reach of the lease's pointer.
        let control = unsafe { guard.byte_sub(before as usize * UNIT + layout::CONTROL) };
        // SAFETY: the block was marked, once. The lease is not used again.
        unsafe { ControlBlock::release_orphaned(control.cast()) };
    }
}
