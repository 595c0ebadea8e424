//! The pool, as its users hold it.

use core::fmt;
use core::ptr::NonNull;

use bufcore::strategy::{Handle, Served};
use bufcore::{AcquireError, Buf, ConfigError, PoolStats, SplitLease};

use crate::cache::local;
use crate::counts::Piece;
use crate::lease::BumpLease;
use crate::request::Found;
use crate::settings::Settings;
use crate::shard::Block;
use crate::shared::Shared;
use crate::stats::BumpStats;

/// A pool whose threads carve their buffers from shards of their own. See the [crate
/// documentation](crate).
///
/// It is a handle: clones share one pool, which ends with the last of them. The end frees all that
/// holds no buffers, and leaves each other shard to its last buffer; buffers do not need the pool
/// any more. It never waits.
///
/// Threads: any number acquire and release, through clones or through a shared reference.
///
/// ```
/// use bufbump::BumpPool;
///
/// let pool = BumpPool::new()?; // clones share it
/// let mut chunk = pool.acquire(1500)?;
/// chunk.extend_from_slice(b"HEAD body")?;
/// let head = chunk.split_to(4); // two buffers, one memory
/// let worker = std::thread::spawn(move || head.len()); // released there
/// assert_eq!((worker.join().unwrap(), &chunk[..]), (4, &b" body"[..]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct BumpPool {
    handle: Handle<Shared>,
    /// `Shared::id`, here for the fast path, as is the next.
    id: usize,
    /// The alignment minus one.
    mask: usize,
}

// SAFETY: what handles share is made for any thread (`shared`).
unsafe impl Send for BumpPool {}
// SAFETY: likewise; an acquire uses what is the calling thread's.
unsafe impl Sync for BumpPool {}

impl BumpPool {
    pub(crate) fn with(settings: Settings, preallocate: usize) -> Result<Self, ConfigError> {
        let handle = Shared::new(settings)?;
        let id = handle.id;
        let pool = Self { handle, id, mask: settings.alignment - 1 };
        pool.preallocate(preallocate)?;
        Ok(pool)
    }

    #[cfg(all(test, not(any(loom, shuttle))))]
    pub(crate) fn id(&self) -> usize {
        self.id
    }

    /// Adds idle shards.
    fn preallocate(&self, shards: usize) -> Result<(), ConfigError> {
        for _ in 0..shards {
            let shard = self.shared().fresh(self.shard_size(), Piece::Preallocated)?;
            // SAFETY: nothing of it is out, and it is ours alone.
            unsafe { Shared::come_back(NonNull::from(shard)) };
        }
        Ok(())
    }

    #[inline]
    pub(crate) fn shared(&self) -> &Shared {
        &self.handle
    }

    /// Takes one empty buffer with room for `capacity` bytes, as
    /// [`BufferPool::acquire`](bufcore::BufferPool::acquire) does, through a shared reference.
    ///
    /// Contents: the filled part is empty; what [`Buf::spare_mut`] shows is recycled, unless the
    /// pool wipes. Cost: some twenty plain instructions and no locked one, when the thread's
    /// current shard has room. Otherwise a look at up to [`max_probes`](crate::Builder::max_probes)
    /// shards, then an exchange or two for an idle one, and at last an allocation. A request larger
    /// than a shard is an allocation of its own, zeroed by the allocator.
    ///
    /// # Errors
    ///
    /// [`AcquireError::TooLarge`] for what cannot exist, [`AcquireError::OutOfMemory`] when the
    /// allocator refuses. Never [`AcquireError::Exhausted`].
    ///
    /// ```
    /// use bufbump::BumpPool;
    ///
    /// let pool = BumpPool::new()?;
    /// let first = pool.acquire(100)?;
    /// let address = first.as_ptr();
    /// drop(first);
    /// assert_eq!(pool.acquire(50)?.as_ptr(), address); // used again while it is in the cache
    /// # Ok::<(), bufbump::bufcore::Error>(())
    /// ```
    #[inline(always)]
    #[cfg_attr(feature = "track", track_caller)]
    pub fn acquire(&self, capacity: usize) -> Result<Buf<BumpLease>, AcquireError> {
        if let Some(shard) = local::shard(self.id)
            // SAFETY: the shard that this thread carves for this pool is valid (`local`, L1).
            && let Some(block) = NonNull::new(unsafe { shard.as_ref() }.carve(capacity, self.mask))
        {
            return Ok(self.hand_out(block, capacity, Served::Reused));
        }
        // Taken apart and put together, so that what comes back in memory does not force the other
        // case there too.
        #[allow(clippy::needless_question_mark, reason = "see above")]
        Ok(self.acquire_elsewhere(capacity)?)
    }

