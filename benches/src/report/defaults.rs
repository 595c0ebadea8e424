//! What settings are worth: contestants without any, against those that have some for the row.

use super::view;
use crate::harness::Kind;
pub use crate::harness::ratios::SLOW;
use crate::harness::record::{Column, Record, Results, Row};

/// A contestant without settings, over all rows in which it was timed in the same rounds as the one
/// with settings.
#[derive(Debug)]
pub struct Summary<'a> {
    /// Its name.
    pub name: &'a str,
    /// How many rows that are.
    pub rows: usize,
    /// In how many of those it takes more than [`SLOW`] times as long.
    pub slow: usize,
    /// The geometric mean of its times in times of the other's.
    pub mean: f64,
    /// The row that is worst for it, and the ratio there.
    pub worst: (&'a Row, f64),
}

/// A row in which a default is more than [`SLOW`] times slower than with settings.
#[derive(Debug)]
pub struct Slow<'a> {
    /// The row.
    pub row: &'a Row,
    /// The default's cell.
    pub record: &'a Record,
    /// Its time.
    pub time: f64,
    /// How many times that of the one with settings it is.
    pub times: f64,
    /// The time with settings.
    pub tuned: f64,
    /// The fastest control or peer of the row that is no default and not the floor, and how many
    /// times its time the default's is.
    pub rival: Option<(&'a str, f64)>,
}

/// The contestants without settings that the results have times of.
#[must_use]
pub fn columns(results: &Results) -> Vec<&Column> {
    let is_compared = |column: &&Column| {
        let mut cells = results.cells.iter();
        cells.any(|record| record.contestant == column.name && record.to_tuned.is_some())
    };
    results.contestants.iter().filter(|column| column.kind == Kind::Default).filter(is_compared).collect()
}

/// A line for each contestant without settings.
#[must_use]
pub fn summaries(results: &Results) -> Vec<Summary<'_>> {
    columns(results).into_iter().filter_map(|column| summary(results, column)).collect()
}

fn summary<'a>(results: &'a Results, column: &'a Column) -> Option<Summary<'a>> {
    let ratios = view::ratios(results, &column.name, |record| record.to_tuned);
    Some(Summary {
        name: &column.name,
        rows: ratios.len(),
        slow: ratios.iter().filter(|(_, ratio)| *ratio > SLOW).count(),
        mean: view::mean(&ratios),
        worst: *ratios.last()?,
    })
}

/// The rows in which a default is clearly slower than with settings, the worst first.
#[must_use]
pub fn slow(results: &Results) -> Vec<Slow<'_>> {
    let mut slow = Vec::new();
    for column in columns(results) {
        for row in &results.cases {
            let Some(record) = results.cell(&row.id, &column.name) else { continue };
            let (Some(timing), Some(times)) = (record.timing(), record.to_tuned) else { continue };
            if times > SLOW {
                let (time, rival) = (timing.median, rival(results, row, timing.median));
                slow.push(Slow { row, record, time, times, tuned: time / times, rival });
            }
        }
    }
    slow.sort_by(|one, other| other.times.total_cmp(&one.times));
    slow
}

/// The fastest control or peer of a row, and how many times its time `time` is.
fn rival<'a>(results: &'a Results, row: &Row, time: f64) -> Option<(&'a str, f64)> {
    view::fastest_rival(results, row).map(|(name, timing)| (name, time / timing.median))
}

/// The rows in which any default was compared with its settings, in the order of the report.
#[must_use]
pub fn rows(results: &Results) -> Vec<&Row> {
    let is_compared =
        |row: &&Row| results.cells.iter().any(|record| record.case == row.id && record.to_tuned.is_some());
    results.cases.iter().filter(is_compared).collect()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::harness::record::Outcome;
    use crate::harness::record::fixture::{column, results, timed, untuned};

    /// Two strategies without settings, one of which has a row that it cannot run.
    pub(crate) fn sample() -> Results {
        let refused = Outcome::Unsupported { reason: "the ring would be exhausted".into() };
        let mut slot = timed("64 B", "slot-default", 6.0, false);
        slot.fallbacks = Some(0.5);
        let mut results = results(
            vec![
                column("slot", Kind::Strategy),
                column("ring", Kind::Strategy),
                untuned("slot-default", "slot"),
                untuned("ring-default", "ring"),
                column("vec", Kind::Control),
                column("floor", Kind::Control),
                column("peer", Kind::Peer),
                untuned("peer-default", "peer"),
            ],
            vec![
                timed("64 B", "slot", 2.0, false),
                timed("64 B", "ring", 1.0, false),
                slot,
                timed("64 B", "ring-default", 1.2, false),
                timed("64 B", "vec", 8.0, false),
                timed("64 B", "floor", 0.5, false),
                timed("64 B", "peer", 4.0, false),
                timed("64 B", "peer-default", 3.5, false),
                timed("1 KiB", "slot", 2.0, false),
                timed("1 KiB", "slot-default", 2.0, false),
                Record::new("1 KiB", "ring-default", refused),
                timed("4 KiB", "ring", 1.0, false),
                timed("4 KiB", "ring-default", 10.0, false),
                timed("8 KiB", "vec", 1.0, false),
            ],
        );
        results.compare();
        results
    }

    #[test]
    fn the_worst_row_comes_first() {
        let results = sample();
        let found: Vec<_> = slow(&results)
            .iter()
            .map(|slow| (slow.record.contestant.as_str(), slow.row.id.as_str(), slow.times, slow.rival))
            .map(|(name, row, times, rival)| (name, row, times, rival.map(|rival| rival.0)))
            .collect();
        assert_eq!(
            found,
            [("ring-default", "4 KiB", 10.0, None), ("slot-default", "64 B", 3.0, Some("peer"))],
            "1.2 times is not slow"
        );
        let first = &slow(&results)[1];
        assert_eq!((first.time, first.tuned, first.rival), (6.0, 2.0, Some(("peer", 1.5))));
    }

    #[test]
    fn each_default_has_a_line() {
        let results = sample();
        let lines: Vec<_> =
            summaries(&results).iter().map(|line| (line.name, line.rows, line.slow, line.worst.1)).collect();
        assert_eq!(
            lines,
            [("slot-default", 2, 1, 3.0), ("ring-default", 2, 1, 10.0), ("peer-default", 1, 0, 0.875),]
        );
        assert!((summaries(&results)[0].mean - 3.0_f64.sqrt()).abs() < 1e-9);
        let ids: Vec<&str> = rows(&results).iter().map(|row| row.id.as_str()).collect();
        assert_eq!(ids, ["64 B", "1 KiB", "4 KiB"], "not the row without any");
    }

    /// They are beside what they are compared with, and in nobody's way.
    #[test]
    fn defaults_are_in_no_verdict() {
        let results = sample();
        assert_eq!(view::winner(&results, "64 B"), Some("ring"));
        let rivals: Vec<&str> =
            view::duels(&results, "slot").iter().map(|duel| duel.rival.name.as_str()).collect();
        assert_eq!(rivals, ["ring", "peer", "vec"]);
        let losers: Vec<&str> = view::losses(&results).iter().map(|loss| loss.strategy).collect();
        assert_eq!(losers, [] as [&str; 0], "{losers:?}");
    }
}
