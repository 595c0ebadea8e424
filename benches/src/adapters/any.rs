//! Strategies by their name, behind the pool whose strategy is chosen at run time. Beside an engine
//! of its own, that shows what the choice costs. A strategy that has none takes part in the matrix
//! through this one.

use bufcore::Buf;
use bufworks::AnyPool;
use bufworks::any::{AnyBuilder, AnyLease, SettingError};

use crate::harness::engine::{Engine, Kind};
use crate::harness::plan::{Plan, Settings, Unsupported};
use crate::harness::serve::Pool;

/// Where the cost of a buffer is all that there is to see.
const ONLY: &[&str] = &["reuse", "mixed"];
/// The name of a strategy that the matrix has under another: the slot pool, which may fall back on
/// the heap there.
const BOUNDED: &str = "bounded-slot";

/// Engines for a strategy by its place in [`AnyBuilder::NAMES`], which is a parameter of the type
/// that serves.
type ByName = fn(&[Engine]) -> Vec<Engine>;

const PLACES: [ByName; 16] = [
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

/// The strategies by their names, beside those that are `known`.
pub(super) fn engines(known: &[Engine]) -> Vec<Engine> {
    let places = AnyBuilder::NAMES.iter().zip(PLACES).filter(|(name, _)| **name != BOUNDED);
    places.flat_map(|(_, engines)| engines(known)).collect()
}

fn by_name<const PLACE: usize>(known: &[Engine]) -> Vec<Engine> {
    let name = AnyBuilder::NAMES[PLACE];
    // Made for as long as the program runs, as names that are written out are.
    match known.iter().find(|engine| engine.name == name).map(|engine| engine.kind) {
        None => {}
        Some(Kind::Strategy) => {
            let idiom = "the strategy with settings for the row, chosen at run time: an `AnyPool`";
            let any = Engine::setting(format!("any-{name}").leak(), name, ONLY, idiom);
            return vec![any.whole::<Named<PLACE>>()];
        }
        Some(_) => return Vec::new(),
    }
    let tuned = Engine::new(
        name,
        Kind::Strategy,
        "the strategy by its name, as an `AnyPool` with room for what the workload has out at once, where it has a setting for that, \
         and the heap as fallback; several threads share one if they can",
    );
    let tuned = tuned.whole::<Named<PLACE>>().sends::<Named<PLACE>>();
    let tuned = tuned.no_frames("has no engine of its own, and so no frames");
    let pool = AnyBuilder::named(name).map(AnyBuilder::build);
    let tuned = if pool.is_ok_and(|pool| pool.is_ok_and(|pool| pool.share().is_some())) {
        tuned.threads_share::<Named<PLACE>>()
    } else {
        tuned.threads_each::<Named<PLACE>>()
    };
    let untuned =
        tuned.without_settings(format!("{name}-default").leak(), "the same, of which nothing is set");
    vec![tuned, untuned]
}

/// The strategy at this place of the list.
pub(crate) struct Named<const PLACE: usize> {
    pool: AnyPool,
    /// Serves what the pool refuses.
    heap: AnyPool,
    fallbacks: u64,
}

impl<const PLACE: usize> Named<PLACE> {
    fn over(pool: AnyPool) -> Self {
        let heap = AnyBuilder::named("heap").map(AnyBuilder::build);
        let heap = heap.ok().and_then(Result::ok).expect("nothing is set that could be wrong");
        Self { pool, heap, fallbacks: 0 }
    }

    #[cold]
    #[inline(never)]
    fn fall_back(&mut self, bytes: usize) -> Buf<AnyLease> {
        self.fallbacks += 1;
        self.heap.acquire(bytes).expect("the heap has room")
    }
}

impl<const PLACE: usize> Clone for Named<PLACE> {
    fn clone(&self) -> Self {
        Self::over(self.pool.share().expect("only strategies that threads share are cloned"))
    }
}

/// The strategy's builder, with settings for a plan.
fn builder(name: &str, plan: &Plan) -> Result<AnyBuilder, SettingError> {
    let mut builder = AnyBuilder::named(name)?;
    let (bytes, buffers) = (plan.with_spare(plan.peak_bytes), plan.with_spare(plan.room));
    for (setting, value) in [("capacity", bytes), ("slots", buffers), ("buffers", buffers)] {
        if plan.settings == Settings::Planned && builder.settings().contains(&setting) {
            builder.set(setting, &value.to_string())?;
        }
    }
    Ok(builder)
}

impl<const PLACE: usize> Pool for Named<PLACE> {
    type Buf = Buf<AnyLease>;

    fn build(plan: &Plan) -> Result<Self, Unsupported> {
        let builder = builder(AnyBuilder::NAMES[PLACE], plan).map_err(|error| error.to_string())?;
        // What the compiler cannot see through, as it cannot through a configuration file.
        let pool = core::hint::black_box(builder).build().map_err(|error| error.to_string())?;
        Ok(Self::over(pool))
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
        let others = engines(&[]);
        assert_eq!(others.len(), 2 * (AnyBuilder::NAMES.len() - 1), "with settings, and without");
        let mut cases = crate::workloads::cases(crate::harness::measure::Scale::Test);
        cases.dedup_by_key(|case| case.workload());
        for engine in others {
            for case in &cases {
                if engine.takes_part(case) && engine.refusal(case).is_none() {
                    let built = engine.cell(case);
                    assert!(built.is_ok(), "{} at {case}: {:?}", engine.name, built.err());
                }
            }
        }
    }
}
