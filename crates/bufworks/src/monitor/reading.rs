//! The numbers of the pools of one name, and how numbers of pools add up.

use alloc::sync::Arc;
use core::time::Duration;

use bufcore::PoolStats;

/// The numbers of the pools of one name, as [`Monitor::read`](super::Monitor::read) returns them.
///
/// ```
/// use std::sync::{Arc, Mutex};
/// use bufworks::any::AnyBuilder;
/// use bufworks::monitor::Monitor;
///
/// let pool = Arc::new(Mutex::new("heap".parse::<AnyBuilder>()?.build()?));
/// let monitor = Monitor::new();
/// monitor.watch("packets", &pool);
/// let readings = monitor.read();
/// assert_eq!((&*readings[0].name, readings[0].pools), ("packets", 1));
/// assert_eq!(readings[0].stats, pool.lock().unwrap().stats());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reading {
    /// The name.
    pub name: Arc<str>,
    /// The number of pools of that name.
    pub pools: usize,
    /// The sums of their numbers. Counters include those of dropped pools.
    pub stats: PoolStats,
    /// How long the first request in a queue has been waiting, the longest of all; zero if no
    /// request waits.
    pub stalled: Duration,
}

/// Combines fields of one with the other's.
macro_rules! combine {
    ($sum:ident, $one:ident, $with:ident: $($field:ident)+) => {
        $($sum.$field = $sum.$field.$with($one.$field);)+
    };
}

/// Returns what a pool says now, except that no counter is less than it was. A pool of the
/// program's may say anything.
pub(super) fn risen(before: &PoolStats, mut now: PoolStats) -> PoolStats {
    combine!(now, before, max: acquired reused fresh fallbacks exhausted);
    now
}

/// Adds the counters of one to the other's.
pub(super) fn add_counters(sum: &mut PoolStats, one: &PoolStats) {
    combine!(sum, one, saturating_add: acquired reused fresh fallbacks exhausted);
}

/// Adds all numbers of one to the other's.
pub(super) fn add(sum: &mut PoolStats, one: &PoolStats) {
    add_counters(sum, one);
    combine!(sum, one, saturating_add: in_use in_use_bytes high_water high_water_bytes);
    combine!(sum, one, saturating_add: reserved_bytes idle_bytes pinned_bytes);
}
