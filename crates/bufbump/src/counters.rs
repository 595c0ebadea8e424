//! Counts buffers, for all threads of a pool. Without the `stats` feature this
//! is a type of no size whose methods do nothing.

use bufcore::PoolStats;
use bufcore::author::Served;
#[cfg(feature = "stats")]
use bufkit::sync::{AtomicUsize, Ordering};

/// Counts what threads do at the same time, by locked instructions.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    #[cfg(feature = "stats")]
    counts: Counts,
}

// ORDER: Relaxed, in all of this: a count publishes nothing.
#[cfg(feature = "stats")]
#[derive(Debug, Default)]
struct Counts {
    acquired: AtomicUsize,
    reused: AtomicUsize,
    fallbacks: AtomicUsize,
    in_use: AtomicUsize,
    in_use_bytes: AtomicUsize,
    high_water: AtomicUsize,
    high_water_bytes: AtomicUsize,
}

#[cfg(feature = "stats")]
fn add(counter: &AtomicUsize, n: usize) -> usize {
    // ORDER: Relaxed: a count.
    counter.fetch_add(n, Ordering::Relaxed).wrapping_add(n)
}

#[cfg(feature = "stats")]
fn load(counter: &AtomicUsize) -> usize {
    // ORDER: Relaxed: a count.
    counter.load(Ordering::Relaxed)
}

#[cfg_attr(
    not(feature = "stats"),
    allow(unused_variables, unused_mut, dead_code, clippy::unused_self, reason = "nothing is counted then")
)]
impl Counters {
    /// Counts one acquired buffer of `bytes`.
    #[inline]
    pub(crate) fn acquired(&self, served: Served, bytes: usize) {
        #[cfg(feature = "stats")]
        {
            let counts = &self.counts;
            add(&counts.acquired, 1);
            match served {
                Served::Reused => add(&counts.reused, 1),
                Served::Fresh => 0,
                Served::Fallback => add(&counts.fallbacks, 1),
            };
            // ORDER: Relaxed: a count.
            counts.high_water.fetch_max(add(&counts.in_use, 1), Ordering::Relaxed);
            self.grown(bytes);
        }
    }

    /// Counts a buffer as one of `bytes` bytes more.
    #[inline]
    pub(crate) fn grown(&self, bytes: usize) {
        #[cfg(feature = "stats")]
        {
            let counts = &self.counts;
            // ORDER: Relaxed: a count.
            counts.high_water_bytes.fetch_max(add(&counts.in_use_bytes, bytes), Ordering::Relaxed);
        }
    }

    /// Counts one buffer of `bytes` as released.
    #[inline]
    pub(crate) fn released(&self, bytes: usize) {
        #[cfg(feature = "stats")]
        {
            // ORDER: Relaxed, for both: a count.
            self.counts.in_use.fetch_sub(1, Ordering::Relaxed);
            self.counts.in_use_bytes.fetch_sub(bytes, Ordering::Relaxed);
        }
    }

    /// Restarts the high-water marks from the buffers that are out now.
    ///
    /// An acquire on another thread at the same moment may be missed, or be counted although it
    /// came before.
    pub(crate) fn reset_high_water(&self) {
        #[cfg(feature = "stats")]
        {
            let counts = &self.counts;
            // ORDER: Relaxed, for both: a count.
            counts.high_water.store(load(&counts.in_use), Ordering::Relaxed);
            counts.high_water_bytes.store(load(&counts.in_use_bytes), Ordering::Relaxed);
        }
    }

    /// Returns the snapshot. Its numbers need not agree with each other while other threads use the
    /// pool.
    pub(crate) fn snapshot(&self) -> PoolStats {
        let mut stats = PoolStats::default();
        #[cfg(feature = "stats")]
        {
            let counts = &self.counts;
            (stats.acquired, stats.reused) = (load(&counts.acquired) as u64, load(&counts.reused) as u64);
            stats.fresh = stats.acquired.saturating_sub(stats.reused);
            stats.fallbacks = load(&counts.fallbacks) as u64;
            (stats.in_use, stats.in_use_bytes) = (load(&counts.in_use), load(&counts.in_use_bytes));
            // Another thread may not have raised a mark yet.
            stats.high_water = load(&counts.high_water).max(stats.in_use);
            stats.high_water_bytes = load(&counts.high_water_bytes).max(stats.in_use_bytes);
        }
        stats
    }
}
