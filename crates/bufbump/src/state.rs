//! Reports the state of a pool: statistics, sizes, what is out.

use bufcore::PoolStats;
use bufkit::sync::Ordering;

use crate::cache::ThreadCache;
use crate::pool::BumpPool;

impl BumpPool {
    /// Returns a snapshot of the pool's statistics, as
    /// [`BufferPool::stats`](bufcore::BufferPool::stats) does.
    ///
    /// `in_use`, `reserved_bytes`, `pinned_bytes` and `idle_bytes` are known without the `stats`
    /// feature, except for buffers of no bytes. `reserved_bytes` are the resident pages of the
    /// pool: the sum of `idle_bytes` and `pinned_bytes`.
    ///
    /// - If `fresh` keeps rising, [`max_idle_bytes`](crate::Builder::max_idle_bytes) is too small
    ///   for the traffic.
    /// - A buffer larger than a shard counts in `in_use_bytes` with its whole span.
    /// - If `pinned_bytes` is much more than `in_use_bytes`, small survivors pin large shards.
    ///   [`evacuate`](Self::evacuate) copies them to newer shards.
    ///
    /// Cost: a check of every shard. No thread is stopped.
    ///
    /// ```
    /// use bufbump::BumpPool;
    ///
    /// let pool = BumpPool::builder().shard_size(64 << 10).build()?;
    /// let survivor = pool.acquire(100)?;
    /// let stats = pool.stats();
    /// assert_eq!(stats.in_use, 1);
    /// assert!(stats.pinned_bytes > 64 << 10 && stats.idle_bytes == 0); // it holds a whole shard
    /// drop(survivor);
    /// assert_eq!(pool.stats().idle_bytes, stats.pinned_bytes);
    /// # Ok::<(), bufbump::Error>(())
    /// ```
    #[must_use]
    pub fn stats(&self) -> PoolStats {
        let shared = self.shared();
        let mut stats = shared.counters.snapshot();
        // ORDER: Relaxed: a count.
        let mut in_use = shared.large.load(Ordering::Relaxed);
        let heap = shared.heap.stats();
        let mut idle = heap.dirty_bytes;
        for shard in shared.depot.all() {
            let (out, bytes) = shard.snapshot();
            in_use += out;
            idle += if out == 0 { bytes } else { 0 };
        }
        for bytes in shared.caches.iter().filter_map(ThreadCache::large_bytes) {
            in_use = in_use.saturating_sub(1);
            idle += bytes;
        }
        stats.reserved_bytes = heap.resident_bytes;
        // Other threads may have given memory back since.
        stats.idle_bytes = idle.min(heap.resident_bytes);
        stats.pinned_bytes = stats.reserved_bytes - stats.idle_bytes;
        if !cfg!(feature = "stats") {
            stats.in_use = in_use;
        }
        stats
    }

    /// Restarts the high-water marks of the statistics from the current use. The other counters are
    /// never reset: [`PoolStats::since`] returns their difference.
    ///
    /// While other threads use the pool, a buffer that one of them acquires at the same moment may
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
    /// assert_eq!(pool.stats().high_water, 1); // the buffers in use now
    /// # drop(held);
    /// # }
    /// # Ok::<(), bufbump::Error>(())
    /// ```
    pub fn reset_high_water(&self) {
        self.shared().counters.reset_high_water();
    }

    /// Returns the largest request that does not need pages of its own, in bytes.
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
        self.shared().settings.max_capacity
    }

    /// Lists the buffers in use, longest first: where and when each was acquired.
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
