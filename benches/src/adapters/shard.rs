//! The sharded thread-local pool.

use bufcore::ConfigError;
use bufshard::{HugePages, MapOptions, ShardPool};

use super::whole::{Growing, Planned, Whole};
use crate::harness::engine::{Engine, Kind};
use crate::harness::plan::{Plan, Settings};

/// Buffers of a class in a shard unless the workload holds more.
const SHARD_BUFFERS: usize = 128;

pub(super) fn engine() -> Engine {
    Engine::new(
        "shard",
        Kind::Strategy,
        "`ShardPool` whose caches may keep a burst of any size, with shards as large as the burst, or as they are unless set where \
         that is more; one pool for all threads",
    )
    .whole::<Whole<ShardPool>>()
    .sends::<Whole<ShardPool>>()
    .threads_share::<Whole<ShardPool>>()
    .frames::<Growing<ShardPool>>()
}

/// As a program makes it that sets nothing.
pub(super) fn without_settings() -> Engine {
    engine().without_settings("shard-default", "`ShardPool::new()`; one pool for all threads")
}

/// Over huge pages.
pub(super) fn with_huge_pages() -> Engine {
    let idiom = "`ShardPool::builder()` with `HugePages::Advise`; the kernel merges pages where it can";
    engine().with_huge_pages("shard-huge", idiom)
}

impl Planned for ShardPool {
    fn planned(plan: &Plan) -> Result<Self, ConfigError> {
        match plan.settings {
            Settings::Planned => {}
            Settings::Unset => return Self::new(),
            Settings::HugePages => {
                let options = MapOptions::new().huge_pages(HugePages::Advise);
                return Self::builder().map_options(options).build();
            }
        }
        let buffers = plan.room.max(SHARD_BUFFERS);
        Self::builder().max_cached_bytes(usize::MAX).shard_buffers(buffers).build()
    }
}
