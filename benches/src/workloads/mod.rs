//! What the contestants are put to.

pub mod burst;
pub mod chaos;
pub mod file;
pub mod frame;
pub mod handoff;
pub mod messages;
pub mod mixed;
mod offers;
pub mod parse;
pub mod queue;
pub mod replay;
pub mod reuse;
pub mod ring;
mod script;
pub mod spsc;
pub mod stream;
pub mod threads;
pub mod two_pools;

use crate::harness::case::Case;
use crate::harness::cell::Cell;
use crate::harness::measure::Scale;
use crate::harness::plan::{Settings, Unsupported};
use crate::harness::serve::{Frames, Pool};

/// The names of all workloads, in the order of the report.
pub const WORKLOADS: [&str; 18] = [
    "reuse",
    "live",
    "two-pools",
    "burst",
    "mixed",
    "queue",
    "ring-fixed",
    "ring-extend",
    "frame",
    "handoff",
    "threads",
    "chaos",
    "stream",
    "parse",
    "spsc",
    "messages",
    "file",
    "replay",
];

/// All rows of the matrix.
#[must_use]
pub fn cases(scale: Scale) -> Vec<Case> {
    let mut cases = reuse::cases(scale);
    cases.extend(two_pools::cases());
    cases.extend(burst::cases(scale));
    cases.extend(mixed::cases());
    cases.extend(queue::cases());
    cases.extend(ring::cases());
    cases.extend(frame::cases());
    cases.extend(handoff::cases());
    cases.extend(threads::cases());
    cases.extend(chaos::cases());
    cases.extend(stream::cases());
    cases.extend(parse::cases());
    cases.extend(spsc::cases());
    cases.extend(messages::cases());
    cases.extend(file::cases(scale));
    cases.extend(replay::cases());
    cases
}

/// The cells in which one thread acquires and releases whole buffers.
pub(crate) fn whole<P: Pool>(case: &Case, settings: Settings) -> Result<Box<dyn Cell>, Unsupported> {
    match case {
        Case::Reuse { .. } => reuse::cell::<P>(case, settings),
        Case::Burst { .. } => burst::cell::<P>(case, settings),
        Case::TwoPools { .. } => two_pools::cell::<P>(case, settings),
        Case::Mixed { .. } => mixed::cell::<P>(case, settings),
        Case::Queue { .. } => queue::cell::<P>(case, settings),
        Case::RingFixed { .. } => ring::fixed::<P>(case, settings),
        Case::Chaos { .. } => chaos::alone::<P>(case, settings),
        Case::File { .. } => file::cell::<P>(case, settings),
        Case::Replay { .. } => replay::cell::<P>(case, settings),
        Case::Frame { .. }
        | Case::RingExtend { .. }
        | Case::Handoff { .. }
        | Case::Threads { .. }
        | Case::Stream { .. }
        | Case::Parse { .. }
        | Case::Spsc { .. }
        | Case::Messages { .. } => Err(not_mine(case)),
    }
}

/// The cells with frames.
pub(crate) fn frames<F: Frames>(case: &Case, settings: Settings) -> Result<Box<dyn Cell>, Unsupported> {
    match case {
        Case::RingExtend { .. } => ring::extend::<F>(case, settings),
        _ => frame::cell::<F>(case, settings),
    }
}

/// The cells in which several threads share one pool.
pub(crate) fn shared<P: Pool + Clone + Send>(
    case: &Case,
    settings: Settings,
) -> Result<Box<dyn Cell>, Unsupported> {
    match case {
        Case::Chaos { .. } => chaos::shared::<P>(case, settings),
        _ => threads::shared::<P>(case, settings),
    }
}

/// The cells in which several threads have a pool each.
pub(crate) fn private<P: Pool>(case: &Case, settings: Settings) -> Result<Box<dyn Cell>, Unsupported> {
    match case {
        Case::Chaos { .. } => chaos::private::<P>(case, settings),
        _ => threads::private::<P>(case, settings),
    }
}

/// For a case that was sent to the wrong workload.
fn not_mine(case: &Case) -> Unsupported {
    format!("{case} is served elsewhere").into()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::adapters;
    use crate::harness::Kind;
    use crate::harness::contestant::Contestant;
    use crate::harness::plan::Plan;

    #[test]
    fn ids_are_unique_and_all_workloads_have_rows() {
        let cases = cases(Scale::Full);
        let ids: HashSet<_> = cases.iter().map(Case::id).collect();
        assert_eq!(ids.len(), cases.len());
        for workload in WORKLOADS {
            let rows = cases.iter().filter(|case| case.workload() == workload).count();
            assert!(rows > 0 || workload == "replay", "{workload} has no rows");
        }
    }

    #[test]
    fn quick_is_part_of_full() {
        let full: HashSet<_> = cases(Scale::Full).iter().map(Case::id).collect();
        assert!(cases(Scale::Quick).iter().all(|case| full.contains(&case.id())));
    }

    /// Refuses everything, and says with what it was to be made.
    #[derive(Clone)]
    struct Asking;

    impl Pool for Asking {
        type Buf = Vec<u8>;

        fn build(plan: &Plan) -> Result<Self, Unsupported> {
            Err(format!("{:?}", plan.settings).into())
        }

        fn acquire(&mut self, _bytes: usize) -> Vec<u8> {
            unreachable!("it is never made")
        }
    }

    impl Frames for Asking {
        type Frame = Vec<u8>;
        type Open<'a> = adapters::vec::Open;

        fn build(plan: &Plan) -> Result<Self, Unsupported> {
            <Self as Pool>::build(plan)
        }

        fn open(&mut self) -> Self::Open<'_> {
            unreachable!("it is never made")
        }
    }

    /// In every workload with pools, the contestant without settings gets none.
    #[test]
    fn settings_reach_the_pool_in_every_workload() {
        let bare = Contestant::new("asking", Kind::Strategy, "").whole::<Asking>().sends::<Asking>();
        let each = bare.threads_each::<Asking>().frames::<Asking>();
        let mut cases = cases(Scale::Test);
        cases.retain(|case| bare.takes_part(case));
        assert!(cases.len() > 50);
        for planned in [each, bare.threads_share::<Asking>().frames::<Asking>()] {
            let unset = planned.without_settings("asking-default", "");
            for case in &cases {
                let reason = |contestant: &Contestant| contestant.cell(case).err().map(|reason| reason.0);
                assert_eq!(reason(&planned).as_deref(), Some("Planned"), "{case}");
                assert_eq!(reason(&unset).as_deref(), Some("Unset"), "{case}");
            }
        }
    }
}
