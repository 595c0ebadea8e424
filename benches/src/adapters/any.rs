//! Strategies behind the pool whose strategy is chosen at run time: what that costs. A strategy that
//! has no file here takes part in the matrix through this one.

use bufcore::Buf;
use bufworks::AnyPool;
use bufworks::any::{AnyBuilder, AnyLease, HeapBuilder, SettingError};

use super::{bump, defaults, ring, shard, slot};
use crate::harness::contestant::{Contestant, Kind};
use crate::harness::plan::{Plan, Settings, Unsupported};
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
const PLACES: [fn() -> [Contestant; 2]; 16] = [
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
/// Each with settings for the row, and without any.
pub(super) fn others(known: &[Contestant]) -> Vec<Contestant> {
    let is_known = |name: &str| name == BOUNDED || known.iter().any(|contestant| contestant.name == name);
    let places = AnyBuilder::NAMES.iter().zip(PLACES);
    places.filter(|(name, _)| !is_known(name)).flat_map(|(_, contestants)| contestants()).collect()
}

fn by_name<const PLACE: usize>() -> [Contestant; 2] {
    let tuned = offering::<PLACE>(Contestant::new(
        AnyBuilder::NAMES[PLACE],
        Kind::Strategy,
        "the strategy by its name, as an `AnyPool` with room for what the workload has out at once, where it has a setting for that, \
         and the heap as fallback; several threads share one if they can",
    ));
    // Made for as long as the program runs, as names that are written out are.
    let name = format!("{}-default", AnyBuilder::NAMES[PLACE]).leak();
    let untuned = defaults::of(
        tuned,
        name,
        "the strategy by its name, as an `AnyPool` of which nothing is set, and the heap as fallback; several threads share one if they \
         can",
    );
    [tuned, untuned]
}

/// The contestant, with what a pool by its name serves.
fn offering<const PLACE: usize>(contestant: Contestant) -> Contestant {
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
pub(crate) struct Named<const PLACE: usize> {
    pool: AnyPool,
    /// Serves what the pool refuses.
    heap: AnyPool,
    fallbacks: u64,
}

impl<const PLACE: usize> Named<PLACE> {
    /// Builds it, with the settings that `set` makes.
    fn with(set: impl FnOnce(&mut AnyBuilder) -> Result<(), SettingError>) -> Result<Self, Unsupported> {
        let why = |error: &dyn core::fmt::Display| Unsupported(error.to_string());
        let mut builder = AnyBuilder::named(AnyBuilder::NAMES[PLACE]).map_err(|error| why(&error))?;
        set(&mut builder).map_err(|error| why(&error))?;
        let pool = core::hint::black_box(builder).build().map_err(|error| why(&error))?;
        Ok(Self { pool, heap: heap(), fallbacks: 0 })
    }

    #[cold]
    #[inline(never)]
    fn fall_back(&mut self, bytes: usize) -> Buf<AnyLease> {
        self.fallbacks += 1;
        self.heap.acquire(bytes).expect("the heap has room")
    }
}

/// The heap, as a pool of the same type.
fn heap() -> AnyPool {
    AnyBuilder::Heap(HeapBuilder::new()).build().expect("nothing is set that could be wrong")
}

impl<const PLACE: usize> Clone for Named<PLACE> {
    fn clone(&self) -> Self {
        let pool = self.pool.share().expect("only strategies that threads share are cloned");
        Self { pool, heap: heap(), fallbacks: 0 }
    }
}

impl<const PLACE: usize> Pool for Named<PLACE> {
    type Buf = Buf<AnyLease>;

    fn build(plan: &Plan) -> Result<Self, Unsupported> {
        let (bytes, buffers) = (plan.with_spare(plan.peak_bytes), plan.with_spare(plan.room));
        if plan.settings == Settings::Unset {
            return Self::with(|_| Ok(()));
        }
        Self::with(|builder| {
            for (setting, value) in [("capacity", bytes), ("slots", buffers), ("buffers", buffers)] {
                if builder.settings().contains(&setting) {
                    builder.set(setting, &value.to_string())?;
                }
            }
            Ok(())
        })
    }

    #[inline(always)]
    fn acquire(&mut self, bytes: usize) -> Self::Buf {
        match self.pool.acquire(bytes) {
            Ok(buf) => buf,
            Err(_) => self.fall_back(bytes),
        }
    }

    fn fallbacks(&self) -> Option<u64> {
        cfg!(feature = "count").then(|| self.pool.stats().fallbacks + self.fallbacks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A strategy is in the matrix by its name alone, for every group of workloads.
    #[test]
    fn every_strategy_serves_by_its_name() {
        let others = others(&[]);
        assert_eq!(others.len(), 2 * (AnyBuilder::NAMES.len() - 1), "with settings, and without");
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
