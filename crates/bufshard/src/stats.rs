//! Statistics: what a pool has done and holds, by tier and by size class.

use alloc::vec::Vec;

use crate::class;
use crate::counts::{Counts, OfClass};
use crate::shared::Shared;

/// A snapshot of one pool, in plain numbers.
///
/// Taking it stops no thread, so the numbers need not agree with each other while threads use the
/// pool.
///
/// The counters are zero unless the `stats` feature is on. The numbers of what is idle, and
/// `reserved_bytes`, are known without it. Requests for no bytes are not counted.
///
/// ```
/// use bufshard::ShardPool;
///
/// let pool = ShardPool::new()?;
/// let held = pool.acquire(64 << 10)?;
/// drop(pool.acquire(1 << 20)?);
/// let stats = pool.shard_stats();
/// assert_eq!((stats.thread_idle, stats.idle_bytes), (1, 1 << 20));
/// # #[cfg(feature = "stats")]
/// assert_eq!((stats.in_use, stats.in_use_bytes, stats.allocations), (1, 64 << 10, 2));
/// # drop(held);
/// # Ok::<(), bufshard::bufcore::Error>(())
/// ```
///
/// # How the numbers add up
///
/// While no other thread uses the pool, after every call, with the feature:
///
/// - Buffers, for each class and for all classes together:
///   `allocations + preallocations == in_use + thread_idle + shard_idle + discards + trims`.
///   (For all classes together, `in_use` also counts buffers of sizes that are not pooled, of which
///   `oversize` were made.)
/// - Requests: `thread_hits + shard_hits + allocations + oversize` is
///   [`PoolStats::acquired`](bufcore::PoolStats::acquired).
/// - Bytes: `reserved_bytes == in_use_bytes + idle_bytes + overhead_bytes`, and `idle_bytes` is the
///   sum over the classes of what is idle.
///
/// # What to look at
///
/// - Many `allocations` and `discards` at the same time: the shards are too small for the traffic
///   between threads. Raise [`shard_buffers`](crate::Builder::shard_buffers).
/// - Many `oversize`: requests are outside of [`smallest_pooled`](crate::Builder::smallest_pooled)
///   and [`largest_pooled`](crate::Builder::largest_pooled).
/// - Many `idle_bytes` beside `in_use_bytes` for long: call
///   [`trim_idle`](crate::ShardPool::trim_idle) from time to time.
///
/// [`since`](Self::since) gives rates.
///
/// `high_water` is exact while one thread uses the pool. Each of several threads looks at the
/// others only when its cache does not serve it. So a mark may miss buffers that they had for a
/// moment in between, at most as many as their caches hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ShardStats {
    /// Requests that the thread's cache served.
    pub thread_hits: u64,
    /// Requests that a shard served.
    pub shard_hits: u64,
    /// Requests for which a pooled buffer was allocated.
    pub allocations: u64,
    /// Requests for sizes that are not pooled: allocations of their own.
    pub oversize: u64,
    /// Buffers that [`preallocate`](crate::ShardPool::preallocate) made and kept.
    pub preallocations: u64,
    /// Buffers whose memory was freed for want of room in the shards.
    pub discards: u64,
    /// Buffers whose memory was freed while they were idle: by trims, and for requests that needed
    /// their part of the budget.
    pub trims: u64,
    /// Buffers that are out.
    pub in_use: usize,
    /// Bytes that are out, as the sizes of their classes.
    pub in_use_bytes: usize,
    /// The most buffers that were ever out at once.
    pub high_water: usize,
    /// The most bytes that were ever out at once.
    pub high_water_bytes: usize,
    /// Bytes of memory that the pool holds, with headers.
    pub reserved_bytes: usize,
    /// Of those, bytes that no buffer has, as the sizes of their classes.
    pub idle_bytes: usize,
    /// Of those, bytes around the others: headers, and what goes into aligning; 0 without the
    /// `stats` feature.
    pub overhead_bytes: usize,
    /// Idle buffers in the caches of threads.
    pub thread_idle: usize,
    /// Idle buffers in the shards.
    pub shard_idle: usize,
    /// By size class: those that are pooled, from the smallest on.
    pub classes: Vec<ClassStats>,
}

/// One size class of a pool; see [`ShardStats`].
///
/// ```
/// use bufshard::ShardPool;
///
/// let pool = ShardPool::new()?;
/// drop((pool.acquire(1000)?, pool.acquire(100_000)?));
/// let stats = pool.shard_stats();
/// let idle = stats.classes.iter().filter(|class| class.thread_idle > 0);
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
    /// Buffers whose memory was freed for want of room in the shards.
    pub discards: u64,
    /// Buffers whose memory was freed while they were idle: by trims, and for requests that needed
    /// their part of the budget.
    pub trims: u64,
    /// Buffers that are out.
    pub in_use: usize,
    /// Idle buffers in the caches of threads.
    pub thread_idle: usize,
    /// Idle buffers in the shards.
    pub shard_idle: usize,
}

