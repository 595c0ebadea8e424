//! Statistics: what a pool has done and holds.

#[cfg(feature = "stats")]
use crate::sync::{AtomicUsize, Ordering};

/// The counters and memory of a pool, in plain numbers. Reading them stops no thread.
///
/// The event counters and the high-water marks are zero unless the `stats` feature is on. Numbers
/// that a pool knows without counting (`reserved_bytes`, and `in_use` in some strategies) are
/// always valid.
///
/// # How the numbers add up
///
/// With the feature, after every call, while no other thread uses the pool:
///
/// - `acquired == reused + fresh`, and `fallbacks <= fresh`.
/// - `in_use <= high_water`, and `in_use_bytes <= high_water_bytes`.
/// - `idle_bytes + pinned_bytes <= reserved_bytes`. In `bufbump` they are equal.
/// - Bytes in use of the pool's own memory, plus `idle_bytes`, are at most `reserved_bytes`. In
///   pools over one region the sum is equal to `reserved_bytes`. In the other pools headers and
///   alignment take the difference. A fallback's buffers count in `in_use_bytes`; its memory does
///   not count in `reserved_bytes`.
///
/// # Counters that start again
///
/// Counters are never reset: that would break other readers of the same pool.
/// [`since`](Self::since) returns the difference between two snapshots. High-water marks have no
/// such difference. Each pool has `reset_high_water`, which restarts them from the buffers in use.
///
/// A mark is the most that requests saw, and at least the use at the moment of the snapshot. It may
/// miss uses that only snapshots can see: buffers that a fallback served to others, and in
/// `bufshard` buffers that other threads had for a moment.
///
/// ```
/// # #[cfg(feature = "alloc")] {
/// use bufcore::{HeapPool, PoolStats};
///
/// let mut pool = HeapPool::new();
/// let buf = pool.acquire(1500)?;
/// let stats: PoolStats = pool.stats();
/// # #[cfg(feature = "stats")]
/// assert_eq!((stats.in_use, stats.in_use_bytes, stats.high_water_bytes), (1, 1500, 1500));
/// drop(buf);
/// # }
/// # Ok::<(), bufcore::Error>(())
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PoolStats {
    /// Buffers acquired since the pool was made, except those of 0 bytes: they take no memory.
    pub acquired: u64,
    /// Of `acquired`, the buffers that reused memory of the pool.
    pub reused: u64,
    /// Of `acquired`, the buffers whose memory was new: free pages, memory of the system, or the
    /// fallback's.
    pub fresh: u64,
    /// Of `fresh`, the buffers that the fallback served, because the strategy was exhausted.
    pub fallbacks: u64,
    /// Requests that failed as exhausted.
    pub exhausted: u64,
    /// Buffers in use now, including that of each unfinished [`Writer`](crate::Writer). A split
    /// buffer counts once, until its last part is dropped.
    pub in_use: usize,
    /// Bytes in use now: of each buffer the requested capacity, as its pool rounds it up.
    pub in_use_bytes: usize,
    /// The most buffers that were ever in use at once, or since the last reset of the mark.
    pub high_water: usize,
    /// The most bytes that were ever in use at once, or since the last reset of the mark.
    pub high_water_bytes: usize,
    /// Bytes of memory that the pool holds, in use or idle, without its bookkeeping.
    pub reserved_bytes: usize,
    /// Of `reserved_bytes`, the bytes that no buffer uses and the next requests may use. In pools
    /// over one region it needs the `stats` feature, and is 0 without it.
    pub idle_bytes: usize,
    /// Of `reserved_bytes`, the bytes that no request can use because a nearby buffer is in use.
    /// Only strategies that reclaim memory in larger pieces than buffers have them; others report
    /// zero. If it is far above `in_use_bytes`, small survivors pin large pieces.
    pub pinned_bytes: usize,
}

impl PoolStats {
    /// Whether pools count: whether the feature `stats` is on. Without it, a zero in the counters
    /// and the high-water marks has no meaning.
    ///
    /// ```
    /// use bufcore::{HeapPool, PoolStats};
    ///
    /// let stats = HeapPool::new().stats();
    /// if PoolStats::ARE_COUNTED {
    ///     println!("{} buffers were handed out", stats.acquired);
    /// }
    /// ```
    pub const ARE_COUNTED: bool = cfg!(feature = "stats");

