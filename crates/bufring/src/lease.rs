//! The lease in a buffer: what it keeps of the ring that the buffer came from.

use core::ptr::NonNull;

use bufcore::author::RefCount;
use bufcore::{Buf, Frozen, Lease, SplitLease};

use crate::ring::GuardHandle;

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
/// Its name is needed where a signature says from which kind of pool a buffer comes.
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
    fn views(&self) -> Option<&RefCount> {
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

    fn start(&self) -> Option<NonNull<u8>> {
        self.handle.start()
    }

    #[inline]
    fn empty() -> Option<Self> {
        Some(Self { handle: GuardHandle::empty() })
    }
}

// SAFETY: the mark is in the pointer, which is what copies are made of; a new lease has none, as
// guards are aligned.
unsafe impl SplitLease for RingLease {
    #[inline]
    fn into_shared(self) -> Self {
        Self { handle: self.handle.into_shared() }
    }
}
