//! Strategies behind the pool whose strategy is chosen at run time: what that costs. A strategy that
//! has no file here takes part in the matrix through this one.

use bufcore::Buf;
use bufworks::AnyPool;
use bufworks::any::{AnyBuilder, AnyLease};

use super::{bump, ring, shard, slot};
use crate::harness::contestant::{Contestant, Kind};
use crate::harness::plan::{Plan, Unsupported};
use crate::harness::serve::Pool;

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

/// The name of a strategy that the matrix has under another: the slot pool, which may fall back on
/// the heap there.
const BOUNDED: &str = "bounded-slot";

/// Contestants for strategies by their place in [`AnyBuilder::NAMES`], which is a parameter of the
/// type that serves.
const PLACES: [fn() -> Contestant; 16] = [
    by_name::<0>,
    by_name::<1>,
    by_name::<2>,
    by_name::<3>,
    by_name::<4>,
    by_name::<5>,
    by_name::<6>,
    by_name::<7>,
    by_name::<8>,
    by_name::<9>,
    by_name::<10>,
    by_name::<11>,
    by_name::<12>,
    by_name::<13>,
    by_name::<14>,
    by_name::<15>,
];
const _: () = assert!(AnyBuilder::NAMES.len() <= PLACES.len());

/// The strategies that are not `known`, by their names: nobody has written a contestant for them.
pub(super) fn others(known: &[Contestant]) -> Vec<Contestant> {
    let is_known = |name: &str| name == BOUNDED || known.iter().any(|contestant| contestant.name == name);
    let places = AnyBuilder::NAMES.iter().zip(PLACES);
    places.filter(|(name, _)| !is_known(name)).map(|(_, contestant)| contestant()).collect()
}

fn by_name<const PLACE: usize>() -> Contestant {
    let contestant = Contestant::new(
        AnyBuilder::NAMES[PLACE],
        Kind::Strategy,
        "the strategy by its name, as an `AnyPool` with room for what the workload has out at once, where it has a setting for that; \
         several threads share one if they can",
    );
    let contestant = contestant.whole::<Named<PLACE>>().sends::<Named<PLACE>>();
    let contestant = contestant.no_frames("has no contestant of its own, and so no frames");
    let pool = AnyBuilder::named(AnyBuilder::NAMES[PLACE]).map(AnyBuilder::build);
    if pool.is_ok_and(|pool| pool.is_ok_and(|pool| pool.share().is_some())) {
        contestant.threads_share::<Named<PLACE>>()
    } else {
        contestant.threads_each::<Named<PLACE>>()
    }
}

/// The strategy at this place of the list.
pub(crate) struct Named<const PLACE: usize>(AnyPool);

impl<const PLACE: usize> Clone for Named<PLACE> {
    fn clone(&self) -> Self {
        Self(self.0.share().expect("only strategies that threads share are cloned"))
    }
}

impl<const PLACE: usize> Pool for Named<PLACE> {
    type Buf = Buf<AnyLease>;

    fn build(plan: &Plan) -> Result<Self, Unsupported> {
        let why = |error: &dyn core::fmt::Display| Unsupported(error.to_string());
        let mut builder = AnyBuilder::named(AnyBuilder::NAMES[PLACE]).map_err(|error| why(&error))?;
        // Buffers of different sizes may leave holes.
        let spare = if plan.varied { 2 } else { 1 };
        let (bytes, buffers) = (plan.peak_bytes.saturating_mul(spare), plan.room.saturating_mul(spare));
        for (setting, value) in [("capacity", bytes), ("slots", buffers), ("buffers", buffers)] {
            if builder.settings().contains(&setting) {
                builder.set(setting, &value.to_string()).map_err(|error| why(&error))?;
            }
        }
        core::hint::black_box(builder).build().map(Self).map_err(|error| why(&error))
    }

    #[inline(always)]
    fn acquire(&mut self, bytes: usize) -> Self::Buf {
        self.0.acquire(bytes).expect("there is room for what the workload has out at once")
    }

    fn fallbacks(&self) -> Option<u64> {
        cfg!(feature = "count").then(|| self.0.stats().fallbacks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A strategy is in the matrix by its name alone, for every group of workloads.
    #[test]
    fn every_strategy_serves_by_its_name() {
        let others = others(&[]);
        assert_eq!(others.len(), AnyBuilder::NAMES.len() - 1);
        let mut cases = crate::workloads::cases(crate::harness::measure::Scale::Test);
        cases.dedup_by_key(|case| case.workload());
        for contestant in others {
            for case in &cases {
                if contestant.takes_part(case) && contestant.refusal(case).is_none() {
                    let built = contestant.cell(case);
                    assert!(built.is_ok(), "{} at {case}: {:?}", contestant.name, built.err());
                }
            }
        }
    }
}
