//! The bump-pointer shards.

use bufbump::{BumpLease, BumpPool};
use bufcore::Buf;

use crate::case::Plan;
use crate::contestant::{Contestant, Kind, Pool, Unsupported};

/// Shards as they are unless set, but where the requests are so large that few would fit.
const SHARD_BYTES: usize = 256 << 10;
/// So many of the largest request fit into one.
const LEAST_FIT: usize = 4;

pub(super) fn contestant() -> Contestant {
    Contestant::new(
        "bump",
        Kind::Strategy,
        "`BumpPool` with shards of 256 KiB, or of four of the largest buffers where that is more, and a budget of idle memory as \
         large as what the workload has out at once; several threads share one",
    )
    .whole::<Bump>()
    .sends::<Bump>()
    .threads_share::<Bump>()
    .no_frames("has no frames: its buffers are whole from the start, and are split")
}

#[derive(Clone)]
pub(crate) struct Bump(BumpPool);

impl Pool for Bump {
    type Buf = Buf<BumpLease>;

    fn build(plan: &Plan) -> Result<Self, Unsupported> {
        let shard = plan.largest.saturating_mul(LEAST_FIT).max(SHARD_BYTES);
        BumpPool::builder()
            .shard_size(shard)
            .idle_bytes(plan.peak_bytes.saturating_mul(2).max(8 * shard))
            .build()
            .map(Self)
            .map_err(|error| Unsupported(error.to_string()))
    }

    #[inline(always)]
    fn acquire(&mut self, bytes: usize) -> Self::Buf {
        self.0.acquire(bytes).expect("the allocator has room")
    }

    fn fallbacks(&self) -> Option<u64> {
        cfg!(feature = "count").then(|| self.0.stats().fallbacks)
    }
}
