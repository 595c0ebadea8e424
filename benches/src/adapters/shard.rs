//! The sharded thread-local pool.

use std::io;

use bufcore::Buf;
use bufshard::{Builder, ShardLease, ShardPool};

use super::lines::{BatchPool, Pooled};
use crate::harness::contestant::{Contestant, Kind};
use crate::harness::plan::{Plan, Settings, Unsupported};
use crate::harness::serve::Pool;

/// Buffers of a class in a shard unless the workload holds more.
const SHARD_BUFFERS: usize = 128;

pub(super) fn contestant() -> Contestant {
    Contestant::new(
        "shard",
        Kind::Strategy,
        "`ShardPool` whose caches may keep a burst of any size, with shards as large as the burst, or as they are unless set where \
         that is more; one pool for all threads",
    )
    .whole::<Shard>()
    .sends::<Shard>()
    .lines::<Pooled<ShardPool>>()
    .threads_share::<Shard>()
    .no_frames("has no frames: its buffers are whole from the start")
}

/// As a program makes it that sets nothing.
pub(super) fn without_settings() -> Contestant {
    super::defaults::of(contestant(), "shard-default", "`ShardPool::new()`; one pool for all threads")
}

impl BatchPool for ShardPool {
    fn for_batches(plan: &Plan) -> io::Result<Self> {
        builder(plan).build().map_err(io::Error::other)
    }
}

pub(super) fn builder(plan: &Plan) -> Builder {
    if plan.settings == Settings::Unset {
        return ShardPool::builder();
    }
    ShardPool::builder().max_cached_bytes(usize::MAX).shard_buffers(plan.room.max(SHARD_BUFFERS))
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
