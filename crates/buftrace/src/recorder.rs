//! The wrapper that records what a pool is asked for.

use core::fmt;
use core::ptr::NonNull;

use bufcore::author::RefCount;
use bufcore::{AcquireError, Buf, BufferPool, Lease, PoolStats, SplitLease};

use crate::Recording;
use crate::recording::Tag;

/// A pool that records its requests, and otherwise behaves as the pool that it wraps.
///
/// A clone wraps a clone of the pool and records into the same recording. If the pool can be used
/// through `&self`, as those of `bufshard` and `bufbump`, so can its recorder. For requests that a
/// pool offers beyond [`BufferPool`], such as one with a timeout, use [`get_ref`](Self::get_ref),
/// and record them with [`Recording::record`].
///
/// Failed requests are not recorded: they have no buffer. A buffer that grows is recorded as an
/// acquire of the larger one and a release. A split buffer is one buffer in the recording, which is
/// released with its last part.
///
/// ```
/// use bufcore::{BufferPool, HeapPool};
/// use buftrace::{Recorder, Recording};
///
/// let recording = Recording::new();
/// let mut pool = Recorder::new(HeapPool::new(), &recording); // use it where the pool was used
/// drop(pool.acquire(1500)?);
/// # let path = std::env::temp_dir().join(format!("recorder-{}.buftrace", std::process::id()));
/// recording.save(&path)?; // for example "app.buftrace"
/// # std::fs::remove_file(path)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Recorder<P> {
    pool: P,
    recording: Recording,
}

impl<P> Recorder<P> {
    /// Wraps `pool`; its events are added to `recording`.
    ///
    /// ```
    /// use bufcore::BufferPool;
    /// use bufslot::SlotPool;
    /// use buftrace::{Recorder, Recording};
    ///
    /// let recording = Recording::new();
    /// // One pool for each thread, and one recording for all.
    /// let workers = [100, 1500].map(|bytes| {
    ///     let mut pool = Recorder::new(SlotPool::new(64 << 10, 16).unwrap(), &recording);
    ///     std::thread::spawn(move || pool.acquire(bytes).map(|buf| buf.capacity()))
    /// });
    /// for worker in workers {
    ///     worker.join().unwrap()?;
    /// }
    /// assert_eq!(recording.events(), 4);
    /// # Ok::<(), bufcore::AcquireError>(())
    /// ```
    #[must_use]
    pub fn new(pool: P, recording: &Recording) -> Self {
        Self { pool, recording: recording.clone() }
    }

    /// Returns the pool.
    ///
    /// ```
    /// use bufshard::ShardPool;
    /// use buftrace::{Recorder, Recording};
    ///
    /// let pool = Recorder::new(ShardPool::new()?, &Recording::new());
    /// drop(pool.acquire(1500)?);
    /// pool.get_ref().trim(); // what only this pool has
    /// assert_eq!(pool.get_ref().stats().reserved_bytes, 0);
    /// # Ok::<(), bufcore::Error>(())
    /// ```
    pub fn get_ref(&self) -> &P {
        &self.pool
    }

    /// Returns the pool, unwrapped. The releases of buffers in use are still recorded.
    ///
    /// ```
    /// use bufcore::{BufferPool, HeapPool};
    /// use buftrace::{Recorder, Recording};
    ///
    /// let recording = Recording::new();
    /// let mut recorder = Recorder::new(HeapPool::new(), &recording);
    /// let buf = recorder.acquire(1500)?;
    /// let mut pool = recorder.into_inner();
    /// drop(pool.acquire(64)?); // not recorded
    /// drop(buf); // recorded
    /// assert_eq!(recording.events(), 2);
    /// # Ok::<(), bufcore::AcquireError>(())
    /// ```
    pub fn into_inner(self) -> P {
        self.pool
    }

    /// Returns the recording that this adds to.
    pub fn recording(&self) -> &Recording {
        &self.recording
    }
}

/// Methods for pools that serve requests through a shared reference. `&Recorder` itself is not a
/// [`BufferPool`]: such an implementation would make the compiler search `&Recorder<Recorder<…>>`
/// endlessly wherever it does not know the pool yet. Generic code uses a clone instead.
impl<P> Recorder<P>
where
    for<'a> &'a P: BufferPool,
{
    /// Acquires as [`BufferPool::acquire`] does, through a shared reference.
    ///
    /// Cost: the pool's, and that of an event (see the [crate]).
    ///
    /// # Errors
    ///
    /// The errors are those of the pool's `acquire`.
    ///
    /// ```
    /// use bufshard::ShardPool;
    /// use buftrace::{Recorder, Recording};
    ///
    /// let recording = Recording::new();
    /// let pool = Recorder::new(ShardPool::new()?, &recording);
    /// std::thread::scope(|scope| {
    ///     for _ in 0..2 {
    ///         scope.spawn(|| drop(pool.acquire(1500)));
    ///     }
    /// });
    /// assert_eq!(recording.events(), 4);
    /// # Ok::<(), bufcore::Error>(())
    /// ```
    pub fn acquire(&self, capacity: usize) -> Result<Buf<SharedLease<'_, P>>, AcquireError> {
        let buf = (&self.pool).acquire(capacity)?;
        Ok(tagged(&self.recording, buf, capacity))
    }

    /// Acquires as [`BufferPool::acquire_zeroed`] does, through a shared reference.
    ///
    /// Cost: the pool's, and that of an event (see the [crate]).
    ///
    /// # Errors
    ///
    /// The errors are those of the pool's `acquire_zeroed`.
    ///
    /// ```
    /// use bufshard::ShardPool;
    /// use buftrace::{Recorder, Recording};
    ///
    /// let pool = Recorder::new(ShardPool::new()?, &Recording::new());
    /// assert_eq!(pool.acquire_zeroed(4)?[..], [0; 4]);
    /// assert_eq!(pool.recording().events(), 2);
    /// # Ok::<(), bufcore::Error>(())
    /// ```
    pub fn acquire_zeroed(&self, len: usize) -> Result<Buf<SharedLease<'_, P>>, AcquireError> {
        let buf = (&self.pool).acquire_zeroed(len)?;
        Ok(tagged(&self.recording, buf, len))
    }
}

