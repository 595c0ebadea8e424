//! How cells compare with each other: ratios of medians of the same rounds.

use crate::harness::contestant::{BASELINE, Contestant, Kind};
use crate::harness::record::{Column, Record, Results};

/// A contestant without settings that takes more than this number of times what the one with
/// settings takes is slow: the report lists it.
pub const SLOW: f64 = 1.25;

/// The median of a contestant, if it was timed in the same rounds as the others of its row.
fn median_of(record: &Record) -> Option<f64> {
    record.timing().filter(|timing| !timing.alone).map(|timing| timing.median)
}

/// Returns whether a strategy without settings is slow in a row, which has these records.
#[must_use]
pub fn has_slow_default(row: &[Record], contestants: &[Contestant]) -> bool {
    let time = |name| median_of(row.iter().find(|record| record.contestant == name)?);
    let is_strategy =
        |name| contestants.iter().any(|one: &Contestant| one.name == name && one.kind == Kind::Strategy);
    contestants.iter().filter(|contestant| contestant.kind == Kind::Default).any(|contestant| {
        let tuned = contestant.setting_of.filter(|&name| is_strategy(name)).and_then(time);
        time(contestant.name).zip(tuned).is_some_and(|(this, tuned)| this > SLOW * tuned)
    })
}

impl Results {
    /// The contestant with settings that one is without settings, if it is that.
    #[must_use]
    pub fn tuned(&self, column: &Column) -> Option<&Column> {
        let of = column.of.as_ref().filter(|_| column.kind == Kind::Default)?;
        self.contestants.iter().find(|tuned| tuned.name == *of)
    }

    /// Fills in the ratios, from what was measured in the same rounds.
    pub fn compare(&mut self) {
        let together =
            |results: &Self, case: &str, contestant: &str| median_of(results.cell(case, contestant)?);
        let strategies = || self.contestants.iter().filter(|column| column.kind == Kind::Strategy);
        let ratios: Vec<_> = self
            .cells
            .iter()
            .map(|record| {
                let this = together(self, &record.case, &record.contestant)?;
                let vec = together(self, &record.case, BASELINE);
                let column = self.contestants.iter().find(|column| column.name == record.contestant);
                let tuned = column
                    .and_then(|column| self.tuned(column))
                    .and_then(|tuned| together(self, &record.case, &tuned.name));
                let to_this = |column: &Column| {
                    let strategy = together(self, &record.case, &column.name)?;
                    let is_other = column.name != record.contestant;
                    is_other.then(|| (column.name.clone(), strategy / this))
                };
                let of_this = |other: Option<f64>| other.map(|other| this / other);
                Some((of_this(vec), of_this(tuned), strategies().filter_map(to_this).collect()))
            })
            .collect();
        for (record, ratio) in self.cells.iter_mut().zip(ratios) {
            (record.to_vec, record.to_tuned, record.strategies_to_this) = ratio.unwrap_or_default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::record::Outcome;
    use crate::harness::record::fixture::{column, results, timed, untuned};

    #[test]
    fn ratios_are_of_the_same_rounds() {
        let mut results = results(
            vec![
                column("slot", Kind::Strategy),
                column("ring", Kind::Strategy),
                column("vec", Kind::Control),
            ],
            vec![
                timed("a", "slot", 2.0, false),
                timed("a", "vec", 8.0, false),
                timed("a", "peer", 4.0, true),
                Record::new("a", "gone", Outcome::Hung { seconds: 1.0 }),
                timed("a", "ring", 4.0, false),
            ],
        );
        results.compare();
        assert_eq!(results.cells[0].to_vec, Some(0.25));
        let ratios = |index: usize| -> Vec<(&str, f64)> {
            let ratios = &results.cells[index].strategies_to_this;
            ratios.iter().map(|(name, &ratio)| (name.as_str(), ratio)).collect()
        };
        assert_eq!(
            ratios(0),
            [("ring", 2.0)],
            "strategies are compared with each other, not with themselves"
        );
        assert_eq!(ratios(1), [("ring", 0.5), ("slot", 0.25)]);
        assert_eq!(results.cells[2].to_vec, None, "not in the same rounds");
        assert_eq!(ratios(2), []);
        assert_eq!(results.cells[3].to_vec, None);
    }

    #[test]
    fn a_slow_default_is_seen() {
        let tuned = Contestant::new("slot", Kind::Strategy, "all is set");
        let both = [tuned, tuned.without_settings("slot-default", &[], "nothing is set")];
        let row =
            |this: f64, alone| [timed("a", "slot", 2.0, false), timed("a", "slot-default", this, alone)];
        assert!(has_slow_default(&row(2.6, false), &both));
        assert!(!has_slow_default(&row(2.4, false), &both));
        assert!(!has_slow_default(&row(2.6, true), &both), "not in the same rounds");
        assert!(!has_slow_default(&row(2.6, false)[1..], &both), "there is nothing to compare with");
        assert!(!has_slow_default(&row(2.6, false), &both[..1]), "it is not in this run");
        let mut peer = tuned;
        peer.kind = Kind::Peer;
        assert!(!has_slow_default(&row(2.6, false), &[peer, both[1]]), "it is not a strategy's");
    }

    #[test]
    fn a_default_is_compared_with_its_settings() {
        let mut results = results(
            vec![
                column("slot", Kind::Strategy),
                untuned("slot-default", "slot"),
                column("peer", Kind::Peer),
                untuned("peer-default", "peer"),
            ],
            vec![
                timed("a", "slot", 2.0, false),
                timed("a", "slot-default", 3.0, false),
                timed("b", "slot", 2.0, false),
                timed("b", "slot-default", 3.0, true),
                timed("c", "slot-default", 3.0, false),
                timed("c", "peer", 2.0, false),
                Record::new("c", "peer-default", Outcome::Hung { seconds: 1.0 }),
            ],
        );
        results.compare();
        let ratios: Vec<Option<f64>> = results.cells.iter().map(|record| record.to_tuned).collect();
        assert_eq!(ratios[..2], [None, Some(1.5)], "the one with settings has no ratio to itself");
        assert_eq!(ratios[2..], [None; 5], "not in the same rounds, or not timed");
        let text = serde_json::to_string(&results.cells[1]).unwrap();
        assert!(text.contains("\"to_tuned\":1.5"), "{text}");
        assert_eq!(results.failures(&[Kind::Strategy, Kind::Control]), [] as [String; 0]);
        assert_eq!(results.failures(&[Kind::Peer]), ["peer-default at c: hung: nothing for 1 s"]);
    }
}
