//! Tables.

use bufadvise::number;
use buftrials::median;
use buftrials::table::{Table, mib, spread};

use crate::engine::{Allocator, Engine};
use crate::record::{BudgetRun, IdleRun, Results};

/// Memory around a burst, over an allocator; `None` without runs.
#[must_use]
pub fn idle(results: &Results, allocator: Allocator) -> Option<Table> {
    let mut table = Table::new(&[
        "buffers",
        "before the burst",
        "peak",
        "idle",
        "idle to before",
        "requests/s after the burst",
        "requests/s after the silence",
        "µs of a processor for each",
    ]);
    for engine in Engine::all() {
        let runs: Vec<&IdleRun> = results.runs(engine, allocator).collect();
        let of = |of: fn(&IdleRun) -> f64| median(runs.iter().map(|run| of(run)));
        let (Some(before), Some(peak), Some(idle)) =
            (of(|run| run.before as f64), of(|run| run.peak as f64), of(|run| run.idle as f64))
        else {
            continue;
        };
        table.rows.push(vec![
            engine.title().to_owned(),
            mib(before),
            mib(peak),
            mib(idle),
            number::three_digits(idle / before),
            spread(runs.iter().map(|run| run.busy.rate()), 0),
            spread(runs.iter().map(|run| run.after.rate()), 0),
            spread(runs.iter().map(|run| run.after.micros()), 2),
        ]);
    }
    (!table.rows.is_empty()).then_some(table)
}

/// More than the server may hold.
#[must_use]
pub fn budget(runs: &[BudgetRun]) -> Table {
    let mut table = Table::new(&[
        "buffers",
        "clients",
        "slow readers",
        "budget",
        "pool at most",
        "growth at most",
        "answered",
        "mean wait",
        "longest wait",
        "longest to mean",
    ]);
    let or_none = |bytes: Option<usize>| bytes.map_or("–".to_owned(), |bytes| mib(bytes as f64));
    for run in runs {
        table.rows.push(vec![
            run.engine.title().to_owned(),
            run.clients.to_string(),
            run.slow.to_string(),
            or_none(run.budget),
            or_none(run.pool_peak),
            mib(run.growth as f64),
            run.failure.clone().unwrap_or_else(|| run.answered.to_string()),
            number::time(run.mean_wait * 1e6),
            number::time(run.longest_wait * 1e6),
            number::three_digits(run.longest_wait / run.mean_wait.max(f64::MIN_POSITIVE)),
        ]);
    }
    table
}
