//! The bump-pointer shards.

use std::io;

use bufbump::{Builder, BumpLease, BumpPool};
use bufcore::Buf;

use super::lines::{BatchPool, Pooled};
use crate::harness::contestant::{Contestant, Kind};
use crate::harness::plan::{Plan, Settings, Unsupported};
use crate::harness::serve::Pool;

/// Shards as they are unless set, but where the requests are so large that few would fit.
const SHARD_BYTES: usize = 256 << 10;
/// This number of the largest requests fits into one.
const LEAST_FIT: usize = 4;

pub(super) fn contestant() -> Contestant {
    Contestant::new(
        "bump",
        Kind::Strategy,
        "`BumpPool` with shards of 256 KiB, or of four of the largest buffers where that is more. The budget of idle memory is \
         as large as what the workload has out at once. Several threads share one",
    )
    .whole::<Bump>()
    .sends::<Bump>()
    .lines::<Pooled<BumpPool>>()
    .threads_share::<Bump>()
    .no_frames("has no frames: its buffers are whole from the start, and are split")
}

/// As a program makes it that sets nothing: shards of 256 KiB.
pub(super) fn without_settings() -> Contestant {
    super::defaults::of(contestant(), "bump-default", "`BumpPool::new()`; several threads share one")
}

/// The sweep of `max_probes` in the README of jsign's `bufpool`, with small shards as there: in
/// large ones nearly all that is asked for fits at once.
pub(super) fn probes() -> [Contestant; 5] {
    [
        probing::<0>("bump-0-probes"),
        probing::<1>("bump-1-probe"),
        probing::<2>("bump-2-probes"),
        probing::<4>("bump-4-probes"),
        probing::<8>("bump-8-probes"),
    ]
}

fn probing<const MAX: usize>(name: &'static str) -> Contestant {
    let idiom =
        "`BumpPool` with shards of eight of the largest buffers, and at most as many probes as the name says";
    Contestant::setting(name, "bump", &["chaos"], idiom).whole::<Probes<MAX>>().threads_share::<Probes<MAX>>()
}

impl BatchPool for BumpPool {
    fn for_batches(plan: &Plan) -> io::Result<Self> {
        builder(plan).build().map_err(io::Error::other)
    }
}

pub(super) fn builder(plan: &Plan) -> Builder {
    if plan.settings == Settings::Unset {
        return BumpPool::builder();
    }
    sized(BumpPool::builder(), plan, plan.largest.saturating_mul(LEAST_FIT).max(SHARD_BYTES))
}

fn sized(builder: Builder, plan: &Plan, shard: usize) -> Builder {
    builder.shard_size(shard).max_idle_bytes(plan.peak_bytes.saturating_mul(2).max(8 * shard))
}

#[derive(Clone)]
pub(crate) struct Bump(BumpPool);

/// With small shards, of which a request looks at `MAX` at most beside the current one.
#[derive(Clone)]
pub(crate) struct Probes<const MAX: usize>(Bump);

impl Pool for Bump {
    type Buf = Buf<BumpLease>;

    fn build(plan: &Plan) -> Result<Self, Unsupported> {
        Self::with(builder(plan))
    }

    #[inline(always)]
    fn acquire(&mut self, bytes: usize) -> Self::Buf {
        self.0.acquire(bytes).expect("the allocator has room")
    }

    fn fallbacks(&self) -> Option<u64> {
        cfg!(feature = "count").then(|| self.0.stats().fallbacks)
    }
}

impl Bump {
    fn with(builder: Builder) -> Result<Self, Unsupported> {
        builder.build().map(Self).map_err(|error| Unsupported(error.to_string()))
    }
}

impl<const MAX: usize> Pool for Probes<MAX> {
    type Buf = Buf<BumpLease>;

    fn build(plan: &Plan) -> Result<Self, Unsupported> {
        Bump::with(sized(BumpPool::builder().max_probes(MAX), plan, plan.largest.saturating_mul(8))).map(Self)
    }

    #[inline(always)]
    fn acquire(&mut self, bytes: usize) -> Self::Buf {
        self.0.acquire(bytes)
    }

    fn fallbacks(&self) -> Option<u64> {
        self.0.fallbacks()
    }
}
