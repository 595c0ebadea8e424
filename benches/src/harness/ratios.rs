//! How cells compare with each other: ratios of medians of the same rounds.

use crate::harness::engine::{BASELINE, Kind};
use crate::harness::record::{Column, Results};

impl Results {
    /// Fills in the ratios, from what was measured in the same rounds.
    pub fn compare(&mut self) {
        let strategies = || self.engines.iter().filter(|column| column.kind == Kind::Strategy);
        let ratios: Vec<_> = self
            .cells
            .iter()
            .map(|record| {
                let this = self.median(&record.case, &record.engine)?;
                let vec = self.median(&record.case, BASELINE);
                let to_this = |column: &Column| {
                    let strategy = self.median(&record.case, &column.name)?;
                    let is_other = column.name != record.engine;
                    is_other.then(|| (column.name.clone(), strategy / this))
                };
                Some((vec.map(|vec| this / vec), strategies().filter_map(to_this).collect()))
            })
            .collect();
        for (record, ratio) in self.cells.iter_mut().zip(ratios) {
            (record.to_vec, record.strategies_to_this) = ratio.unwrap_or_default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::record::fixture::{column, results, timed};
    use crate::harness::record::{Outcome, Record};

    #[test]
    fn ratios_are_of_the_same_rounds() {
        let mut results = results(
            vec![
                column("slot", Kind::Strategy),
                column("ring", Kind::Strategy),
                column("vec", Kind::Control),
            ],
            vec![
                timed("a", "slot", 2.0),
                timed("a", "vec", 8.0),
                Record::new("a", "gone", Outcome::Hung { seconds: 1.0 }),
                timed("a", "ring", 4.0),
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
        assert_eq!(results.cells[2].to_vec, None, "not timed");
    }
}