impl ClassStats {
    /// Adds what one cache has counted.
    fn add(&mut self, counted: OfClass) {
        self.thread_hits += counted.thread_hits as u64;
        self.shard_hits += counted.shard_hits as u64;
        self.allocations += counted.fresh as u64;
        self.preallocations += counted.preallocations as u64;
        self.discards += counted.discards as u64;
        self.trims += counted.trims as u64;
        let acquired = counted.thread_hits.wrapping_add(counted.shard_hits).wrapping_add(counted.fresh);
        self.in_use = self.in_use.wrapping_add(acquired).wrapping_sub(counted.back);
    }

    /// Returns what was counted since `earlier`, as [`ShardStats::since`] does, for one class.
    ///
    /// ```
    /// use bufshard::ShardPool;
    ///
    /// let pool = ShardPool::new()?;
    /// let of_1024 = |pool: &ShardPool| {
    ///     pool.shard_stats().classes.into_iter().find(|class| class.bytes == 1024).unwrap()
    /// };
    /// let earlier = of_1024(&pool);
    /// drop((pool.acquire(1000)?, pool.acquire(1024)?, pool.acquire(2000)?));
    /// let lately = of_1024(&pool).since(&earlier);
    /// # #[cfg(feature = "stats")]
    /// assert_eq!(lately.allocations, 2);
    /// assert_eq!(lately.thread_idle, 2);
    /// # Ok::<(), bufshard::bufcore::Error>(())
    /// ```
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            thread_hits: self.thread_hits.wrapping_sub(earlier.thread_hits),
            shard_hits: self.shard_hits.wrapping_sub(earlier.shard_hits),
            allocations: self.allocations.wrapping_sub(earlier.allocations),
            preallocations: self.preallocations.wrapping_sub(earlier.preallocations),
            discards: self.discards.wrapping_sub(earlier.discards),
            trims: self.trims.wrapping_sub(earlier.trims),
            ..*self
        }
    }
}

impl ShardStats {
    /// Returns what was counted since `earlier`, a snapshot of the same pool: the difference of the
    /// counters.
    ///
    /// The numbers of what is out, idle and reserved are those of `self`. So are the high-water
    /// marks, for which there is [`reset_high_water`](crate::ShardPool::reset_high_water).
    ///
    /// The pool's own counters are never set back: the numbers of another reader would be wrong
    /// then, and threads count without locks.
    ///
    /// ```
    /// use bufshard::ShardPool;
    ///
    /// let pool = ShardPool::new()?;
    /// drop(pool.acquire(100)?);
    /// let earlier = pool.shard_stats();
    /// drop(pool.acquire(100)?);
    /// let lately = pool.shard_stats().since(&earlier);
    /// # #[cfg(feature = "stats")]
    /// assert_eq!((lately.thread_hits, lately.allocations), (1, 0));
    /// # Ok::<(), bufshard::bufcore::Error>(())
    /// ```
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let mut lately = self.clone();
        for (new, old) in [
            (&mut lately.thread_hits, earlier.thread_hits),
            (&mut lately.shard_hits, earlier.shard_hits),
            (&mut lately.allocations, earlier.allocations),
            (&mut lately.oversize, earlier.oversize),
            (&mut lately.preallocations, earlier.preallocations),
            (&mut lately.discards, earlier.discards),
            (&mut lately.trims, earlier.trims),
        ] {
            *new = new.wrapping_sub(old);
        }
        // The classes of a pool are always the same; a list for which there was no memory is empty.
        for (new, old) in lately.classes.iter_mut().zip(&earlier.classes) {
            *new = new.since(old);
        }
        lately
    }

    /// Reads the statistics of a pool.
    pub(crate) fn of(shared: &Shared) -> Self {
        let totals = Counts::sum(shared.counts());
        let mut stats = Self {
            oversize: totals.fallbacks,
            in_use: totals.in_use,
            in_use_bytes: totals.in_use_bytes,
            high_water: totals.high_water,
            high_water_bytes: totals.high_water_bytes,
            reserved_bytes: shared.reserved(),
            ..Self::default()
        };
        let settings = &shared.settings;
        let pooled = settings.smallest_class..settings.classes;
        // Without memory for the list, the totals are still right.
        let has_room = stats.classes.try_reserve_exact(pooled.len()).is_ok();
        for index in pooled {
            let mut class = ClassStats { bytes: class::bytes_of(index), ..ClassStats::default() };
            shared.counts().for_each(|counts| class.add(counts.of_class(index)));
            (class.thread_idle, class.shard_idle) = shared.idle(index);
            stats.thread_idle += class.thread_idle;
            stats.shard_idle += class.shard_idle;
            stats.idle_bytes += (class.thread_idle + class.shard_idle) * class.bytes;
            stats.thread_hits += class.thread_hits;
            stats.shard_hits += class.shard_hits;
            stats.allocations += class.allocations;
            stats.preallocations += class.preallocations;
            stats.discards += class.discards;
            stats.trims += class.trims;
            if has_room {
                stats.classes.push(class);
            }
        }
        if cfg!(feature = "stats") {
            let held = stats.in_use_bytes.saturating_add(stats.idle_bytes);
            stats.overhead_bytes = stats.reserved_bytes.saturating_sub(held);
        }
        stats
    }
}