/// The lease of a recorder's buffer, of a pool that serves through a shared reference.
type SharedLease<'a, P> = RecordedLease<<&'a P as BufferPool>::Lease>;

/// Wraps the lease of `buf`; the recording has it as `bytes` bytes.
pub(crate) fn tagged<L: Lease>(recording: &Recording, buf: Buf<L>, bytes: usize) -> Buf<RecordedLease<L>> {
    // A part of a buffer that was split before it came here gives nothing back by itself, unless it
    // is the last: it stays unrecorded.
    let tag = if buf.lease().is_shared() { None } else { recording.acquired(bytes) };
    // SAFETY: `RecordedLease` forwards all promises to the lease it wraps, for the same memory, and
    // drops it when it is dropped.
    unsafe { buf.map_lease(|lease| RecordedLease { tag, lease }) }
}

impl<P: BufferPool> BufferPool for Recorder<P> {
    type Lease = RecordedLease<P::Lease>;

    #[inline]
    fn acquire(&mut self, capacity: usize) -> Result<Buf<Self::Lease>, AcquireError> {
        let buf = self.pool.acquire(capacity)?;
        Ok(tagged(&self.recording, buf, capacity))
    }

    #[inline]
    fn acquire_zeroed(&mut self, len: usize) -> Result<Buf<Self::Lease>, AcquireError> {
        let buf = self.pool.acquire_zeroed(len)?;
        Ok(tagged(&self.recording, buf, len))
    }

    fn max_capacity(&self) -> usize {
        self.pool.max_capacity()
    }

    fn stats(&self) -> PoolStats {
        self.pool.stats()
    }
}

/// The lease of a [`Recorder`]: that of the wrapped pool, and a reference to the recording.
///
/// ```
/// use bufcore::Buf;
/// use bufshard::{ShardLease, ShardPool};
/// use buftrace::{RecordedLease, Recorder, Recording};
///
/// struct Request {
///     body: Buf<RecordedLease<ShardLease>>,
/// }
///
/// let pool = Recorder::new(ShardPool::new()?, &Recording::new());
/// let request = Request { body: pool.acquire(1500)? };
/// assert_eq!(request.body.capacity(), 1500);
/// # Ok::<(), bufcore::Error>(())
/// ```
pub struct RecordedLease<L> {
    /// `None` when the recording was over or full. In front of the lease, and so dropped before it:
    /// the release is noted, and only then the memory given back. So in the trace, too, it is free
    /// before somebody else has it.
    tag: Option<Tag>,
    lease: L,
}

impl<L> RecordedLease<L> {
    /// Returns the lease of the wrapped pool.
    ///
    /// ```
    /// use bufcore::BufferPool;
    /// use bufslot::SlotPool;
    /// use buftrace::{Recorder, Recording};
    ///
    /// let mut pool = Recorder::new(SlotPool::new(4096, 4)?, &Recording::new());
    /// let (small, large) = (pool.acquire(100)?, pool.acquire(1 << 20)?);
    /// assert!(!small.lease().get_ref().is_fallback());
    /// assert!(large.lease().get_ref().is_fallback()); // larger than the pool
    /// # Ok::<(), bufcore::Error>(())
    /// ```
    pub fn get_ref(&self) -> &L {
        &self.lease
    }
}

// SAFETY:
// - memory, count, wipe: as the wrapped lease promises; it is dropped when this is, and not before.
// - copies: the wrapped lease may be copied. The tag is a number and an `Arc`, which is a shared
//   pointer; copies are only looked at, and the one that is dropped gives its one reference back.
unsafe impl<L: Lease> Lease for RecordedLease<L> {
    #[inline]
    fn views(&self) -> Option<&RefCount> {
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

    fn start(&self) -> Option<NonNull<u8>> {
        self.lease.start()
    }

    /// Makes a lease without a recording; the release of the original buffer is recorded once.
    fn empty() -> Option<Self> {
        Some(Self { tag: None, lease: L::empty()? })
    }
}

// SAFETY: marked as the wrapped lease marks itself. The tag goes along: of all copies one is
// dropped, with the last part, and that notes the release once.
unsafe impl<L: SplitLease> SplitLease for RecordedLease<L> {
    fn into_shared(self) -> Self {
        Self { tag: self.tag, lease: self.lease.into_shared() }
    }
}

impl<L: fmt::Debug> fmt::Debug for RecordedLease<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecordedLease").field("lease", &self.lease).finish_non_exhaustive()
    }
}