    /// Takes one buffer with `len` filled bytes, all zero, as
    /// [`BufferPool::acquire_zeroed`](bufcore::BufferPool::acquire_zeroed) does, through a shared
    /// reference.
    ///
    /// Cost: zeroing on top of [`acquire`](Self::acquire).
    ///
    /// # Errors
    ///
    /// As [`acquire`](Self::acquire).
    ///
    /// ```
    /// use bufbump::BumpPool;
    ///
    /// let mut page = BumpPool::new()?.acquire_zeroed(4096)?;
    /// page[..5].copy_from_slice(b"hello");
    /// assert_eq!((page.len(), page[5]), (4096, 0));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    #[cfg_attr(feature = "track", track_caller)]
    pub fn acquire_zeroed(&self, len: usize) -> Result<Buf<BumpLease>, AcquireError> {
        let mut buf = self.acquire(len)?;
        buf.spare_mut()[..len].fill(0);
        buf.commit(len);
        Ok(buf)
    }

    /// The buffer in a block that was just taken.
    #[inline(always)]
    #[cfg_attr(feature = "track", track_caller)]
    fn hand_out(&self, block: NonNull<Block>, capacity: usize, served: Served) -> Buf<BumpLease> {
        if cfg!(feature = "stats") {
            // SAFETY: the block was made by this thread, and is out from here on.
            self.shared().counters.acquired(served, unsafe { Block::capacity(block) });
        }
        // SAFETY: the bytes behind the header are the block's alone until its release (`shard`,
        // B2), as many as were asked for at the least, and initialised: those of a region are, and
        // only whole headers without their padding are written over them.
        let buf = unsafe { Buf::from_raw_parts(Block::bytes(block), capacity, BumpLease::of(block)) };
        self.shared().tracker.attach(buf)
    }

    /// Serves a request that the current shard cannot, one of no bytes, and a thread's first.
    #[cold]
    #[inline(never)]
    #[cfg_attr(feature = "track", track_caller)]
    fn acquire_elsewhere(&self, bytes: usize) -> Result<Buf<BumpLease>, AcquireError> {
        if bytes == 0 {
            // Aligned as all others are.
            let nowhere = core::ptr::without_provenance_mut(self.mask + 1);
            let start = NonNull::new(nowhere).unwrap_or(NonNull::dangling());
            // SAFETY: no bytes are claimed.
            let buf = unsafe { Buf::from_raw_parts(start, 0, BumpLease::nothing()) };
            return Ok(self.shared().tracker.attach(buf));
        }
        let Found { block, served } = self.shared().find(bytes)?;
        Ok(self.hand_out(block, bytes, served))
    }

