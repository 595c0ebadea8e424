//! Statistics by size class.

use alloc::vec::Vec;

use bufkit::PageStats;

use crate::class;
use crate::counts::Count;
use crate::pool::ShardPool;
use crate::shared::Shared;

/// A snapshot of one size class of a pool, in plain numbers. [`PoolStats`](bufcore::PoolStats) is
/// that of the whole pool.
///
/// It stops no thread, so the numbers need not be consistent while threads use the pool. While no
/// other thread does, with the `stats` feature, `allocations + preallocations == in_use +
/// thread_idle + shard_idle + discards + trims`. The pool's
/// [`idle_bytes`](bufcore::PoolStats::idle_bytes) also include free pages.
///
/// The counters are zero unless the `stats` feature is on. The numbers of idle buffers are valid
/// without it.
///
/// - Many `allocations` and `discards` at the same time: the shards are too small for the traffic
///   between threads. Raise [`shard_buffers`](crate::Builder::shard_buffers).
/// - `trims` that rise although nothing is trimmed: the budget is tight, and idle memory is freed
///   for requests. Raise [`max_bytes`](crate::Builder::max_bytes).
/// - Many idle buffers compared with those in use, for long: call
///   [`trim_idle`](crate::ShardPool::trim_idle) periodically.
///
/// ```
/// use bufshard::ShardPool;
///
/// let pool = ShardPool::new()?;
/// drop((pool.acquire(1000)?, pool.acquire(100_000)?));
/// let classes = pool.class_stats();
/// let idle = classes.iter().filter(|class| class.thread_idle > 0);
/// assert_eq!(idle.map(|class| class.bytes).collect::<Vec<_>>(), [1024, 112 << 10]);
/// # Ok::<(), bufshard::bufcore::Error>(())
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClassStats {
    /// Bytes of the class: the largest request that it serves.
    pub bytes: usize,
    /// Requests that the thread's cache served.
    pub thread_hits: u64,
    /// Requests that a shard served.
    pub shard_hits: u64,
    /// Requests for which memory was allocated.
    pub allocations: u64,
    /// Buffers that [`preallocate`](crate::ShardPool::preallocate) made and kept.
    pub preallocations: u64,
    /// Buffers whose memory was freed because the shards were full.
    pub discards: u64,
    /// Buffers whose memory was freed while they were idle: by trims, and for requests that needed
    /// their part of the budget.
    pub trims: u64,
    /// Buffers in use.
    pub in_use: usize,
    /// Idle buffers in the caches of threads.
    pub thread_idle: usize,
    /// Idle buffers in the shards.
    pub shard_idle: usize,
}

impl ClassStats {
    /// Reads the statistics of a class.
    #[inline]
    fn of(shared: &Shared, class: usize) -> Self {
        let count = |what| shared.counts().map(|of| of.of_class(what, class)).fold(0, usize::wrapping_add);
        let (thread_hits, shard_hits) = (count(Count::ThreadHits), count(Count::ShardHits));
        let allocations = count(Count::Fresh);
        let acquired = thread_hits.wrapping_add(shard_hits).wrapping_add(allocations);
        let (thread_idle, shard_idle) = shared.idle(class);
        Self {
            bytes: class::bytes_of(class),
            thread_hits: thread_hits as u64,
            shard_hits: shard_hits as u64,
            allocations: allocations as u64,
            preallocations: count(Count::Preallocations) as u64,
            discards: count(Count::Discards) as u64,
            trims: count(Count::Trims) as u64,
            in_use: acquired.wrapping_sub(count(Count::Released)),
            thread_idle,
            shard_idle,
        }
    }

    /// Reads the statistics of all classes of a pool; there are none when there is no memory.
    #[inline]
    pub(crate) fn all(shared: &Shared) -> Vec<Self> {
        let pooled = shared.settings.smallest_class..shared.settings.classes;
        let mut all = Vec::new();
        if all.try_reserve_exact(pooled.len()).is_ok() {
            all.extend(pooled.map(|class| Self::of(shared, class)));
        }
        all
    }
}

impl ShardPool {
    /// Returns a snapshot of the pool's pages: resident, free, and returned to the system.
    ///
    /// Cost: a short lock.
    ///
    /// ```
    /// use bufshard::ShardPool;
    ///
    /// let pool = ShardPool::new()?;
    /// drop([(); 8].map(|()| pool.acquire(1 << 20)));
    /// assert!(pool.page_stats().dirty_bytes >= 6 << 20); // for requests of any size
    /// pool.trim();
    /// assert_eq!(pool.page_stats().resident_bytes, 0);
    /// assert!(pool.page_stats().returned_bytes >= 8 << 20);
    /// # Ok::<(), bufshard::bufcore::Error>(())
    /// ```
    #[inline]
    #[must_use]
    pub fn page_stats(&self) -> PageStats {
        self.shared().heap.stats()
    }
}
