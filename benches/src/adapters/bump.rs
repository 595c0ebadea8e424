//! The bump-pointer shards.

use bufbump::BumpPool;
use bufcore::ConfigError;

use super::whole::{Growing, Planned, Whole};
use crate::harness::engine::{Engine, Kind};
use crate::harness::plan::{Plan, Settings};

/// Shards as they are unless set, but where the requests are so large that few would fit.
const SHARD_BYTES: usize = 256 << 10;
/// This number of the largest requests fits into one.
const LEAST_FIT: usize = 4;

pub(super) fn engine() -> Engine {
    Engine::new(
        "bump",
        Kind::Strategy,
        "`BumpPool` with shards of 256 KiB, or of four of the largest buffers where that is more. Up to 32 MiB are idle, or \
         twice as much as the workload has in use where that is more. Several threads share one",
    )
    .whole::<Whole<BumpPool>>()
    .sends::<Whole<BumpPool>>()
    .threads_share::<Whole<BumpPool>>()
    .frames::<Growing<BumpPool>>()
}

/// Shards of 256 KiB.
pub(super) fn without_settings() -> Engine {
    engine().without_settings("bump-default", "`BumpPool::new()`; several threads share one")
}

impl Planned for BumpPool {
    fn planned(plan: &Plan) -> Result<Self, ConfigError> {
        if plan.settings == Settings::Unset {
            return Self::new();
        }
        let shard = plan.largest.saturating_mul(LEAST_FIT).max(SHARD_BYTES);
        // Not less than without settings.
        let idle = plan.peak_bytes.saturating_mul(2).max(32 << 20);
        Self::builder().shard_size(shard).max_idle_bytes(idle).build()
    }
}
