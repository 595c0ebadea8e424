//! Strategies behind the pool whose strategy is chosen at run time: what that costs.

use bufcore::Buf;
use bufworks::AnyPool;
use bufworks::any::{AnyBuilder, AnyLease};

use super::{bump, ring, shard, slot};
use crate::case::Plan;
use crate::contestant::{Contestant, Pool, Unsupported};

/// Where the cost of a buffer is all that there is to see.
const ONLY: &[&str] = &["reuse", "mixed"];

/// Which strategy, as a parameter of the type that serves.
const SLOT: u8 = 0;
const RING: u8 = 1;
const BUMP: u8 = 2;
const SHARD: u8 = 3;

pub(super) fn contestants() -> [Contestant; 4] {
    [
        behind::<SLOT>("any-slot", "slot"),
        behind::<RING>("any-ring", "ring"),
        behind::<BUMP>("any-bump", "bump"),
        behind::<SHARD>("any-shard", "shard"),
    ]
}

fn behind<const WHICH: u8>(name: &'static str, of: &'static str) -> Contestant {
    let idiom = "the strategy with the same settings, chosen at run time: an `AnyPool`";
    Contestant::setting(name, of, ONLY, idiom).whole::<Any<WHICH>>()
}

pub(crate) struct Any<const WHICH: u8>(AnyPool);

impl<const WHICH: u8> Pool for Any<WHICH> {
    type Buf = Buf<AnyLease>;

    fn build(plan: &Plan) -> Result<Self, Unsupported> {
        let builder = match WHICH {
            SLOT => AnyBuilder::Slot(slot::builder(plan)),
            RING => AnyBuilder::Ring(ring::builder(plan)),
            BUMP => AnyBuilder::Bump(bump::builder(plan)),
            _ => AnyBuilder::Shard(shard::builder(plan)),
        };
        // What the compiler cannot see through, as it cannot through a configuration file.
        core::hint::black_box(builder).build().map(Self).map_err(|error| Unsupported(error.to_string()))
    }

    #[inline(always)]
    fn acquire(&mut self, bytes: usize) -> Self::Buf {
        self.0.acquire(bytes).expect("there is room for what the workload has out at once")
    }

    fn fallbacks(&self) -> Option<u64> {
        cfg!(feature = "count").then(|| self.0.stats().fallbacks)
    }
}
