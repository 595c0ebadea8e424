//! The registry. Adding an engine is a file here and a line below. A strategy that has none takes
//! part by its name.

mod any;
pub(crate) mod bump;
pub(crate) mod heap;
pub(crate) mod mirror;
pub(crate) mod noop;
#[cfg(feature = "pools")]
mod peers;
mod per_thread;
pub(crate) mod pipe;
pub(crate) mod ring;
pub(crate) mod shard;
pub(crate) mod slot;
pub(crate) mod vec;
pub(crate) mod whole;

use crate::harness::engine::Engine;

/// All engines that this build has, in the order of the report.
#[must_use]
pub fn all() -> Vec<Engine> {
    let mut all = vec![slot::engine(), ring::engine(), bump::engine(), shard::engine(), mirror::engine()];
    all.extend([
        slot::without_settings(),
        ring::without_settings(),
        bump::without_settings(),
        shard::without_settings(),
        shard::with_huge_pages(),
        heap::engine(),
        vec::engine(),
        noop::engine(),
        pipe::engine(),
    ]);
    all.extend(any::engines(&all));
    all.extend(per_thread::engines());
    #[cfg(feature = "pools")]
    all.extend(peers::all());
    all
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::harness::engine::{BASELINE, NOOP};
    use crate::harness::measure::Scale;
    use crate::workloads::cases;

    #[test]
    fn names_are_unique_and_the_controls_are_there() {
        let all = all();
        let names: HashSet<_> = all.iter().map(|engine| engine.name).collect();
        assert_eq!(names.len(), all.len());
        assert!(names.contains(BASELINE) && names.contains(NOOP));
        assert!(all.iter().all(|engine| !engine.idiom.is_empty()));
    }

    /// Each workload that is not served is named, with a reason.
    #[test]
    fn every_cell_is_built_or_refused_with_a_reason() {
        for engine in all() {
            for case in cases(Scale::Test).into_iter().filter(|case| engine.takes_part(case)) {
                if let Err(reason) = engine.cell(&case) {
                    assert!(!reason.0.is_empty(), "{} at {case}", engine.name);
                    assert!(
                        !reason.0.contains("offers nothing"),
                        "{} at {case}: no reason given",
                        engine.name
                    );
                    assert!(!reason.0.contains("served elsewhere"), "{} at {case}: misrouted", engine.name);
                }
            }
        }
    }
}
