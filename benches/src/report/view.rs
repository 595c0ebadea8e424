//! What the results say: winners, means, losses.

use crate::harness::Kind;
use crate::harness::contestant::{BASELINE, FLOOR};
use crate::harness::record::{Column, Record, Results, Row, Timing};

/// A difference below this share is not called one.
const NOISE: f64 = 0.05;

/// The columns that have something to say about these rows. Settings are in the tables of their
/// workload only.
#[must_use]
pub fn columns<'a>(results: &'a Results, rows: &[&Row]) -> Vec<&'a Column> {
    let shown = |column: &&Column| rows.iter().any(|row| results.cell(&row.id, &column.name).is_some());
    results.contestants.iter().filter(shown).collect()
}

/// A strategy's times against one other contestant's, over the rows in which both were timed in the
/// same rounds.
#[derive(Debug)]
pub struct Duel<'a> {
    /// The other.
    pub rival: &'a Column,
    /// How many rows that are.
    pub rows: usize,
    /// The geometric mean of the strategy's times in times of the rival's.
    pub mean: f64,
    /// The row that is best for the strategy, and the ratio there.
    pub best: (&'a Row, f64),
    /// The row that is worst for it.
    pub worst: (&'a Row, f64),
}

/// How a strategy compares with each of the others that is a pool, those first against which it
/// looks worst.
#[must_use]
pub fn duels<'a>(results: &'a Results, strategy: &str) -> Vec<Duel<'a>> {
    let is_rival =
        |column: &&Column| column.name != strategy && column.name != FLOOR && !is_aside(column.kind);
    let mut duels: Vec<Duel<'_>> = results
        .contestants
        .iter()
        .filter(is_rival)
        .filter_map(|rival| {
            let ratios =
                ratios(results, &rival.name, |record| record.strategies_to_this.get(strategy).copied());
            let (best, worst) = (*ratios.first()?, *ratios.last()?);
            Some(Duel { rival, rows: ratios.len(), mean: mean(&ratios), best, worst })
        })
        .collect();
    duels.sort_by(|one, other| other.mean.total_cmp(&one.mean));
    duels
}

/// Whether contestants of a kind are in no verdict: a strategy with other settings, or with none.
fn is_aside(kind: Kind) -> bool {
    matches!(kind, Kind::Setting | Kind::Default)
}

/// A contestant's ratios over the rows that it has some in, sorted.
pub(super) fn ratios<'a>(
    results: &'a Results,
    contestant: &str,
    ratio: impl Fn(&Record) -> Option<f64>,
) -> Vec<(&'a Row, f64)> {
    let of = |row: &'a Row| Some((row, ratio(results.cell(&row.id, contestant)?)?));
    let mut ratios: Vec<(&Row, f64)> = results.cases.iter().filter_map(of).collect();
    ratios.sort_by(|one, other| one.1.total_cmp(&other.1));
    ratios
}

/// The geometric mean.
pub(super) fn mean(ratios: &[(&Row, f64)]) -> f64 {
    (ratios.iter().map(|(_, ratio)| ratio.ln()).sum::<f64>() / ratios.len() as f64).exp()
}

/// The fastest contestant of a row. The floor does not count: it is not a pool. Nor does a
/// contestant with other settings, or without any.
#[must_use]
pub fn winner<'a>(results: &'a Results, case: &str) -> Option<&'a str> {
    let counts = |name: &str| {
        let column = results.contestants.iter().find(|column| column.name == name);
        name != FLOOR && column.is_none_or(|column| !is_aside(column.kind))
    };
    results
        .cells
        .iter()
        .filter(|record| record.case == case && counts(&record.contestant))
        .filter_map(|record| Some((record.contestant.as_str(), record.timing()?.median)))
        .min_by(|one, other| one.1.total_cmp(&other.1))
        .map(|(name, _)| name)
}

/// The workloads that were run, in order, each with its rows.
#[must_use]
pub fn workloads(results: &Results) -> Vec<(&str, Vec<&Row>)> {
    let mut workloads: Vec<(&str, Vec<&Row>)> = Vec::new();
    for row in &results.cases {
        match workloads.last_mut() {
            Some((name, rows)) if *name == row.workload => rows.push(row),
            _ => workloads.push((&row.workload, vec![row])),
        }
    }
    workloads
}

/// The geometric mean of a contestant's ratios to `vec` over the rows that it was timed in, and how
/// many those are.
#[must_use]
pub fn mean_ratio(results: &Results, rows: &[&Row], contestant: &str) -> Option<(f64, usize)> {
    let logs: Vec<f64> =
        rows.iter().filter_map(|row| results.cell(&row.id, contestant)?.to_vec).map(f64::ln).collect();
    let mean = logs.iter().sum::<f64>() / logs.len() as f64;
    (!logs.is_empty()).then(|| (mean.exp(), logs.len()))
}

