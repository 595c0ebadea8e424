//! What the results say: winners, means, losses.

use crate::harness::Kind;
use crate::harness::engine::{BASELINE, NOOP};
use crate::harness::record::{Column, Record, Results, Row, Timing};

/// A difference below this share is not called one.
pub(super) const NOISE: f64 = 0.05;

/// The columns that have something to say about these rows. Settings are in the tables of their
/// workload only.
pub(super) fn columns<'a>(results: &'a Results, rows: &[&Row]) -> Vec<&'a Column> {
    let shown = |column: &&Column| rows.iter().any(|row| results.cell(&row.id, &column.name).is_some());
    results.engines.iter().filter(shown).collect()
}

/// The fastest engine of a row. `noop` does not count: it is not a pool. Nor does an
/// engine with other settings.
pub(super) fn winner<'a>(results: &'a Results, case: &str) -> Option<&'a str> {
    let counts = |name: &str| {
        let column = results.engines.iter().find(|column| column.name == name);
        name != NOOP && column.is_none_or(|column| column.kind != Kind::Setting)
    };
    results
        .cells
        .iter()
        .filter(|record| record.case == case && counts(&record.engine))
        .filter_map(|record| Some((record.engine.as_str(), record.timing()?.median)))
        .min_by(|one, other| one.1.total_cmp(&other.1))
        .map(|(name, _)| name)
}

/// The workloads that were run, in order, each with its rows.
pub(super) fn workloads(results: &Results) -> Vec<(&str, Vec<&Row>)> {
    let mut workloads: Vec<(&str, Vec<&Row>)> = Vec::new();
    for row in &results.cases {
        match workloads.last_mut() {
            Some((name, rows)) if *name == row.workload => rows.push(row),
            _ => workloads.push((&row.workload, vec![row])),
        }
    }
    workloads
}

/// The geometric mean of an engine's ratios to `vec` over the rows that it was timed in, and how
/// many those are.
pub(super) fn mean_ratio(results: &Results, rows: &[&Row], engine: &str) -> Option<(f64, usize)> {
    let logs: Vec<f64> =
        rows.iter().filter_map(|row| results.cell(&row.id, engine)?.to_vec).map(f64::ln).collect();
    let mean = logs.iter().sum::<f64>() / logs.len() as f64;
    (!logs.is_empty()).then(|| (mean.exp(), logs.len()))
}

/// A row in which a strategy is slower than someone.
#[derive(Debug)]
pub(super) struct Loss<'a> {
    /// The strategy.
    pub(super) strategy: &'a str,
    /// The row.
    pub(super) row: &'a Row,
    /// Who is faster.
    pub(super) faster: &'a str,
    /// How many times the strategy's time is the other's.
    pub(super) times: f64,
}

/// Rows in which a strategy is slower than the best control or peer, by more than the noise and
/// with spreads that do not overlap. Comparisons with `noop` are no losses, nor are those with
/// another strategy.
pub(super) fn losses(results: &Results) -> Vec<Loss<'_>> {
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

/// The fastest control or peer of a row, measured in the same rounds as the others. `noop` is no
/// rival.
pub(super) fn fastest_rival<'a>(results: &'a Results, row: &Row) -> Option<(&'a str, &'a Timing)> {
    results
        .engines
        .iter()
        .filter(|column| matches!(column.kind, Kind::Control | Kind::Peer) && column.name != NOOP)
        .filter_map(|column| Some((column.name.as_str(), results.cell(&row.id, &column.name)?.timing()?)))
        .min_by(|one, other| one.1.median.total_cmp(&other.1.median))
}

/// How many rows an engine was timed in, in how many of those it is the fastest, and in how many
/// faster than `vec`.
pub(super) fn score(results: &Results, engine: &str) -> (usize, usize, usize) {
    let timed = |record: &&Record| record.engine == engine && record.timing().is_some();
    let rows = results.cells.iter().filter(timed);
    let fastest = results
        .cells
        .iter()
        .filter(timed)
        .filter(|record| winner(results, &record.case) == Some(engine))
        .count();
    let faster = results
        .cells
        .iter()
        .filter(timed)
        .filter(|record| record.to_vec.is_some_and(|ratio| ratio < 1.0) && record.engine != BASELINE);
    (rows.count(), fastest, faster.count())
}

/// The names of one kind.
pub(super) fn names(results: &Results, kind: Kind) -> impl Iterator<Item = &str> {
    results.engines.iter().filter(move |column| column.kind == kind).map(|column| column.name.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::record::fixture::{column, results, timed};

    #[test]
    fn winners_and_losses_are_of_pools_with_settings_for_the_row() {
        let mut results = results(
            vec![
                column("slot", Kind::Strategy),
                column("ring", Kind::Strategy),
                column("ring-half", Kind::Setting),
                column("vec", Kind::Control),
                column(NOOP, Kind::Control),
                column("peer", Kind::Peer),
            ],
            vec![
                timed("a", "slot", 2.0),
                timed("a", "ring", 1.0),
                timed("a", "ring-half", 0.25),
                timed("a", "vec", 8.0),
                timed("a", NOOP, 0.5),
                timed("a", "peer", 4.0),
                timed("b", "ring", 9.0),
                timed("b", "peer", 1.0),
            ],
        );
        results.compare();
        let losses: Vec<_> = losses(&results).iter().map(|loss| (loss.strategy, loss.faster)).collect();
        assert_eq!(losses, [("ring", "peer")], "in row b only");
        assert_eq!(winner(&results, "a"), Some("ring"), "neither `noop` nor a setting");
        let rows: Vec<&Row> = results.cases.iter().filter(|row| row.id == "b").collect();
        let shown: Vec<&str> = columns(&results, &rows).iter().map(|column| column.name.as_str()).collect();
        assert_eq!(shown, ["ring", "peer"], "who has no cell there has no column");
    }
}
