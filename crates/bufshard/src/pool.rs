//! The pool, as its users hold it.

use core::fmt;
use core::ptr::NonNull;
use core::time::Duration;

use bufcore::{AcquireError, Buf, ConfigError, PoolStats};
use bufkit::{Handle, PageSource};

use crate::block::Block;
use crate::cache::ThreadCache;
use crate::class::{self, class_of};
use crate::counts::{Counts, Tier};
use crate::lease::ShardLease;
use crate::request::{Obtained, Turn};
use crate::settings::Settings;
use crate::shared::Shared;
use crate::stats::ClassStats;
use crate::trim::Slots;

/// A pool of owned buffers in size classes, from a cache of each thread backed by shards that all
/// threads share. See the [crate documentation](crate).
///
/// It is a handle: clones share one pool, which lives until the last clone is dropped. Dropping the
/// last handle frees the idle memory, in the caches of all threads. It never waits. Buffers in use
/// keep their memory, and do not need the pool any more.
///
/// Threads: any number acquire and release, through clones or a shared reference. Between `fork`
/// and `exec` a child process must not use the pool; it may exit.
///
/// ```
/// use bufshard::ShardPool;
///
/// let pool = ShardPool::new()?; // clones share it
/// let mut answer = pool.acquire(64 << 10)?;
/// answer.extend_from_slice(b"read from a file")?;
/// let worker = std::thread::spawn(move || answer.len()); // released there
/// drop(pool);
/// assert_eq!(worker.join().unwrap(), 16);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct ShardPool {
    pub(crate) handle: Handle<Shared>,
    /// `Shared::id`, here for the fast path; `APART` where blocks have their headers apart.
    id: usize,
}

bufcore::unwind_safe!(ShardPool);

/// No pool's number, so that the fast path, which takes the bytes to be right behind the header,
/// finds no cache.
const APART: usize = usize::MAX;

impl ShardPool {
    pub(crate) fn with(settings: Settings, source: PageSource) -> Result<Self, ConfigError> {
        Ok(Self::over(Shared::new(settings, source)?))
    }

    /// Makes the pool of a handle.
    pub(crate) fn over(handle: Handle<Shared>) -> Self {
        let id = if handle.settings.has_headers_apart() { APART } else { handle.id };
        Self { handle, id }
    }

    #[inline]
    pub(crate) fn shared(&self) -> &Shared {
        &self.handle
    }

    /// Takes one empty buffer with room for `capacity` bytes, as
    /// [`BufferPool::acquire`](bufcore::BufferPool::acquire) does, through a shared reference.
    ///
    /// Contents: the filled part is empty; [`Buf::spare_mut`] shows recycled bytes, unless the pool
    /// wipes. Cost: a few dozen plain instructions and no locked one, if the thread's cache has a
    /// buffer of the size class. Otherwise it takes two locked instructions for a batch of buffers
    /// from a shard, and finally an allocation. A request that is not pooled is a separate
    /// allocation, zeroed by the allocator.
    ///
    /// # Errors
    ///
    /// - [`AcquireError::TooLarge`] for a request that cannot exist or is over the
    ///   [`max_bytes`](crate::Builder::max_bytes).
    /// - [`AcquireError::Exhausted`] for one that is over the available part of it now.
    /// - [`AcquireError::OutOfMemory`] if the allocator fails.
    ///
    /// ```
    /// use bufshard::ShardPool;
    ///
    /// let pool = ShardPool::new()?;
    /// let first = pool.acquire(100)?;
    /// let address = first.as_ptr();
    /// drop(first);
    /// // Of the same class; the newest is used again while it is hot.
    /// assert_eq!(pool.acquire(110)?.as_ptr(), address);
    /// # Ok::<(), bufshard::bufcore::Error>(())
    /// ```
    #[inline(always)]
    #[cfg_attr(feature = "track", track_caller)]
    pub fn acquire(&self, capacity: usize) -> Result<Buf<ShardLease>, AcquireError> {
        self.acquire_at_once::<true>(capacity)
    }