/// A row in which a strategy is slower than someone.
#[derive(Debug)]
pub struct Loss<'a> {
    /// The strategy.
    pub strategy: &'a str,
    /// The row.
    pub row: &'a Row,
    /// Who is faster.
    pub faster: &'a str,
    /// How many times the strategy's time is the other's.
    pub times: f64,
}

/// Rows in which a strategy is slower than the best control or peer, by more than the noise and
/// with spreads that do not overlap. Comparisons with the floor are no losses, nor are those with
/// another strategy.
#[must_use]
pub fn losses(results: &Results) -> Vec<Loss<'_>> {
    let mut losses = Vec::new();
    for strategy in names(results, Kind::Strategy) {
        for row in &results.cases {
            let Some(ours) = results.cell(&row.id, strategy).and_then(Record::timing) else { continue };
            if let Some((faster, theirs)) = fastest_rival(results, row) {
                let times = ours.median / theirs.median;
                if times > 1.0 + NOISE && ours.p10 > theirs.p90 {
                    losses.push(Loss { strategy, row, faster, times });
                }
            }
        }
    }
    losses.sort_by(|one, other| other.times.total_cmp(&one.times));
    losses
}

/// The fastest control or peer of a row, measured in the same rounds as the others. The floor is no
/// rival.
pub(super) fn fastest_rival<'a>(results: &'a Results, row: &Row) -> Option<(&'a str, &'a Timing)> {
    results
        .contestants
        .iter()
        .filter(|column| matches!(column.kind, Kind::Control | Kind::Peer) && column.name != FLOOR)
        .filter_map(|column| Some((column.name.as_str(), results.cell(&row.id, &column.name)?.timing()?)))
        .filter(|(_, timing)| !timing.alone)
        .min_by(|one, other| one.1.median.total_cmp(&other.1.median))
}

/// How many rows a contestant was timed in, in how many of those it is the fastest, and in how many
/// faster than `vec`.
#[must_use]
pub fn score(results: &Results, contestant: &str) -> (usize, usize, usize) {
    let timed = |record: &&Record| record.contestant == contestant && record.timing().is_some();
    let rows = results.cells.iter().filter(timed);
    let fastest = results
        .cells
        .iter()
        .filter(timed)
        .filter(|record| winner(results, &record.case) == Some(contestant))
        .count();
    let faster = results
        .cells
        .iter()
        .filter(timed)
        .filter(|record| record.to_vec.is_some_and(|ratio| ratio < 1.0) && record.contestant != BASELINE);
    (rows.count(), fastest, faster.count())
}

/// The names of one kind.
pub fn names(results: &Results, kind: Kind) -> impl Iterator<Item = &str> {
    results.contestants.iter().filter(move |column| column.kind == kind).map(|column| column.name.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::record::fixture::{column, results, timed};

    #[test]
    fn every_strategy_is_compared_with_every_pool() {
        let mut results = results(
            vec![
                column("slot", Kind::Strategy),
                column("ring", Kind::Strategy),
                column("ring-half", Kind::Setting),
                column("vec", Kind::Control),
                column(FLOOR, Kind::Control),
                column("peer", Kind::Peer),
            ],
            vec![
                timed("a", "slot", 2.0, false),
                timed("a", "ring", 1.0, false),
                timed("a", "ring-half", 0.25, false),
                timed("a", "vec", 8.0, false),
                timed("a", FLOOR, 0.5, false),
                timed("a", "peer", 4.0, false),
                timed("b", "ring", 9.0, false),
                timed("b", "peer", 1.0, false),
            ],
        );
        results.compare();
        let seen = |strategy: &str| -> Vec<(String, usize, f64, f64)> {
            let duel = |duel: &Duel<'_>| (duel.rival.name.clone(), duel.rows, duel.best.1, duel.worst.1);
            duels(&results, strategy).iter().map(duel).collect()
        };
        let found = |name: &str, rows, best, worst| (String::from(name), rows, best, worst);
        assert_eq!(
            seen("slot"),
            [found("ring", 1, 2.0, 2.0), found("peer", 1, 0.5, 0.5), found("vec", 1, 0.25, 0.25)]
        );
        assert_eq!(
            seen("ring"),
            [found("peer", 2, 0.25, 9.0), found("slot", 1, 0.5, 0.5), found("vec", 1, 0.125, 0.125)]
        );
        let losses: Vec<_> = losses(&results).iter().map(|loss| (loss.strategy, loss.faster)).collect();
        assert_eq!(losses, [("ring", "peer")], "in row b only");
        assert_eq!(winner(&results, "a"), Some("ring"), "neither the floor nor a setting");
        let rows: Vec<&Row> = results.cases.iter().filter(|row| row.id == "b").collect();
        let shown: Vec<&str> = columns(&results, &rows).iter().map(|column| column.name.as_str()).collect();
        assert_eq!(shown, ["ring", "peer"], "who has no cell there has no column");
    }
}
