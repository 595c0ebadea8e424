//! The table of the strategies: the adviser names them here, and nowhere else but in `source`.
//!
//! A strategy that `AnyPool` has and this table has not is replayed as well, with room for the
//! traffic where it has a setting for that.

use super::candidate::{Room, Sweep};

/// Who has a pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Owner {
    /// Each thread that acquires has a pool of its own.
    Thread,
    /// All threads share one.
    All,
}

/// A strategy.
pub(crate) struct Strategy {
    /// Its name in `AnyBuilder`.
    pub(crate) name: &'static str,
    pub(crate) owner: Owner,
    /// The type of its pool in `bufworks`.
    pub(crate) pool_type: &'static str,
    /// What a program sees when more buffers are in use than the settings have room for.
    pub(crate) beyond: &'static str,
    /// Adds its candidates.
    pub(crate) sweep: fn(&mut Sweep, &Room),
}

/// What one has without a pool.
pub(crate) const VEC: &str = "vec";
/// What a program sees of a pool that has no more room.
pub(crate) const REFUSES: &str = "further requests are refused until buffers are released";
/// Names of `AnyBuilder` that are not replayed: `heap` is no pool, and `bounded-slot` is `slot`
/// without its fallback, which is not replayed either.
pub(crate) const NOT_REPLAYED: [&str; 2] = ["heap", "bounded-slot"];

/// All of them, in the order of the tables.
pub(crate) static ALL: [Strategy; 4] = [
    Strategy {
        name: "slot",
        owner: Owner::Thread,
        pool_type: "slot::SlotPool",
        beyond: "further requests fall back to the heap, one allocation each, until slots are free",
        sweep: |sweep, room| {
            for capacity in room.capacities {
                sweep.add("slot", &[("slots", room.live), ("capacity", capacity)]);
            }
        },
    },
    Strategy {
        name: "ring",
        owner: Owner::Thread,
        pool_type: "ring::RingPool",
        beyond: REFUSES,
        sweep: |sweep, room| {
            for capacity in room.capacities {
                sweep.add("ring", &[("buffers", room.live), ("capacity", capacity)]);
            }
        },
    },
    Strategy {
        name: "bump",
        owner: Owner::All,
        pool_type: "bump::BumpPool",
        beyond: "the pool allocates further shards, and frees what it need not keep",
        sweep: |sweep, room| {
            for shard_size in room.shard_sizes {
                let idle = room.idle_bytes.max(shard_size);
                sweep.add("bump", &[("shard_size", shard_size), ("max_idle_bytes", idle)]);
            }
        },
    },
    Strategy {
        name: "shard",
        owner: Owner::All,
        pool_type: "shard::ShardPool",
        beyond: "the pool allocates further blocks, and frees those for which its caches have no room",
        sweep: |sweep, room| {
            for (cache, buffers) in room.caches {
                sweep.add("shard", &[("thread_cache", cache), ("shard_buffers", buffers)]);
            }
        },
    },
];

/// Returns the strategy of this name, if the table has it.
pub(crate) fn of(name: &str) -> Option<&'static Strategy> {
    ALL.iter().find(|strategy| strategy.name == name)
}
