//! The sharded thread-local pool.

use bufcore::Buf;
use bufshard::{Builder, ShardLease, ShardPool};

use crate::harness::contestant::{Contestant, Kind};
use crate::harness::plan::{Plan, Unsupported};
use crate::harness::serve::Pool;

/// Buffers of a class that a thread keeps unless the workload holds more.
const THREAD_CACHE: usize = 4;
/// Buffers of a class in a shard unless the workload holds more.
const SHARD_BUFFERS: usize = 16;
/// The most that a thread's cache is set to.
const MOST_CACHED: usize = 1024;

pub(super) fn contestant() -> Contestant {
    Contestant::new(
        "shard",
        Kind::Strategy,
        "`ShardPool` with caches and shards as large as the burst, or as they are unless set where that is more; one pool for all \
         threads",
    )
    .whole::<Shard>()
    .sends::<Shard>()
    .threads_share::<Shard>()
    .no_frames("has no frames: its buffers are whole from the start")
}

pub(super) fn builder(plan: &Plan) -> Builder {
    ShardPool::builder()
        .thread_cache(plan.room.clamp(THREAD_CACHE, MOST_CACHED))
        .shard_buffers(plan.room.max(SHARD_BUFFERS))
}

#[derive(Clone)]
pub(crate) struct Shard(ShardPool);

impl Pool for Shard {
    type Buf = Buf<ShardLease>;

    fn build(plan: &Plan) -> Result<Self, Unsupported> {
        builder(plan).build().map(Self).map_err(|error| Unsupported(error.to_string()))
    }

    #[inline(always)]
    fn acquire(&mut self, bytes: usize) -> Self::Buf {
        self.0.acquire(bytes).expect("the allocator has room")
    }

    fn fallbacks(&self) -> Option<u64> {
        cfg!(feature = "count").then(|| self.0.stats().fallbacks)
    }
}
