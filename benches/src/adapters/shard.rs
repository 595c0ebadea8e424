//! The sharded thread-local pool.

use std::io;

use bufcore::Buf;
use bufshard::{Builder, ShardLease, ShardPool};

use super::defaults::{NoSettings, Untuned};
use super::lines::{BatchPool, Pooled, Unset};
use crate::harness::contestant::{Contestant, Kind};
use crate::harness::plan::{Plan, Unsupported};
use crate::harness::serve::Pool;

/// Buffers of a class in a shard unless the workload holds more.
const SHARD_BUFFERS: usize = 128;

const NO_FRAMES: &str = "has no frames: its buffers are whole from the start";

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
    .no_frames(NO_FRAMES)
}

/// As a program makes it that sets nothing.
pub(super) fn without_settings() -> Contestant {
    super::defaults::of("shard-default", "shard", "`ShardPool::new()`; one pool for all threads")
        .whole::<Untuned<Shard>>()
        .sends::<Untuned<Shard>>()
        .lines::<Unset<ShardPool>>()
        .threads_share::<Untuned<Shard>>()
        .no_frames(NO_FRAMES)
}

impl BatchPool for ShardPool {
    fn for_batches(plan: &Plan) -> io::Result<Self> {
        builder(plan).build().map_err(io::Error::other)
    }

    fn without_settings() -> io::Result<Self> {
        Self::new().map_err(io::Error::other)
    }
}

pub(super) fn builder(plan: &Plan) -> Builder {
    ShardPool::builder().max_cached_bytes(usize::MAX).shard_buffers(plan.room.max(SHARD_BUFFERS))
}

impl NoSettings for Shard {
    fn with_no_settings(_plan: &Plan) -> Result<Self, Unsupported> {
        ShardPool::new().map(Self).map_err(|error| Unsupported(error.to_string()))
    }
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
