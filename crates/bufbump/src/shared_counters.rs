//! The counters of a pool that several threads use at once.

use bufcore::PoolStats;
use bufcore::author::Served;
#[cfg(feature = "stats")]
use bufkit::sync::{AtomicUsize, Ordering};

/// Counts for a pool that several threads acquire from. Unlike [`Counters`] the counts are shared,
/// and so cost locked instructions.
///
/// Without the `stats` feature this is a type of no size whose methods do nothing.
#[derive(Debug, Default)]
pub(crate) struct SharedCounters {
    #[cfg(feature = "stats")]
    acquired: AtomicUsize,
    #[cfg(feature = "stats")]
    reused: AtomicUsize,
    #[cfg(feature = "stats")]
    fallbacks: AtomicUsize,
    #[cfg(feature = "stats")]
    in_use: AtomicUsize,
    #[cfg(feature = "stats")]
    in_use_bytes: AtomicUsize,
    #[cfg(feature = "stats")]
    high_water: AtomicUsize,
    #[cfg(feature = "stats")]
    high_water_bytes: AtomicUsize,
}

impl SharedCounters {
    /// Counts one buffer of `bytes` as handed out.
    #[inline]
    pub(crate) fn acquired(&self, served: Served, bytes: usize) {
        #[cfg(feature = "stats")]
        {
            // ORDER: Relaxed, for all: they publish nothing, they are only counted.
            let add =
                |counter: &AtomicUsize, n: usize| counter.fetch_add(n, Ordering::Relaxed).wrapping_add(n);
            add(&self.acquired, 1);
            match served {
                Served::Reused => add(&self.reused, 1),
                Served::Fresh => 0,
                Served::Fallback => add(&self.fallbacks, 1),
            };
            let (buffers, bytes) = (add(&self.in_use, 1), add(&self.in_use_bytes, bytes));
            // ORDER: Relaxed, as above.
            self.high_water.fetch_max(buffers, Ordering::Relaxed);
            self.high_water_bytes.fetch_max(bytes, Ordering::Relaxed);
        }
        #[cfg(not(feature = "stats"))]
        let _ = (served, bytes);
    }

    /// Lets the high-water marks start again from the buffers that are out now.
    ///
    /// An acquire on another thread at the same moment may be missed, or be counted although it
    /// came before.
    pub(crate) fn reset_high_water(&self) {
        #[cfg(feature = "stats")]
        {
            let now = self.snapshot();
            // ORDER: Relaxed, for both, as in `acquired`.
            self.high_water.store(now.in_use, Ordering::Relaxed);
            self.high_water_bytes.store(now.in_use_bytes, Ordering::Relaxed);
        }
    }

    /// Counts one buffer of `bytes` as back.
    #[inline]
    #[cfg_attr(not(feature = "stats"), allow(dead_code, reason = "it counts nothing then"))]
    pub(crate) fn released(&self, bytes: usize) {
        #[cfg(feature = "stats")]
        {
            // ORDER: Relaxed, for both, as in `acquired`.
            self.in_use.fetch_sub(1, Ordering::Relaxed);
            self.in_use_bytes.fetch_sub(bytes, Ordering::Relaxed);
        }
        #[cfg(not(feature = "stats"))]
        let _ = bytes;
    }

    /// Returns the snapshot. Its numbers need not agree with each other while other threads use the
    /// pool.
    pub(crate) fn snapshot(&self) -> PoolStats {
        #[cfg(feature = "stats")]
        {
            // ORDER: Relaxed, as in `acquired`.
            let load = |counter: &AtomicUsize| counter.load(Ordering::Relaxed);
            let (acquired, reused) = (load(&self.acquired) as u64, load(&self.reused) as u64);
            let mut stats = PoolStats::default();
            stats.acquired = acquired;
            stats.reused = reused;
            stats.fresh = acquired.saturating_sub(reused);
            stats.fallbacks = load(&self.fallbacks) as u64;
            stats.in_use = load(&self.in_use);
            stats.in_use_bytes = load(&self.in_use_bytes);
            stats.high_water = load(&self.high_water);
            stats.high_water_bytes = load(&self.high_water_bytes);
            // A mark that another thread has not raised yet.
            stats.high_water = stats.high_water.max(stats.in_use);
            stats.high_water_bytes = stats.high_water_bytes.max(stats.in_use_bytes);
            stats
        }
        #[cfg(not(feature = "stats"))]
        PoolStats::default()
    }
}
