//! The wrapper that records what a pool is asked for.

use core::fmt;
use core::ptr::NonNull;

use bufcore::strategy::Views;
use bufcore::{AcquireError, Buf, BufferPool, FrameBuffer, Lease, PoolStats};

use crate::Recording;
use crate::recording::Tag;

/// A pool that records what it is asked for, and otherwise is the pool that it wraps.
///
/// Requests that fail are not recorded: they have no buffer. A frame is recorded when it is detached, as an acquire of its
/// length; how it grew is not.
#[derive(Debug)]
pub struct Recorder<P> {
    pool: P,
    recording: Recording,
}

impl<P> Recorder<P> {
    /// Wraps `pool`; its events go to `recording`.
    #[must_use]
    pub fn new(pool: P, recording: &Recording) -> Self {
        Self { pool, recording: recording.clone() }
    }

    /// The pool.
    pub fn get_ref(&self) -> &P {
        &self.pool
    }

    /// The pool. What it hands out through this is not recorded.
    pub fn get_mut(&mut self) -> &mut P {
        &mut self.pool
    }

    /// The pool, unwrapped. The buffers that are out are still recorded when they are released.
    pub fn into_inner(self) -> P {
        self.pool
    }

    fn tag<L: Lease>(&self, buf: Buf<L>, bytes: usize) -> Buf<RecordedLease<L>> {
        // A part of a buffer that was split gives nothing back by itself, unless it is the last: so a pool that hands out parts has
        // them unrecorded.
        let tag = if buf.lease().is_shared() { None } else { self.recording.acquired(bytes) };
        // SAFETY: `RecordedLease` forwards all promises to the lease it wraps, for the same memory, and drops it when it is
        // dropped.
        unsafe { buf.map_lease(|lease| RecordedLease { tag, lease }) }
    }
}

impl<P: BufferPool> BufferPool for Recorder<P> {
    type Lease = RecordedLease<P::Lease>;

    #[inline]
    fn acquire(&mut self, capacity: usize) -> Result<Buf<Self::Lease>, AcquireError> {
        let buf = self.pool.acquire(capacity)?;
        Ok(self.tag(buf, capacity))
    }

    #[inline]
    fn acquire_zeroed(&mut self, len: usize) -> Result<Buf<Self::Lease>, AcquireError> {
        let buf = self.pool.acquire_zeroed(len)?;
        Ok(self.tag(buf, len))
    }

    fn max_capacity(&self) -> usize {
        self.pool.max_capacity()
    }

    fn stats(&self) -> PoolStats {
        self.pool.stats()
    }
}

impl<P: FrameBuffer> FrameBuffer for Recorder<P> {
    type Lease = RecordedLease<P::Lease>;

    #[inline]
    fn writable(&mut self, additional: usize) -> Result<&mut [u8], AcquireError> {
        self.pool.writable(additional)
    }

    #[inline]
    fn filled(&self) -> &[u8] {
        self.pool.filled()
    }

    #[inline]
    fn filled_mut(&mut self) -> &mut [u8] {
        self.pool.filled_mut()
    }

    fn consume(&mut self, bytes: usize) {
        self.pool.consume(bytes);
    }

    #[inline]
    fn detach(&mut self) -> Result<Buf<Self::Lease>, AcquireError> {
        let buf = self.pool.detach()?;
        let bytes = buf.len();
        Ok(self.tag(buf, bytes))
    }
}

/// The lease of a [`Recorder`]: that of the pool it wraps, and a place in the recording.
pub struct RecordedLease<L> {
    /// `None` when the recording was over or full.
    tag: Option<Tag>,
    lease: L,
}

impl<L> RecordedLease<L> {
    /// The lease of the wrapped pool.
    pub fn get_ref(&self) -> &L {
        &self.lease
    }
}

// SAFETY:
// - memory, count, wipe: as the wrapped lease promises; it is dropped when this is, and not before.
// - copies: the wrapped lease may be copied. The tag is a number and an `Arc`, which is a shared pointer; copies are only looked
//   at, and the one that is dropped gives its one reference back.
unsafe impl<L: Lease> Lease for RecordedLease<L> {
    #[inline]
    fn views(&self) -> Option<&Views> {
        self.lease.views()
    }

    #[inline]
    fn is_shared(&self) -> bool {
        self.lease.is_shared()
    }

    #[inline]
    fn wipe_range(&self) -> Option<NonNull<[u8]>> {
        self.lease.wipe_range()
    }

    /// Outside of the recording: the buffer that was acquired is released once.
    fn another_of_nothing(&self) -> Option<Self> {
        Some(Self { tag: None, lease: self.lease.another_of_nothing()? })
    }
}

impl<L> Drop for RecordedLease<L> {
    /// Notes the release, and only then gives the memory back: so in the trace, too, it is free before somebody else has it.
    #[inline]
    fn drop(&mut self) {
        if let Some(tag) = &self.tag {
            tag.released();
        }
    }
}

impl<L: fmt::Debug> fmt::Debug for RecordedLease<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecordedLease").field("lease", &self.lease).finish_non_exhaustive()
    }
}