    /// Returns the events since `earlier`, a snapshot of the same pool: the difference of the
    /// counters.
    ///
    /// The numbers of buffers in use, and of idle and reserved bytes, are those of `self`. So are
    /// the high-water marks: they cover the time since the pool was made, or since their last
    /// reset.
    ///
    /// ```
    /// use bufcore::{BufferPool, HeapPool};
    ///
    /// let mut pool = HeapPool::new();
    /// drop(pool.acquire(100)?);
    /// let earlier = pool.stats();
    /// let _held = pool.acquire(100)?;
    /// let lately = pool.stats().since(&earlier);
    /// # #[cfg(feature = "stats")]
    /// assert_eq!((lately.acquired, lately.in_use), (1, 1));
    /// # Ok::<(), bufcore::AcquireError>(())
    /// ```
    #[inline]
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            // They count up, and wrap around only in theory.
            acquired: self.acquired.wrapping_sub(earlier.acquired),
            reused: self.reused.wrapping_sub(earlier.reused),
            fresh: self.fresh.wrapping_sub(earlier.fresh),
            fallbacks: self.fallbacks.wrapping_sub(earlier.fallbacks),
            exhausted: self.exhausted.wrapping_sub(earlier.exhausted),
            ..*self
        }
    }

    /// Raises the marks to what is out.
    #[cfg(feature = "stats")]
    fn with_marks_raised(self) -> Self {
        Self {
            high_water: self.high_water.max(self.in_use),
            high_water_bytes: self.high_water_bytes.max(self.in_use_bytes),
            ..self
        }
    }
}

/// Counts for a pool from which one thread at a time acquires. [`Released`] counts the releases on
/// any thread.
///
/// Without the `stats` feature this is a type of no size whose methods do nothing.
///
/// ```
/// use bufcore::author::{Counters, Released, Served};
/// use bufcore::PoolStats;
///
/// let (mut counters, released) = (Counters::default(), Released::default());
/// counters.acquired(Served::Fresh, 1500, &released, PoolStats::default);
/// counters.acquired(Served::Reused, 500, &released, PoolStats::default);
/// released.add(1500); // on whichever thread the lease was dropped
/// let stats = counters.snapshot(&released, &PoolStats::default(), 4096);
/// assert_eq!(stats.reserved_bytes, 4096);
/// # #[cfg(feature = "stats")]
/// assert_eq!((stats.acquired, stats.in_use_bytes, stats.high_water_bytes), (2, 500, 2000));
/// ```
#[derive(Debug, Default)]
pub struct Counters {
    #[cfg(feature = "stats")]
    counts: PoolStats,
}

/// Counts the releases of one pool: the half of [`Counters`] that leases write, on whichever thread
/// they are dropped. It is stored where leases can access it.
///
/// ```
/// use bufcore::author::Released;
///
/// /// The bookkeeping in front of a pool's memory, which leases know.
/// #[derive(Default)]
/// struct Control {
///     released: Released,
/// }
///
/// let control = Control::default();
/// std::thread::scope(|scope| {
///     scope.spawn(|| control.released.add(1500));
/// });
/// ```
#[derive(Debug, Default)]
pub struct Released {
    #[cfg(feature = "stats")]
    buffers: AtomicUsize,
    #[cfg(feature = "stats")]
    bytes: AtomicUsize,
}

/// The source of the memory of a served request.
///
/// ```
/// use bufcore::author::Served;
///
/// /// What an acquire of a strategy counts.
/// fn served(has_idle: bool, is_exhausted: bool) -> Served {
///     match (has_idle, is_exhausted) {
///         (true, _) => Served::Reused,
///         (false, false) => Served::Fresh,
///         (false, true) => Served::Fallback,
///     }
/// }
/// assert_eq!(served(false, true), Served::Fallback);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Served {
    /// The pool held the memory already.
    Reused,
    /// The system, because this strategy always uses it, or because no idle memory fitted.
    Fresh,
    /// The fallback.
    Fallback,
}

impl Released {
    /// Counts the release of one buffer of `bytes`.
    #[inline]
    pub fn add(&self, bytes: usize) {
        #[cfg(feature = "stats")]
        {
            // ORDER: Relaxed, for both: they publish nothing, they are only counted.
            self.buffers.fetch_add(1, Ordering::Relaxed);
            self.bytes.fetch_add(bytes, Ordering::Relaxed);
        }
        #[cfg(not(feature = "stats"))]
        let _ = bytes;
    }