    /// Acquires, and counts a refusal if it is `FINAL`.
    #[inline(always)]
    #[cfg_attr(feature = "track", track_caller)]
    pub(crate) fn acquire_at_once<const FINAL: bool>(
        &self,
        capacity: usize,
    ) -> Result<Buf<ShardLease>, AcquireError> {
        let class = class_of(capacity);
        if let Some(cache) = ThreadCache::recall(self.id)
            && let Some(block) = cache.pop(class)
        {
            cache.counts.acquired(Tier::Thread, class, class::counted_bytes(class));
            // SAFETY: just taken; no pool with this number has headers apart.
            return Ok(unsafe { self.hand_out_at(Block::behind(block), block, capacity) });
        }
        // The slow path returns its `Buf` through memory. Re-wrapping it here keeps the fast path's
        // in registers. That it is empty is said once more, where the compiler can see it.
        let mut buf = self.acquire_slow::<FINAL>(capacity)?;
        buf.clear();
        Ok(buf)
    }

    /// Takes one buffer with `len` filled bytes, all zero, as
    /// [`BufferPool::acquire_zeroed`](bufcore::BufferPool::acquire_zeroed) does, through a shared
    /// reference.
    ///
    /// Cost: zeroing in addition to [`acquire`](Self::acquire), except for memory that the
    /// allocator zeroed.
    ///
    /// # Errors
    ///
    /// As [`acquire`](Self::acquire).
    ///
    /// ```
    /// use bufshard::ShardPool;
    ///
    /// let mut page = ShardPool::new()?.acquire_zeroed(4096)?;
    /// page[..5].copy_from_slice(b"hello");
    /// assert_eq!((page.len(), page[5]), (4096, 0));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[cfg_attr(feature = "track", track_caller)]
    pub fn acquire_zeroed(&self, len: usize) -> Result<Buf<ShardLease>, AcquireError> {
        if len == 0 {
            return self.acquire(0);
        }
        let found = self.counted(self.shared().find(len, Turn::Any).map_err(AcquireError::from))?;
        let is_zero = found.is_zero;
        let mut buf = self.deliver(found, len);
        if !is_zero {
            buf.spare_mut()[..len].fill(0);
        }
        buf.commit(len);
        Ok(buf)
    }

    /// Counts a request that is refused as exhausted.
    #[inline]
    pub(crate) fn counted<T>(&self, result: Result<T, AcquireError>) -> Result<T, AcquireError> {
        if let Err(AcquireError::Exhausted { .. }) = result {
            self.shared().common.exhausted();
        }
        result
    }

    /// Makes the buffer in a block.
    ///
    /// # Safety
    ///
    /// The block was just taken, for a request of this number of bytes.
    #[inline(always)]
    #[cfg_attr(feature = "track", track_caller)]
    pub(crate) unsafe fn hand_out(&self, block: NonNull<Block>, capacity: usize) -> Buf<ShardLease> {
        // SAFETY: the caller has the block.
        let start = unsafe { Block::start(block) };
        // SAFETY: the caller's promise.
        unsafe { self.hand_out_at(start, block, capacity) }
    }

    /// Makes the buffer in a block whose bytes are known to start at `start`.
    ///
    /// # Safety
    ///
    /// As for [`hand_out`](Self::hand_out), and they do.
    #[inline(always)]
    #[cfg_attr(feature = "track", track_caller)]
    unsafe fn hand_out_at(
        &self,
        start: NonNull<u8>,
        block: NonNull<Block>,
        capacity: usize,
    ) -> Buf<ShardLease> {
        // SAFETY: the bytes are the block's alone until its release (`block`, K2), as many as were
        // asked for at least, and initialised (K1).
        let buf = unsafe { Buf::from_raw_parts(start, capacity, ShardLease::of(block)) };
        self.shared().tracker.attach(buf)
    }

