//! What has to hold of the results.

use buftrials::mark::Mark;

use crate::engine::{Allocator, Engine};
use crate::record::{BudgetRun, IdleRun, Results};

/// An idle server has at most this many times what it had before the burst.
const MOST_OF_BEFORE: f64 = 1.2;
/// What two runs of the same differ by in time.
const SPEED_NOISE: f64 = 1.05;
/// Nobody waits longer than this number of times the mean.
const MOST_OF_MEAN: f64 = 2.0;

/// All that can be judged by these results.
#[must_use]
pub fn all(results: &Results) -> Vec<Mark> {
    let mut marks = Vec::new();
    for allocator in Allocator::plain() {
        let engines = Engine::all().filter(|engine| engine.untrimmed().is_some());
        marks.extend(engines.flat_map(|engine| idle(results, engine, allocator)));
    }
    marks.extend(results.budget.iter().filter_map(budget).flatten());
    marks
}

/// A figure of a run.
type Figure = fn(&IdleRun) -> f64;

/// A server with the keeper against itself before the burst, the codec, and itself without.
fn idle(results: &Results, one: Engine, allocator: Allocator) -> Vec<Mark> {
    let compared =
        |what: String, figure: Figure, other: Option<Engine>, to: Figure, holds: fn(f64) -> bool| {
            let of = |engine, figure| results.median(engine, allocator, figure);
            let ratio = of(one, figure)? / of(other?, to)?;
            let what = format!("{} over {}: {what}", one.title(), allocator.name());
            Some(Mark { what, found: format!("{ratio:.2}"), holds: holds(ratio) })
        };
    let [before, peak, idle]: [Figure; 3] =
        [|run| run.before as f64, |run| run.peak as f64, |run| run.idle as f64];
    let [rate, micros]: [Figure; 2] = [|run| run.after.rate(), |run| run.after.micros()];
    let (codec, untrimmed) = (Some(Engine::Codec), one.untrimmed());
    [
        compared(
            format!("idle, to before the burst, at most {MOST_OF_BEFORE}"),
            idle,
            Some(one),
            before,
            |ratio| ratio <= MOST_OF_BEFORE,
        ),
        compared("idle, to the codec, at most 1".to_owned(), idle, codec, idle, |ratio| ratio <= 1.0),
        compared("peak, to the codec, at most 1".to_owned(), peak, codec, peak, |ratio| ratio <= 1.0),
        compared(
            "requests a second after the silence, to never trimmed, at least 0.95".to_owned(),
            rate,
            untrimmed,
            rate,
            |ratio| ratio >= 1.0 / SPEED_NOISE,
        ),
        compared(
            "processor time of a request after the silence, to never trimmed, at most 1.05".to_owned(),
            micros,
            untrimmed,
            micros,
            |ratio| ratio <= SPEED_NOISE,
        ),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// A server that has a budget.
fn budget(run: &BudgetRun) -> Option<Vec<Mark>> {
    let (budget, peak) = (run.budget?, run.pool_peak?);
    let crowd = match run.slow {
        0 => format!("{} clients", run.clients),
        slow => format!("{} clients, {slow} of them slow", run.clients),
    };
    let name = format!("{} with a budget, {crowd}", run.engine.title());
    let mut marks = vec![
        Mark {
            what: format!("{name}: every frame is answered right, and no connection is lost"),
            found: run.failure.clone().unwrap_or_else(|| format!("{} answers", run.answered)),
            holds: run.failure.is_none() && run.answered == run.clients,
        },
        Mark {
            what: format!("{name}: bytes of the pool, to its budget, at most 1"),
            found: format!("{:.2}", peak as f64 / budget as f64),
            holds: peak <= budget,
        },
    ];
    // A slow reader holds up others by design; how long is told, and is no mark.
    if run.slow == 0 {
        let ratio = run.longest_wait / run.mean_wait;
        marks.push(Mark {
            what: format!("{name}: the longest wait, to the mean, at most {MOST_OF_MEAN}"),
            found: format!("{ratio:.2}"),
            holds: ratio <= MOST_OF_MEAN,
        });
    }
    Some(marks)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::fixture::{results, run};

    fn judged(runs: Vec<IdleRun>) -> Vec<bool> {
        all(&results(runs)).iter().map(|mark| mark.holds).collect()
    }

    #[test]
    fn each_mark_can_fail() {
        let others = || vec![run(Engine::Codec, 50, 100, 60, 100), run(Engine::Shard, 50, 100, 90, 100)];
        let with = |one| judged(others().into_iter().chain([one]).collect());
        let keeper =
            |before, peak, idle, requests| with(run(Engine::ShardKeeper, before, peak, idle, requests));
        assert_eq!(keeper(50, 100, 55, 100), [true; 5]);
        assert_eq!(keeper(40, 100, 55, 100), [false, true, true, true, true]);
        assert_eq!(keeper(60, 100, 61, 100), [true, false, true, true, true]);
        assert_eq!(keeper(50, 101, 55, 100), [true, true, false, true, true]);
        assert_eq!(keeper(50, 100, 55, 90), [true, true, true, false, false]);
    }

    #[test]
    fn what_was_not_measured_is_not_judged() {
        assert_eq!(judged(vec![run(Engine::ShardKeeper, 1, 1, 1, 1)]), [true]);
        assert_eq!(judged(vec![run(Engine::RingKeeper, 1, 1, 1, 1)]), [true; 0]);
    }

    #[test]
    fn budgets_are_judged() {
        let good = BudgetRun {
            engine: Engine::Shard,
            allocator: Allocator::Glibc,
            clients: 10,
            slow: 0,
            bytes: 1,
            budget: Some(100),
            pool_peak: Some(100),
            growth: 100,
            answered: 10,
            failure: None,
            mean_wait: 1.0,
            longest_wait: 2.0,
        };
        let judged = |run: &BudgetRun| {
            budget(run).map(|marks| marks.iter().map(|mark| mark.holds).collect::<Vec<_>>())
        };
        assert_eq!(judged(&good), Some(vec![true; 3]));
        let lost = BudgetRun { answered: 9, ..good.clone() };
        assert_eq!(judged(&lost), Some(vec![false, true, true]));
        let over = BudgetRun { pool_peak: Some(101), longest_wait: 2.1, ..good.clone() };
        assert_eq!(judged(&over), Some(vec![true, false, false]));
        assert_eq!(judged(&BudgetRun { slow: 1, ..good.clone() }), Some(vec![true; 2]));
        assert_eq!(judged(&BudgetRun { budget: None, ..good }), None);
    }
}
