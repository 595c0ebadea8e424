//! Strategies of one thread at a time behind one handle, which makes a pool for each thread.

use bufcore::ConfigError;
use bufring::RingPool;
use bufslot::SlotPool;
use bufworks::PerThread;

use super::whole::{Planned, Whole};
use crate::harness::engine::Engine;
use crate::harness::plan::Plan;

/// Where the others make a pool for each thread by hand, and where the cost of a buffer is all that
/// there is to see.
const ONLY: &[&str] = &["reuse", "threads"];

pub(super) fn engines() -> [Engine; 2] {
    [of::<SlotPool>("slot-per-thread", "slot"), of::<RingPool>("ring-per-thread", "ring")]
}

fn of<P: Planned + Send>(name: &'static str, strategy: &'static str) -> Engine {
    let idiom = "the strategy with settings for the row, one `PerThread` handle for all threads";
    Engine::setting(name, strategy, ONLY, idiom)
        .whole::<Whole<PerThread<P>>>()
        .threads_share::<Whole<PerThread<P>>>()
}

impl<P: Planned + Send> Planned for PerThread<P> {
    fn planned(plan: &Plan) -> Result<Self, ConfigError> {
        let plan = *plan;
        Self::new(move || P::planned(&plan))
    }
}