    /// Frees the memory that holds no buffers.
    ///
    /// It frees the idle shards of the pool at once, and those of the calling thread except the one
    /// that it carves. Other threads free theirs when they next need another shard, without being
    /// stopped. A thread that does not acquire any more keeps the shard that it carves and up to
    /// four others, until it ends. Shards of which buffers are out are not touched.
    ///
    /// The headers of shards without memory are freed as well. If other threads are looking for a
    /// shard or at the statistics at that very moment, they are kept for the next call.
    ///
    /// Cost: a look at the calling thread's shards, one at all headers of the pool if some can go,
    /// and the allocator's for each that goes.
    ///
    /// ```
    /// use bufbump::BumpPool;
    ///
    /// let pool = BumpPool::builder().preallocate(4).build()?;
    /// assert!(pool.stats().reserved_bytes >= 4 * (256 << 10));
    /// pool.trim();
    /// assert_eq!(pool.stats().reserved_bytes, 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn trim(&self) {
        self.shared().trim();
    }

    /// Lets go of the memory that the pool has, at the end of a phase, after which other sizes or
    /// less memory are needed.
    ///
    /// Memory that holds no buffers is freed, as by [`trim`](Self::trim); memory that holds some is
    /// freed, not kept, when they are released. The shards that threads carve at the moment stay in
    /// use until they are full.
    ///
    /// ```
    /// use bufbump::BumpPool;
    ///
    /// let pool = BumpPool::builder().shard_size(64 << 10).build()?;
    /// let loaded: Vec<_> = (0..10).map(|_| pool.acquire(60 << 10)).collect::<Result<_, _>>()?;
    /// pool.clear(); // all of it is in use, and will be freed
    /// assert_eq!(pool.bump_stats().pinned, 10);
    /// drop(loaded);
    /// assert!(pool.bump_stats().idle <= 1); // the shard that this thread carves
    /// # Ok::<(), bufbump::Error>(())
    /// ```
    pub fn clear(&self) {
        self.shared().outdate();
        self.trim();
    }

    /// Moves a small survivor out of a large shard.
    ///
    /// If a buffer holds up a shard from which its thread carves no more, this copies it to a place
    /// among the youngest buffers. Then the shard can be used again. Otherwise, and when there is
    /// no memory for it, the buffer is returned as it is.
    ///
    /// A buffer holds its shard up when the buffers that are out of the shard are few and small.
    /// The measure is their number times the size of this one: it is less than one part in `ratio`
    /// of the shard. A part of a buffer that was split moves when it is the last part. Call it for
    /// a buffer that is going to be kept for long.
    ///
    /// Cost: some loads; an acquire, a copy of the filled part, and a release if it moves. Its
    /// capacity stays at least as it was.
    ///
    /// ```
    /// use bufbump::BumpPool;
    ///
    /// let pool = BumpPool::builder().shard_size(4096).build()?;
    /// let mut kept = pool.acquire(16)?;
    /// kept.extend_from_slice(b"survivor")?;
    /// let others: Vec<_> = (0..300).map(|_| pool.acquire(64)).collect::<Result<_, _>>()?;
    /// drop(others);
    /// let before = pool.stats().pinned_bytes;
    /// let kept = pool.detach_if_pinning(kept, 8);
    /// assert_eq!(&kept[..], b"survivor");
    /// # assert!(pool.stats().pinned_bytes <= before);
    /// # Ok::<(), bufbump::bufcore::Error>(())
    /// ```
    #[must_use = "the buffer is dropped otherwise"]
    #[cfg_attr(feature = "track", track_caller)]
    pub fn detach_if_pinning(&self, buf: Buf<BumpLease>, ratio: usize) -> Buf<BumpLease> {
        let Some(block) = buf.lease().block() else { return buf };
        // SAFETY: the buffer is out while it is borrowed.
        let shard = unsafe { Block::shard(block) };
        if shard.is_single() || shard.is_current() || !buf.lease().is_alone() {
            return buf;
        }
        let (out, bytes) = shard.snapshot();
        if buf.capacity().saturating_mul(out).saturating_mul(ratio) > bytes {
            return buf;
        }
        let Ok(mut copy) = self.acquire(buf.capacity()) else { return buf };
        match copy.extend_from_slice(&buf) {
            Ok(()) => copy,
            Err(_) => buf,
        }
    }

    /// Returns a snapshot of what the pool has done and holds, as
    /// [`BufferPool::stats`](bufcore::BufferPool::stats) does.
    ///
    /// `in_use`, `reserved_bytes`, `pinned_bytes` and `idle_bytes` are known without the `stats`
    /// feature, except for buffers of no bytes. `reserved_bytes` is the sum of the other two.
    ///
    /// Cost: a look at every shard. No thread is stopped for it.
    ///
    /// ```
    /// use bufbump::BumpPool;
    ///
    /// let pool = BumpPool::builder().shard_size(64 << 10).build()?;
    /// let survivor = pool.acquire(100)?;
    /// let stats = pool.stats();
    /// assert_eq!(stats.in_use, 1);
    /// assert_eq!((stats.pinned_bytes, stats.idle_bytes), (64 << 10, 0)); // it holds a whole shard
    /// drop(survivor);
    /// assert_eq!(pool.stats().idle_bytes, 64 << 10);
    /// # Ok::<(), bufbump::Error>(())
    /// ```
    #[must_use]
    pub fn stats(&self) -> PoolStats {
        let shared = self.shared();
        let mut stats = shared.counters.snapshot();
        let mut in_use = 0;
        shared.each_shard(|shard| {
            let (out, bytes) = shard.snapshot();
            in_use += out;
            stats.reserved_bytes += bytes;
            if out > 0 {
                stats.pinned_bytes += bytes;
            } else {
                stats.idle_bytes += bytes;
            }
        });
        if !cfg!(feature = "stats") {
            stats.in_use = in_use;
        }
        stats
    }

    /// Restarts the high-water marks of the statistics from what is out now. The other counters are
    /// never reset: [`PoolStats::since`] is their difference.
    ///
    /// While other threads use the pool, a buffer that one of them acquires at this very moment may
    /// be missed. Without the `stats` feature the call does nothing.
    ///
    /// ```
    /// # #[cfg(feature = "stats")] {
    /// use bufbump::BumpPool;
    ///
    /// let pool = BumpPool::new()?;
    /// let held = pool.acquire(100)?;
    /// drop(pool.acquire(100)?);
    /// assert_eq!(pool.stats().high_water, 2);
    /// pool.reset_high_water();
    /// assert_eq!(pool.stats().high_water, 1); // what is out now
    /// # drop(held);
    /// # }
    /// # Ok::<(), bufbump::Error>(())
    /// ```
    pub fn reset_high_water(&self) {
        self.shared().counters.reset_high_water();
    }

    /// Returns a snapshot of the pool's memory, by what its shards are doing, and what became of
    /// it. [`BumpStats`] says how the numbers add up.
    ///
    /// Cost: a look at every shard. No thread is stopped for it.
    ///
    /// ```
    /// use bufbump::BumpPool;
    ///
    /// let pool = BumpPool::builder().preallocate(3).build()?;
    /// let held = pool.acquire(100)?;
    /// let stats = pool.bump_stats();
    /// assert_eq!((stats.pinned, stats.idle, stats.kept), (1, 2, 2));
    /// # drop(held);
    /// # Ok::<(), bufbump::bufcore::Error>(())
    /// ```
    #[must_use]
    pub fn bump_stats(&self) -> BumpStats {
        BumpStats::of(self.shared())
    }

    /// Returns the largest request that is not an allocation of its own, in bytes.
    ///
    /// ```
    /// use bufbump::BumpPool;
    ///
    /// let pool = BumpPool::new()?;
    /// let piece = pool.acquire(pool.shard_size().min(1 << 20))?; // as large as is cheap
    /// assert!(!piece.lease().is_fallback());
    /// # Ok::<(), bufbump::Error>(())
    /// ```
    #[must_use]
    pub fn shard_size(&self) -> usize {
        self.shared().settings.shard_bytes
    }

    /// Returns the largest request, in bytes, that can ever succeed.
    ///
    /// ```
    /// use bufbump::{AcquireError, BumpPool};
    ///
    /// let pool = BumpPool::new()?;
    /// assert!(pool.max_capacity() > pool.shard_size()); // not limited by shards
    /// let absurd = pool.acquire(pool.max_capacity() + 1);
    /// assert!(matches!(absurd, Err(AcquireError::TooLarge { .. })));
    /// # Ok::<(), bufbump::Error>(())
    /// ```
    #[must_use]
    pub fn max_capacity(&self) -> usize {
        self.shared().settings.max_capacity()
    }

    /// Lists the buffers that are out, longest first: where and when each was acquired.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use bufbump::BumpPool;
    ///
    /// let pool = BumpPool::new()?;
    /// let held = pool.acquire(100)?;
    /// let outstanding = pool.outstanding();
    /// let old = outstanding.iter().filter(|buf| buf.age() > Duration::from_secs(60));
    /// assert_eq!((outstanding.len(), old.count()), (1, 0));
    /// # drop(held);
    /// # Ok::<(), bufbump::Error>(())
    /// ```
    #[cfg(feature = "track")]
    #[must_use]
    pub fn outstanding(&self) -> alloc::vec::Vec<bufcore::Outstanding> {
        self.shared().tracker.outstanding()
    }
}

bufcore::shared_pool!(impl BumpPool => BumpLease);

impl Clone for BumpPool {
    /// Another handle of the same pool.
    ///
    /// Cost: one locked instruction.
    ///
    /// # Panics
    ///
    /// With more handles than half of what a `usize` counts, nearly all of which were forgotten
    /// (`mem::forget`).
    fn clone(&self) -> Self {
        Self { handle: self.handle.clone(), ..*self }
    }
}

impl fmt::Debug for BumpPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stats = self.stats();
        f.debug_struct("BumpPool")
            .field("shard_size", &self.shard_size())
            .field("in_use", &stats.in_use)
            .field("reserved_bytes", &stats.reserved_bytes)
            .field("pinned_bytes", &stats.pinned_bytes)
            .finish_non_exhaustive()
    }
}