    /// Makes the buffer in a block that was found just now, on the slow path.
    #[inline]
    #[cfg_attr(feature = "track", track_caller)]
    pub(crate) fn deliver(&self, found: Obtained, capacity: usize) -> Buf<ShardLease> {
        // SAFETY: just found, for such a request.
        let buf = unsafe { self.hand_out(found.block, capacity) };
        if matches!(found.tier, Tier::Fresh) {
            // The pool has grown. This may call users' code, which finds the buffer complete.
            self.shared().growth.notify();
        }
        buf
    }

    /// Serves a request that the thread's cache cannot, and one of no bytes.
    #[cold]
    #[inline(never)]
    #[cfg_attr(feature = "track", track_caller)]
    fn acquire_slow<const FINAL: bool>(&self, bytes: usize) -> Result<Buf<ShardLease>, AcquireError> {
        if bytes == 0 {
            let shared = self.shared();
            return Ok(shared.tracker.attach(bufkit::empty_buf(shared.settings.alignment_of(bytes))));
        }
        if self.id == APART
            && let Some(block) = self.shared().recall_block(bytes)
        {
            // SAFETY: just taken.
            return Ok(unsafe { self.hand_out(block, bytes) });
        }
        let found = self.shared().find(bytes, Turn::Any).map_err(AcquireError::from);
        Ok(self.deliver(if FINAL { self.counted(found)? } else { found? }, bytes))
    }

    /// Allocates buffers for requests of `size` bytes, and keeps them in the shards, for any
    /// thread; from 256 KiB on it keeps their pages. Returns how many are kept.
    ///
    /// If there is no room to keep a buffer, or none within
    /// [`max_bytes`](crate::Builder::max_bytes), it is not allocated, and no idle memory is freed
    /// for it. If other threads take that room at the same time, buffers of up to 256 KiB in all,
    /// or one larger buffer, are freed again.
    ///
    /// Their pages are written once, so that the first use causes no page faults.
    ///
    /// # Errors
    ///
    /// - [`AcquireError::TooLarge`] for sizes that are not pooled, with
    ///   [`largest_pooled`](Self::largest_pooled) as the limit.
    /// - [`AcquireError::OutOfMemory`] if the allocator fails. The buffers that were already
    ///   allocated are kept.
    ///
    /// ```
    /// use bufshard::ShardPool;
    ///
    /// let pool = ShardPool::new()?;
    /// assert_eq!(pool.preallocate(8, 1 << 20)?, 8);
    /// assert!(pool.stats().reserved_bytes >= 8 << 20);
    /// # Ok::<(), bufshard::bufcore::Error>(())
    /// ```
    pub fn preallocate(&self, count: usize, size: usize) -> Result<usize, AcquireError> {
        let kept = self.shared().preallocate(count, size);
        self.shared().growth.notify();
        kept
    }

    /// Returns the largest request that is pooled, in bytes; 0 if the
    /// [`max_bytes`](crate::Builder::max_bytes) has no room for the smallest class.
    ///
    /// ```
    /// use bufshard::ShardPool;
    ///
    /// let pool = ShardPool::builder().largest_pooled(100_000).build()?;
    /// assert_eq!(pool.largest_pooled(), 112 << 10); // rounded up to a size class
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    #[must_use]
    pub fn largest_pooled(&self) -> usize {
        self.shared().settings.largest_pooled()
    }

