//! What a pool has done and holds, by tier and by size class.

use alloc::vec::Vec;

use bufcore::PoolStats;

use crate::class;
use crate::shared::Shared;

/// A snapshot of one pool. Plain numbers; taking it stops nothing, so they need not agree with each other while threads use the pool.
///
/// The counters are zero unless the `stats` feature is on; `reserved_bytes` is always there. Requests for no bytes are not counted.
///
/// `high_water` is exact while one thread uses the pool. With several, each looks at the others when its cache does not serve it, so a mark
/// may miss what they had for a moment in between, up to what their caches hold.
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
    /// Buffers whose memory was freed for want of room in the shards.
    pub discards: u64,
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
    /// Of those, bytes that no buffer has, with the headers of all; 0 without the `stats` feature.
    pub idle_bytes: usize,
    /// By size class: those that are pooled, from the smallest on.
    pub classes: Vec<ClassStats>,
}

/// One size class of a pool; see [`ShardStats`].
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
    /// Buffers whose memory was freed for want of room in the shards.
    pub discards: u64,
    /// Buffers that are out.
    pub in_use: usize,
}

impl ShardStats {
    /// The pool's.
    pub(crate) fn of(shared: &Shared) -> Self {
        let mut totals = PoolStats::default();
        shared.counts().for_each(|counts| counts.add_to(&mut totals));
        let mut stats = Self {
            oversize: totals.fallbacks,
            in_use: totals.in_use,
            in_use_bytes: totals.in_use_bytes,
            high_water: totals.high_water,
            high_water_bytes: totals.high_water_bytes,
            reserved_bytes: shared.reserved(),
            ..Self::default()
        };
        if cfg!(feature = "stats") {
            stats.idle_bytes = stats.reserved_bytes.saturating_sub(stats.in_use_bytes);
        }
        let settings = &shared.settings;
        let pooled = settings.smallest_class..settings.classes;
        // Without memory for the list, the totals are still right.
        let has_room = stats.classes.try_reserve_exact(pooled.len()).is_ok();
        for index in pooled {
            let mut class = ClassStats { bytes: class::bytes_of(index), ..ClassStats::default() };
            shared.counts().for_each(|counts| counts.add_class_to(index, &mut class));
            stats.thread_hits += class.thread_hits;
            stats.shard_hits += class.shard_hits;
            stats.allocations += class.allocations;
            stats.discards += class.discards;
            if has_room {
                stats.classes.push(class);
            }
        }
        stats
    }
}