    #[cfg(feature = "stats")]
    fn load(&self) -> (usize, usize) {
        // ORDER: Relaxed, for both: a snapshot, and the two need not agree with each other.
        (self.buffers.load(Ordering::Relaxed), self.bytes.load(Ordering::Relaxed))
    }
}

impl Counters {
    /// Counts one acquired buffer of `bytes`.
    ///
    /// `elsewhere` returns the statistics of the fallback, for the high-water marks. A buffer that
    /// the fallback served counts there.
    #[inline]
    pub fn acquired(
        &mut self,
        served: Served,
        bytes: usize,
        released: &Released,
        elsewhere: impl FnOnce() -> PoolStats,
    ) {
        #[cfg(feature = "stats")]
        {
            // First, and not believed: it is the user's code, which may panic.
            let elsewhere = elsewhere();
            let counts = &mut self.counts;
            counts.acquired += 1;
            match served {
                Served::Reused => counts.reused += 1,
                Served::Fresh => counts.fresh += 1,
                Served::Fallback => {
                    counts.fresh += 1;
                    counts.fallbacks += 1;
                }
            }
            if served != Served::Fallback {
                // The totals wrap around together with those of `Released`, so the differences stay
                // right.
                counts.in_use = counts.in_use.wrapping_add(1);
                counts.in_use_bytes = counts.in_use_bytes.wrapping_add(bytes);
            }
            let (buffers_back, bytes_back) = released.load();
            // The fallback's numbers are the user's, and may be any.
            let buffers = counts.in_use.wrapping_sub(buffers_back).saturating_add(elsewhere.in_use);
            let bytes = counts.in_use_bytes.wrapping_sub(bytes_back).saturating_add(elsewhere.in_use_bytes);
            counts.high_water = counts.high_water.max(buffers);
            counts.high_water_bytes = counts.high_water_bytes.max(bytes);
        }
        #[cfg(not(feature = "stats"))]
        let _ = (served, bytes, released, elsewhere);
    }

    /// Counts the bytes of a live buffer that was resized in place from `before` to `after` bytes.
    /// `elsewhere` is as for [`acquired`](Self::acquired).
    #[inline]
    pub fn resized(&mut self, before: usize, after: usize, released: &Released, elsewhere: &PoolStats) {
        #[cfg(feature = "stats")]
        {
            let counts = &mut self.counts;
            counts.in_use_bytes = counts.in_use_bytes.wrapping_add(after).wrapping_sub(before);
            let now = counts.in_use_bytes.wrapping_sub(released.load().1);
            let bytes = now.saturating_add(elsewhere.in_use_bytes);
            counts.high_water_bytes = counts.high_water_bytes.max(bytes);
        }
        #[cfg(not(feature = "stats"))]
        let _ = (before, after, released, elsewhere);
    }

    /// Restarts the high-water marks from the buffers in use, those of the fallback (`elsewhere`)
    /// included.
    #[inline]
    pub fn reset_high_water(&mut self, released: &Released, elsewhere: &PoolStats) {
        #[cfg(feature = "stats")]
        {
            let now = self.snapshot(released, elsewhere, 0);
            self.counts.high_water = now.in_use;
            self.counts.high_water_bytes = now.in_use_bytes;
        }
        #[cfg(not(feature = "stats"))]
        let _ = (released, elsewhere);
    }

    /// Counts one failed request.
    #[inline]
    pub fn exhausted(&mut self) {
        #[cfg(feature = "stats")]
        {
            self.counts.exhausted += 1;
        }
    }

    /// Returns the snapshot: the pool's own counts plus the buffers in use of the fallback
    /// (`elsewhere`).
    pub fn snapshot(&self, released: &Released, elsewhere: &PoolStats, reserved_bytes: usize) -> PoolStats {
        #[cfg(feature = "stats")]
        let stats = {
            let (buffers_back, bytes_back) = released.load();
            let own_bytes = self.counts.in_use_bytes.wrapping_sub(bytes_back);
            PoolStats {
                in_use: self.counts.in_use.wrapping_sub(buffers_back).saturating_add(elsewhere.in_use),
                in_use_bytes: own_bytes.saturating_add(elsewhere.in_use_bytes),
                idle_bytes: reserved_bytes.saturating_sub(own_bytes),
                ..self.counts
            }
            .with_marks_raised()
        };
        #[cfg(not(feature = "stats"))]
        let stats = {
            let _ = (released, elsewhere);
            PoolStats::default()
        };
        PoolStats { reserved_bytes, ..stats }
    }
}