    /// Frees the idle memory in the shards and in the caches of all threads, idle threads included.
    ///
    /// The emptied caches start again without capacity. Other threads may then use their part of
    /// [`max_cached_bytes`](crate::Builder::max_cached_bytes).
    ///
    /// No thread is stopped. A thread whose cache is being emptied takes the slow path until that
    /// is done. A thread that is in the middle of a request or a release keeps its cache.
    ///
    /// Cost: the allocator's for each freed block, a check of every shard, and a system call
    /// (`membarrier`, on Linux) for each cache that is not empty.
    ///
    /// ```
    /// use bufshard::ShardPool;
    ///
    /// let pool = ShardPool::new()?;
    /// let held = pool.acquire(1 << 20)?;
    /// drop(pool.acquire(8 << 20)?);
    /// assert!(pool.stats().reserved_bytes > 9 << 20);
    /// pool.trim(); // buffers in use are kept
    /// assert!(pool.stats().reserved_bytes < 2 << 20);
    /// # drop(held);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn trim(&self) {
        self.trim_to(0);
    }

    /// Frees idle memory, as [`trim`](Self::trim) does, until the pool holds at most `bytes` bytes.
    ///
    /// It frees the largest blocks first, from the shards, then from the calling thread's cache,
    /// then from those of others.
    ///
    /// ```
    /// use bufshard::ShardPool;
    ///
    /// let pool = ShardPool::new()?;
    /// let held = pool.acquire(1500)?;
    /// drop(pool.acquire(8 << 20)?);
    /// pool.trim_to(1 << 20);
    /// assert!((1500..=1 << 20).contains(&pool.stats().reserved_bytes));
    /// # drop(held);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn trim_to(&self, bytes: usize) {
        let shared = self.shared();
        let _saw_all = shared.shrink(bytes, Slots::Go);
        shared.heap.trim(bytes);
    }

    /// Frees memory that was idle for `age`.
    ///
    /// Of each cache it frees the size classes that the thread did not use. Of each shard it frees
    /// as many blocks of a class as were unused throughout that time.
    ///
    /// A [`Keeper`](bufkeeper::Keeper) calls it, or the program does so periodically, as often as
    /// it likes. Buffers have no time stamps; the calls themselves sample the pool:
    ///
    /// - The first call records a sample.
    /// - A call at least `age` after the last sample compares, frees, and records a new sample.
    /// - An earlier call does nothing.
    ///
    /// The freed memory was therefore idle for at least `age`. Idle memory is freed after at most
    /// twice that, if the calls are frequent enough.
    ///
    /// Cost: nothing for most calls. A call that takes a sample visits every cache, and costs as
    /// much as [`trim`](Self::trim) for those with memory to free.
    ///
    /// ```
    /// use core::time::Duration;
    /// use bufshard::ShardPool;
    ///
    /// let pool = ShardPool::new()?;
    /// drop(pool.acquire(100_000)?);
    /// pool.trim_idle(Duration::ZERO); // notes
    /// pool.trim_idle(Duration::ZERO); // not used since
    /// assert_eq!(pool.stats().reserved_bytes, 0);
    /// # Ok::<(), bufshard::bufcore::Error>(())
    /// ```
    #[inline]
    pub fn trim_idle(&self, age: Duration) {
        self.shared().shrink_idle(age);
    }

    /// Restarts the high-water marks of the statistics from the current use. The other counters are
    /// never reset: [`PoolStats::since`] returns their difference.
    ///
    /// While other threads use the pool, a buffer that one of them acquires at the same moment may
    /// be missed. Without the `stats` feature the call does nothing.
    ///
    /// Cost: a visit of every cache.
    ///
    /// ```
    /// use bufshard::ShardPool;
    ///
    /// let pool = ShardPool::new()?;
    /// drop((pool.acquire(1500)?, pool.acquire(1500)?)); // a burst of two
    /// pool.reset_high_water();
    /// drop(pool.acquire(1500)?);
    /// # #[cfg(feature = "stats")]
    /// assert_eq!(pool.stats().high_water, 1); // the most since then
    /// # Ok::<(), bufshard::bufcore::Error>(())
    /// ```
    #[inline]
    pub fn reset_high_water(&self) {
        if cfg!(feature = "stats") {
            let (shared, now) = (self.shared(), self.stats());
            shared.counts().for_each(|counts| counts.set_high_water(0, 0));
            shared.common.set_high_water(now.in_use, now.in_use_bytes);
        }
    }

    /// Returns a snapshot of the pool's statistics by size class: the pooled ones, smallest first.
    /// The list is empty if its allocation fails.
    ///
    /// Cost: a visit of every cache and of the shards that are not empty, and an allocation. It
    /// stops no thread.
    ///
    /// ```
    /// use bufshard::ShardPool;
    ///
    /// let pool = ShardPool::new()?;
    /// pool.preallocate(3, 64 << 10)?;
    /// let of_64 = pool.class_stats().into_iter().find(|class| class.bytes == 64 << 10).unwrap();
    /// assert_eq!((of_64.thread_idle, of_64.shard_idle), (0, 3));
    /// # Ok::<(), bufshard::bufcore::Error>(())
    /// ```
    #[inline]
    #[must_use]
    pub fn class_stats(&self) -> alloc::vec::Vec<ClassStats> {
        ClassStats::all(self.shared())
    }

    /// Returns a snapshot of the pool's statistics, as
    /// [`BufferPool::stats`](bufcore::BufferPool::stats) does.
    ///
    /// Buffers in use count with the bytes of their size classes. Requests for no bytes are not
    /// counted. `high_water` is exact while one thread uses the pool. Each of several threads
    /// checks the others only when its cache cannot serve it, so a mark may miss buffers that they
    /// had for a moment in between, at most as many as their caches hold.
    ///
    /// `reserved_bytes` are the resident pages of the pool. `idle_bytes` are the idle buffers, by
    /// size class, and the unused parts of the pages. Both are known without the `stats` feature.
    /// `fallbacks` are the requests for sizes that are not pooled.
    ///
    /// Cost: a visit of every cache and of the shards that are not empty. It stops no thread.
    ///
    /// ```
    /// use bufshard::ShardPool;
    ///
    /// let pool = ShardPool::new()?;
    /// drop(pool.acquire(1500)?);
    /// let stats = pool.stats();
    /// assert!(stats.idle_bytes >= 1500 && stats.reserved_bytes > stats.idle_bytes);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn stats(&self) -> PoolStats {
        let shared = self.shared();
        let mut stats = Counts::sum(shared.counts());
        let pages = shared.heap.stats();
        stats.reserved_bytes = pages.resident_bytes;
        stats.idle_bytes = shared.idle_bytes() + pages.dirty_bytes + pages.free_block_bytes;
        stats
    }

    /// Returns the largest request, in bytes, that can ever succeed.
    ///
    /// ```
    /// use bufshard::{AcquireError, ShardPool};
    ///
    /// let pool = ShardPool::builder().max_bytes(1 << 20).build()?;
    /// let most = pool.max_capacity(); // a little less than the budget
    /// assert!(pool.acquire(most).is_ok());
    /// assert!(matches!(pool.acquire(most + 1), Err(AcquireError::TooLarge { .. })));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn max_capacity(&self) -> usize {
        self.shared().settings.max_capacity()
    }

    /// Lists the buffers in use, longest first: where and when each was acquired.
    ///
    /// ```
    /// use bufshard::ShardPool;
    ///
    /// let pool = ShardPool::new()?;
    /// let forgotten = pool.acquire(1500)?;
    /// drop(pool.acquire(64)?);
    /// let list = pool.outstanding();
    /// assert_eq!(list.len(), 1);
    /// println!("{}", list[0]); // the file and line of the first `acquire`
    /// # drop(forgotten);
    /// # Ok::<(), bufshard::bufcore::Error>(())
    /// ```
    #[cfg(feature = "track")]
    #[inline]
    #[must_use]
    pub fn outstanding(&self) -> alloc::vec::Vec<bufcore::Outstanding> {
        self.shared().tracker.outstanding()
    }
}

bufkit::shared_pool!(impl ShardPool => ShardLease);

impl fmt::Debug for ShardPool {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ShardPool")
            .field("largest_pooled", &self.largest_pooled())
            .field("reserved_bytes", &self.stats().reserved_bytes)
            .finish_non_exhaustive()
    }
}
