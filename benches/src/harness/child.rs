//! What runs in a child process: one row of the matrix, for some contestants. Results go to
//! standard output, a line each.

#![allow(clippy::result_large_err, reason = "an outcome is made once a cell, and kept")]

use std::cell::RefCell;
use std::fs;
use std::io::{self, Write};
use std::panic::{self, AssertUnwindSafe};
use std::time::{Duration, Instant};

use crate::harness::measure::{Effort, Runner, rounds, tails};
use crate::harness::process::settle_heap;
use crate::harness::record::{Message, Outcome, Record, Tail, Timing};
use crate::harness::statistics::quantile;
use crate::harness::{Case, Cell, Contestant};

thread_local! {
    /// What the last panic on this thread said.
    static LAST_PANIC: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Tells the parent.
fn say(message: &Message) {
    let line = serde_json::to_string(message).expect("messages are plain data");
    let mut out = io::stdout().lock();
    // A parent that is gone needs no answer.
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}

fn at(contestant: &str) {
    say(&Message::At { contestant: contestant.into() });
}

fn found(record: Record) {
    say(&Message::Cell(Box::new(record)));
}

/// Keeps panics for the report instead of printing them.
fn keep_panics() {
    panic::set_hook(Box::new(|panic| {
        LAST_PANIC.set(Some(panic.to_string().replace('\n', " ")));
    }));
}

/// Runs `work`; a panic in it becomes a sentence.
fn guarded<R>(work: impl FnOnce() -> R) -> Result<R, Outcome> {
    panic::catch_unwind(AssertUnwindSafe(work)).map_err(|payload| {
        let how = LAST_PANIC.take().or_else(|| payload.downcast_ref::<String>().cloned());
        Outcome::Crashed { how: how.unwrap_or_else(|| "panicked on another thread".into()) }
    })
}

/// Builds and checks a cell.
fn ready(contestant: &Contestant, case: &Case) -> Result<Box<dyn Cell>, Outcome> {
    at(contestant.name);
    guarded(|| match contestant.cell(case) {
        Err(reason) => Err(Outcome::Unsupported { reason: reason.0 }),
        Ok(mut cell) => match cell.check() {
            Ok(()) => Ok(cell),
            Err(what) => Err(Outcome::Wrong { what }),
        },
    })?
}

/// Checks and times one row: the contestants take turns in each round, and a different one begins
/// each time.
pub fn group(case: &Case, contestants: &[Contestant], effort: &Effort, alone: bool) -> ! {
    keep_panics();
    settle_heap();
    let id = case.id();
    let mut cells = Vec::new();
    for contestant in contestants {
        match ready(contestant, case) {
            Ok(cell) => cells.push((contestant.name, cell)),
            Err(outcome) => found(Record::new(&id, contestant.name, outcome)),
        }
    }
    let mut runners = Vec::new();
    for (name, cell) in &mut cells {
        at(name);
        match guarded(|| Runner::calibrate(cell.as_mut(), effort.run)) {
            Ok(runner) => runners.push((*name, runner)),
            Err(outcome) => found(Record::new(&id, name, outcome)),
        }
    }
    let (mut names, mut runners): (Vec<_>, Vec<_>) = runners.into_iter().unzip();
    let rounds = rounds(effort, &runners);
    for round in 0..rounds {
        for turn in 0..runners.len() {
            let index = (round + turn) % runners.len();
            at(names[index]);
            if let Err(outcome) = guarded(|| runners[index].round()) {
                found(Record::new(&id, names[index], outcome));
                names.remove(index);
                runners.remove(index);
                // The turns have shifted; the rest of this round is left out, which the others do
                // not notice.
                break;
            }
        }
        say(&Message::Round { done: round + 1, of: rounds });
    }
    let times: Vec<(Vec<f64>, u64)> =
        runners.iter_mut().map(|runner| (core::mem::take(&mut runner.nanos), runner.operations())).collect();
    let mut active: Vec<&mut dyn Cell> = runners.iter_mut().map(Runner::cell).collect();
    let tails = match effort.samples {
        0 => vec![None; names.len()],
        samples => guarded(|| tails(&mut active, samples, |index| at(names[index])))
            .unwrap_or_else(|_| vec![None; names.len()]),
    };
    for (((name, cell), times), tail) in names.iter().zip(active).zip(times).zip(tails) {
        found(Record::new(&id, name, Outcome::Timed(timing(cell, times, tail, alone))));
    }
    leave()
}

/// What a cell's rounds, and the operations in each, come to.
fn timing(
    cell: &dyn Cell,
    (mut nanos, operations): (Vec<f64>, u64),
    tail: Option<Tail>,
    alone: bool,
) -> Timing {
    nanos.sort_by(f64::total_cmp);
    Timing {
        median: quantile(&nanos, 0.5),
        p10: quantile(&nanos, 0.1),
        p90: quantile(&nanos, 0.9),
        rounds: nanos.len(),
        operations,
        bytes: cell.bytes().map(|bytes| bytes as f64 / cell.operations() as f64),
        tail,
        note: cell.note().map(String::from),
        alone,
        nanos,
    }
}

/// Checks one row and runs it once.
pub fn test(case: &Case, contestants: &[Contestant]) -> ! {
    keep_panics();
    settle_heap();
    for contestant in contestants {
        let outcome = match ready(contestant, case) {
            Err(outcome) => outcome,
            Ok(mut cell) => match guarded(|| cell.run(2)) {
                Ok(_) => Outcome::Checked,
                Err(outcome) => outcome,
            },
        };
        found(Record::new(&case.id(), contestant.name, outcome));
    }
    leave()
}

/// Counts heap calls and fallbacks of one row, in at least `operations` operations. `heap_calls`
/// reads the counter of a counting global allocator.
pub fn count(case: &Case, contestants: &[Contestant], operations: u64, heap_calls: fn() -> u64) -> ! {
    keep_panics();
    settle_heap();
    for contestant in contestants {
        at(contestant.name);
        let counted = guarded(|| {
            let mut cell = contestant.cell(case).ok()?;
            let fixed = cell.fixed_iterations();
            let iterations = fixed.unwrap_or_else(|| (operations / cell.operations()).max(1));
            // What a run costs in heap calls and fallbacks.
            let mut cost = |iterations| {
                let before = (heap_calls(), cell.fallbacks());
                cell.run(iterations);
                let after = (heap_calls(), cell.fallbacks());
                let fallbacks = before.1.zip(after.1).map(|(before, after)| (after - before) as f64);
                ((after.0 - before.0) as f64, fallbacks)
            };
            // Steady state: the first run fills caches and lists. A cost that comes once a run,
            // such as the buffers that are held all the while, goes out with the difference of two
            // runs.
            let _ = cost(iterations);
            let one = cost(iterations);
            let (calls, fallbacks) = if fixed.is_some() {
                one
            } else {
                let two = cost(2 * iterations);
                let more = |(one, two): (f64, f64)| (two - one).max(0.0);
                (more((one.0, two.0)), one.1.zip(two.1).map(more))
            };
            let operations = (iterations * cell.operations() * cell.threads()) as f64;
            let calls = contestant.counted.then(|| calls / operations);
            let fallbacks = fallbacks.map(|fallbacks| fallbacks / operations);
            Some((calls, fallbacks))
        });
        if let Ok(Some((heap_calls, fallbacks))) = counted {
            let mut record = Record::new(&case.id(), contestant.name, Outcome::Checked);
            (record.heap_calls, record.fallbacks) = (heap_calls, fallbacks);
            found(record);
        }
    }
    leave()
}

/// Measures by how much resident memory grows while one cell is built and run, for as long as `run`
/// takes to reach the steady state.
pub fn memory(case: &Case, contestant: &Contestant, run: Duration) -> ! {
    keep_panics();
    settle_heap();
    at(contestant.name);
    let grown = guarded(|| {
        // Forgets the peak so far; where that is not allowed the peak is that of the start, which
        // is small.
        let _ = fs::write("/proc/self/clear_refs", "5");
        let before = status("VmRSS:")?;
        let mut cell = contestant.cell(case).ok()?;
        let start = Instant::now();
        cell.run(1);
        while start.elapsed() < run {
            cell.run(4);
        }
        Some(status("VmHWM:")?.saturating_sub(before))
    });
    if let Ok(Some(bytes)) = grown {
        let mut record = Record::new(&case.id(), contestant.name, Outcome::Checked);
        record.peak_bytes = Some(bytes);
        found(record);
    }
    leave()
}

/// Ends the process without dropping anything: some peers wait in their drop.
fn leave() -> ! {
    let _ = io::stdout().flush();
    std::process::exit(0);
}

/// Returns a field of the process's status, in bytes.
fn status(field: &str) -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(field))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}
