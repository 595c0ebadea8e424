//! The numbers of the pools of one name, and how numbers of pools add up.

use alloc::sync::Arc;

use bufcore::PoolStats;

/// Has the numbers of the pools of one name, as [`Monitor::read`](super::Monitor::read) returns
/// them.
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
    /// How many pools of that name there are.
    pub pools: usize,
    /// The sums of their numbers. Counters have what pools counted that have ended, too.
    pub stats: PoolStats,
}

/// Returns what a pool says now, except that no counter is less than it was. A pool of the
/// program's may say anything.
pub(super) fn risen(before: &PoolStats, now: PoolStats) -> PoolStats {
    let mut risen = now;
    risen.acquired = now.acquired.max(before.acquired);
    risen.reused = now.reused.max(before.reused);
    risen.fresh = now.fresh.max(before.fresh);
    risen.fallbacks = now.fallbacks.max(before.fallbacks);
    risen.exhausted = now.exhausted.max(before.exhausted);
    risen
}

/// Adds the counters of one to the other's.
pub(super) fn add_counters(sum: &mut PoolStats, one: &PoolStats) {
    sum.acquired = sum.acquired.saturating_add(one.acquired);
    sum.reused = sum.reused.saturating_add(one.reused);
    sum.fresh = sum.fresh.saturating_add(one.fresh);
    sum.fallbacks = sum.fallbacks.saturating_add(one.fallbacks);
    sum.exhausted = sum.exhausted.saturating_add(one.exhausted);
}

/// Adds all numbers of one to the other's.
pub(super) fn add(sum: &mut PoolStats, one: &PoolStats) {
    add_counters(sum, one);
    sum.in_use = sum.in_use.saturating_add(one.in_use);
    sum.in_use_bytes = sum.in_use_bytes.saturating_add(one.in_use_bytes);
    sum.high_water = sum.high_water.saturating_add(one.high_water);
    sum.high_water_bytes = sum.high_water_bytes.saturating_add(one.high_water_bytes);
    sum.reserved_bytes = sum.reserved_bytes.saturating_add(one.reserved_bytes);
    sum.idle_bytes = sum.idle_bytes.saturating_add(one.idle_bytes);
    sum.pinned_bytes = sum.pinned_bytes.saturating_add(one.pinned_bytes);
}
