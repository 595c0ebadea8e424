//! What the results say: winners, means, losses.

use crate::Kind;
use crate::contestants::{BASELINE, FLOOR};
use crate::record::{Record, Results, Row};

/// A difference below this share is not called one.
const NOISE: f64 = 0.05;

/// The fastest contestant of a row. The floor does not count: it is not a pool.
#[must_use]
pub fn winner<'a>(results: &'a Results, case: &str) -> Option<&'a str> {
    results
        .cells
        .iter()
        .filter(|record| record.case == case && record.contestant != FLOOR)
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

/// The geometric mean of a contestant's ratios to `vec` over the rows that it was timed in, and how many those are.
#[must_use]
pub fn mean_ratio(results: &Results, rows: &[&Row], contestant: &str) -> Option<(f64, usize)> {
    let logs: Vec<f64> =
        rows.iter().filter_map(|row| results.cell(&row.id, contestant)?.to_vec).map(f64::ln).collect();
    let mean = logs.iter().sum::<f64>() / logs.len() as f64;
    (!logs.is_empty()).then(|| (mean.exp(), logs.len()))
}

/// Names of the contestants, those first that have the smallest mean ratio; those without times last.
#[must_use]
pub fn by_speed<'a>(results: &'a Results, rows: &[&Row]) -> Vec<&'a str> {
    let mut names: Vec<(&str, f64)> = results
        .contestants
        .iter()
        .map(|column| {
            let mean = mean_ratio(results, rows, &column.name).map_or(f64::INFINITY, |(mean, _)| mean);
            (column.name.as_str(), mean)
        })
        .collect();
    names.sort_by(|one, other| one.1.total_cmp(&other.1));
    names.into_iter().map(|(name, _)| name).collect()
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

/// Rows in which a strategy is slower than the best other contestant, by more than the noise and with spreads that do not
/// overlap. Comparisons with the floor are no losses, nor are those with another strategy.
#[must_use]
pub fn losses(results: &Results) -> Vec<Loss<'_>> {
    let mut losses = Vec::new();
    for strategy in names(results, Kind::Strategy) {
        for row in &results.cases {
            let Some(ours) = results.cell(&row.id, strategy).and_then(Record::timing) else { continue };
            let best = results
                .contestants
                .iter()
                .filter(|column| column.kind != Kind::Strategy && column.name != FLOOR)
                .filter_map(|column| {
                    Some((column.name.as_str(), results.cell(&row.id, &column.name)?.timing()?))
                })
                .min_by(|one, other| one.1.median.total_cmp(&other.1.median));
            if let Some((faster, theirs)) = best {
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

/// How many rows a contestant was timed in, in how many of those it is the fastest, and in how many faster than `vec`.
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
