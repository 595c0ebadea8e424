//! Contestants as a program makes them that sets nothing. They stand beside the ones with settings
//! for the row, so that the report can say what the settings are worth.
//!
//! Each is the tuned contestant, whose adapter is told to set nothing. So a workload runs the same
//! machine code on both, and where the compiler put a loop makes no difference between them. The
//! mirrored rings have none: all that they are told is how many bytes they hold, and that has to be
//! said.

use crate::harness::contestant::Contestant;

/// The workloads that defaults are in when a quick run is of all rows: those in which settings have
/// mattered most. A run of three minutes has no time for all.
const QUICK: &[&str] = &["reuse", "burst", "queue", "frame", "handoff"];

/// The strategies of which nothing is set, in the order of the report.
pub(super) fn contestants() -> [Contestant; 4] {
    [
        super::slot::without_settings(),
        super::ring::without_settings(),
        super::bump::without_settings(),
        super::shard::without_settings(),
    ]
}

/// The contestant `tuned` without settings.
pub(super) const fn of(tuned: Contestant, name: &'static str, idiom: &'static str) -> Contestant {
    tuned.without_settings(name, QUICK, idiom)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::Kind;
    use crate::harness::case::Case;
    use crate::harness::measure::Scale;
    use crate::workloads::cases;

    /// Every strategy that takes settings for a row is in the matrix without them as well, in all
    /// rows that it is in with them. `mirror` has no settings beside its capacity.
    #[test]
    fn every_strategy_is_in_every_row_without_settings_too() {
        let all = super::super::all();
        let cases = cases(Scale::Full);
        for tuned in all.iter().filter(|one| one.kind == Kind::Strategy && one.name != "mirror") {
            let untuned = all
                .iter()
                .find(|one| one.kind == Kind::Default && one.setting_of == Some(tuned.name))
                .unwrap_or_else(|| panic!("{} has no default", tuned.name));
            assert_eq!(untuned.name, format!("{}-default", tuned.name));
            for case in &cases {
                assert_eq!(untuned.takes_part(case), tuned.takes_part(case), "{} at {case}", untuned.name);
                assert_eq!(untuned.refusal(case), tuned.refusal(case), "{} at {case}", untuned.name);
            }
        }
    }

    #[test]
    fn a_quick_run_has_defaults_where_they_matter() {
        let cases = cases(Scale::Quick);
        let rows = |case: &Case| contestants().iter().all(|one| one.is_in_quick(case));
        let workloads: Vec<&str> = cases.iter().filter(|case| rows(case)).map(Case::workload).collect();
        for workload in QUICK {
            assert!(workloads.contains(workload), "{workload}");
        }
        assert!(!workloads.contains(&"replay"));
    }

    /// The rows in which a ring of 8 MiB would be exhausted in the middle of a frame are refused
    /// with a reason; in the others nothing panics.
    #[test]
    fn a_row_that_a_default_cannot_run_says_so() {
        let mut refused = Vec::new();
        for case in cases(Scale::Test) {
            // Writing many megabytes takes seconds where that is not optimised.
            let is_large = matches!(case, Case::RingExtend { held, bytes } if held * bytes > 1 << 20);
            if !matches!(case, Case::Frame { .. } | Case::RingExtend { .. }) {
                continue;
            }
            for contestant in contestants().into_iter().filter(|one| one.refusal(&case).is_none()) {
                match contestant.cell(&case) {
                    Ok(_) if is_large && cfg!(debug_assertions) => {}
                    Ok(mut cell) => {
                        assert_eq!(cell.check(), Ok(()), "{} at {case}", contestant.name);
                        cell.run(100);
                    }
                    Err(reason) => {
                        assert!(reason.0.contains("8 MiB, which is too little"), "{}", reason.0);
                        refused.push((contestant.name, case.id()));
                    }
                }
            }
        }
        assert_eq!(refused, [("ring-default", String::from("ring-extend/1024x128K"))]);
    }

    /// With more out than a pool without settings has room for, its buffers are still right: those
    /// that it has no place for come from elsewhere.
    #[test]
    fn a_default_that_is_too_small_falls_back() {
        use crate::harness::case::Order;
        let case = Case::Burst { count: 64, bytes: 256 << 10, order: Order::Random };
        for contestant in contestants() {
            let mut cell = contestant.cell(&case).unwrap_or_else(|reason| panic!("{}", reason.0));
            assert_eq!(cell.check(), Ok(()), "{} at {case}", contestant.name);
            cell.run(2);
            if contestant.name == "ring-default" {
                let fallbacks = cell.fallbacks().expect("the ring counts");
                assert!(fallbacks > 64, "{fallbacks}");
            }
        }
    }
}
