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
    /// Its name in `AnyBuilder`, or one of the adviser's own.
    pub(crate) name: &'static str,
    /// Its colour in the charts.
    pub(crate) colour: &'static str,
    pub(crate) owner: Owner,
    /// The type of its pool in `bufworks`, unless a program takes it as an `AnyPool`.
    pub(crate) pool_type: Option<&'static str>,
    /// Whether it is what one has without a pool.
    pub(crate) is_control: bool,
    /// What a program sees when there are more buffers out than the settings have room for.
    pub(crate) beyond: &'static str,
    /// What the traffic means for it. `{own}` is what each thread has out.
    pub(crate) reason: Option<&'static str>,
    /// Adds its candidates.
    pub(crate) sweep: fn(&mut Sweep, &Room),
}

/// The name of a strategy that is replayed under another: a slot pool never falls back here.
pub(crate) const BOUNDED: &str = "bounded-slot";
/// The names of what one has without a pool.
pub(crate) const HEAP: &str = "heap";
pub(crate) const VEC: &str = "vec";

/// The colour of strategies that are not in the table.
pub(crate) const OTHER_COLOUR: &str = "s4";

const REFUSES: &str = "further requests are refused until buffers come back";

/// Returns what one has without a pool.
const fn control(name: &'static str, colour: &'static str, sweep: fn(&mut Sweep, &Room)) -> Strategy {
    Strategy {
        name,
        colour,
        owner: Owner::All,
        pool_type: None,
        is_control: true,
        beyond: "nothing changes: each buffer is an allocation",
        reason: None,
        sweep,
    }
}

/// All of them, in the order of the tables and charts.
pub(crate) static ALL: [Strategy; 7] = [
    Strategy {
        name: "slot",
        colour: "s0",
        owner: Owner::Thread,
        pool_type: Some("slot::SlotPool"),
        is_control: false,
        beyond: "further requests fall back to the heap, one allocation each, until slots come back",
        reason: Some(
            "Each thread that acquires has few buffers out at a time ({own}), so a small bounded pool of its own serves it without a lock. \
             A thread that drops a buffer only gives its slot back.",
        ),
        sweep: |sweep, room| {
            for slots in [room.live, 2 * room.live] {
                for capacity in room.capacities {
                    sweep.add("slot", &[("slots", slots), ("capacity", capacity)]);
                }
            }
        },
    },
    Strategy {
        name: "ring",
        colour: "s1",
        owner: Owner::Thread,
        pool_type: Some("ring::RingPool"),
        is_control: false,
        beyond: REFUSES,
        reason: Some(
            "Each thread that acquires has few buffers out at a time ({own}), so a ring of its own serves it with a few instructions. No buffer \
             was kept so long that the ring ran full behind it. A buffer that is kept for long would do that.",
        ),
        sweep: |sweep, room| {
            for capacity in room.capacities {
                sweep.add("ring", &[("buffers", room.live), ("capacity", capacity)]);
            }
        },
    },
    Strategy {
        name: "bump",
        colour: "s2",
        owner: Owner::All,
        pool_type: Some("bump::BumpPool"),
        is_control: false,
        beyond: "the pool takes further shards from the heap, and frees what it need not keep",
        reason: Some(
            "Buffers of any size are cut one after the other from shards that each thread has to itself. A shard is used again as a whole, so \
             a release on another thread touches one counter and no list.",
        ),
        sweep: |sweep, room| {
            for shard_size in room.shard_sizes {
                for idle in room.idle_bytes {
                    let idle = idle.max(shard_size);
                    sweep.add("bump", &[("shard_size", shard_size), ("max_idle_bytes", idle)]);
                }
            }
        },
    },
    Strategy {
        name: "shard",
        colour: "s3",
        owner: Owner::All,
        pool_type: Some("shard::ShardPool"),
        is_control: false,
        beyond: "the pool takes further blocks from the heap, and frees what its caches and shards have no room for; with `max_bytes` set, \
                 requests beyond it are refused or wait",
        reason: Some(
            "Blocks go from the threads that drop them, through caches, to those that acquire, by size class. All threads share one pool, so \
             idle memory of one thread serves another.",
        ),
        sweep: |sweep, room| {
            let most = *room.caches.last().expect("three of them");
            for cache in room.caches {
                for buffers in room.shard_buffers {
                    sweep.add("shard", &[("thread_cache", cache), ("shard_buffers", buffers)]);
                }
            }
            // Whether the smaller half is better left to the allocator.
            let buffers = room.shard_buffers[0];
            let settings =
                [("thread_cache", most), ("shard_buffers", buffers), ("smallest_pooled", room.larger_half)];
            sweep.add("shard", &settings);
        },
    },
    Strategy {
        name: BOUNDED,
        colour: OTHER_COLOUR,
        owner: Owner::Thread,
        pool_type: None,
        is_control: false,
        beyond: REFUSES,
        reason: None,
        // It is replayed as `slot` is.
        sweep: |_, _| (),
    },
    control(HEAP, "c0", |sweep, _| sweep.add(HEAP, &[])),
    control(VEC, "c1", |sweep, _| sweep.add_vec()),
];

/// Returns the strategy of this name, if the table has it.
pub(crate) fn of(name: &str) -> Option<&'static Strategy> {
    ALL.iter().find(|strategy| strategy.name == name)
}
