//! What the contestants are put to.

pub mod burst;
pub mod chaos;
pub mod file;
pub mod frame;
pub mod handoff;
pub mod log;
pub mod messages;
pub mod mixed;
mod offers;
pub mod parse;
pub mod queue;
pub mod replay;
pub mod reuse;
pub mod ring;
pub mod spsc;
pub mod stream;
pub mod threads;
pub mod two_pools;

use crate::harness::case::Case;
use crate::harness::cell::Cell;
use crate::harness::measure::Scale;
use crate::harness::plan::Unsupported;
use crate::harness::serve::{Frames, Pool};

/// The names of all workloads, in the order of the report.
pub const WORKLOADS: [&str; 19] = [
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
    "log",
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
    cases.extend(log::cases());
    cases.extend(file::cases(scale));
    cases.extend(replay::cases());
    cases
}

/// The cells in which one thread acquires and releases whole buffers.
pub(crate) fn whole<P: Pool>(case: &Case) -> Result<Box<dyn Cell>, Unsupported> {
    match case {
        Case::Reuse { .. } => reuse::cell::<P>(case),
        Case::Burst { .. } => burst::cell::<P>(case),
        Case::TwoPools { .. } => two_pools::cell::<P>(case),
        Case::Mixed { .. } => mixed::cell::<P>(case),
        Case::Queue { .. } => queue::cell::<P>(case),
        Case::RingFixed { .. } => ring::fixed::<P>(case),
        Case::Chaos { .. } => chaos::alone::<P>(case),
        Case::File { .. } => file::cell::<P>(case),
        Case::Replay { .. } => replay::cell::<P>(case),
        Case::Frame { .. }
        | Case::RingExtend { .. }
        | Case::Handoff { .. }
        | Case::Threads { .. }
        | Case::Stream { .. }
        | Case::Parse { .. }
        | Case::Spsc { .. }
        | Case::Messages { .. }
        | Case::Log { .. } => Err(not_mine(case)),
    }
}

/// The cells with frames.
pub(crate) fn frames<F: Frames>(case: &Case) -> Result<Box<dyn Cell>, Unsupported> {
    match case {
        Case::RingExtend { .. } => ring::extend::<F>(case),
        _ => frame::cell::<F>(case),
    }
}

/// The cells in which several threads share one pool.
pub(crate) fn shared<P: Pool + Clone + Send>(case: &Case) -> Result<Box<dyn Cell>, Unsupported> {
    match case {
        Case::Chaos { .. } => chaos::shared::<P>(case),
        _ => threads::shared::<P>(case),
    }
}

/// The cells in which several threads have a pool each.
pub(crate) fn private<P: Pool>(case: &Case) -> Result<Box<dyn Cell>, Unsupported> {
    match case {
        Case::Chaos { .. } => chaos::private::<P>(case),
        _ => threads::private::<P>(case),
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
}
