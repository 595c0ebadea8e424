//! What runs in a child process: one row of the matrix, for some engines. Results go to
//! standard output, a line each.

#![allow(clippy::result_large_err, reason = "an outcome is made once a cell, and kept")]

use std::cell::RefCell;
use std::fs;
use std::io::{self, Write};
use std::panic::{self, AssertUnwindSafe};
use std::time::Instant;

use serde::{Deserialize, Serialize};

use crate::harness::measure::{Effort, Runner, Scale, rounds, tails};
use crate::harness::process::settle_heap;
use crate::harness::record::{Message, Outcome, Record, Timing};
use crate::harness::{Case, Cell, Engine};

/// What a child process has to do.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Job {
    /// What it finds out.
    pub what: What,
    /// The row.
    pub case: Case,
    /// The names of the columns.
    pub engines: Vec<String>,
    /// How much.
    pub scale: Scale,
}

/// What is found out about a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum What {
    /// Whether the bytes are right. Each cell runs once.
    Test,
    /// Times: the engines take turns in each round, and a different one begins each time.
    Times {
        /// Whether single operations are timed too.
        tails: bool,
    },
    /// Heap calls and fallbacks.
    Counts,
    /// By how much resident memory grows while one cell is built and run.
    Memory,
}

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

fn at(engine: &str) {
    say(&Message::At { engine: engine.into() });
}

fn found(record: Record) {
    say(&Message::Cell(Box::new(record)));
}

/// Runs `work`; a panic in it becomes a sentence.
fn guarded<R>(work: impl FnOnce() -> R) -> Result<R, Outcome> {
    panic::catch_unwind(AssertUnwindSafe(work)).map_err(|payload| {
        let how = LAST_PANIC.take().or_else(|| payload.downcast_ref::<String>().cloned());
        Outcome::Crashed { how: how.unwrap_or_else(|| "panicked on another thread".into()) }
    })
}

/// Does what the parent told, and ends the process without dropping anything: some peers wait in their
/// drop. `heap_calls` reads the counter of a counting global allocator.
pub fn perform(job: &Job, engines: &[Engine], heap_calls: fn() -> u64) -> ! {
    // Panics are for the report, and not printed.
    panic::set_hook(Box::new(|panic| {
        LAST_PANIC.set(Some(panic.to_string().replace('\n', " ")));
    }));
    settle_heap();
    let (case, effort) = (&job.case, Effort::of(job.scale));
    if let What::Times { tails } = job.what {
        let samples = if tails { effort.samples } else { 0 };
        times(case, engines, &Effort { samples, ..effort });
    } else {
        for engine in engines {
            at(engine.name);
            let mut record = Record::new(&case.id(), engine.name, Outcome::Checked);
            // Whoever fails at numbers has been timed all the same.
            let _ = match job.what {
                What::Counts => guarded(|| count(case, engine, effort.counted, heap_calls, &mut record)),
                What::Memory => guarded(|| memory(case, engine, &effort, &mut record)),
                _ => guarded(|| test(case, engine, &mut record)),
            };
            found(record);
        }
    }
    std::process::exit(0);
}

/// Builds and checks a cell.
fn ready(engine: &Engine, case: &Case) -> Result<Box<dyn Cell>, Outcome> {
    at(engine.name);
    guarded(|| match engine.cell(case) {
        Err(reason) => Err(Outcome::Unsupported { reason: reason.0 }),
        Ok(mut cell) => match cell.check() {
            Ok(()) => Ok(cell),
            Err(what) => Err(Outcome::Wrong { what }),
        },
    })?
}

fn test(case: &Case, engine: &Engine, record: &mut Record) {
    let run = |mut cell: Box<dyn Cell>| guarded(|| cell.run(2));
    if let Err(outcome) = ready(engine, case).and_then(run) {
        record.outcome = outcome;
    }
}

/// Checks and times one row.
fn times(case: &Case, engines: &[Engine], effort: &Effort) {
    let lost = |name: &str, outcome| found(Record::new(&case.id(), name, outcome));
    let mut cells = Vec::new();
    for engine in engines {
        match ready(engine, case) {
            Ok(cell) => cells.push((engine.name, cell)),
            Err(outcome) => lost(engine.name, outcome),
        }
    }
    let mut runners = Vec::new();
    for (name, cell) in &mut cells {
        at(name);
        match guarded(|| Runner::calibrate(cell.as_mut(), effort.run)) {
            Ok(runner) => runners.push((*name, runner)),
            Err(outcome) => lost(name, outcome),
        }
    }
    let (mut names, mut runners): (Vec<_>, Vec<_>) = runners.into_iter().unzip();
    let rounds = rounds(effort, &runners);
    for round in 0..rounds {
        for turn in 0..runners.len() {
            let index = (round + turn) % runners.len();
            at(names[index]);
            if let Err(outcome) = guarded(|| runners[index].round()) {
                lost(names[index], outcome);
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
    for (((name, cell), (nanos, operations)), tail) in names.iter().zip(active).zip(times).zip(tails) {
        let mut timing = Timing {
            operations,
            bytes: cell.bytes().map(|bytes| bytes as f64 / cell.operations() as f64),
            tail,
            ..Timing::default()
        };
        timing.merge(&nanos);
        found(Record::new(&case.id(), name, Outcome::Timed(timing)));
    }
}

/// Counts heap calls and fallbacks, in at least `operations` operations.
fn count(case: &Case, engine: &Engine, operations: u64, heap_calls: fn() -> u64, record: &mut Record) {
    let Ok(mut cell) = engine.cell(case) else { return };
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
    // Steady state: the first run fills caches and lists. A cost that comes once a run, such as the
    // buffers that are held all the while, goes out with the difference of two runs.
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
    record.heap_calls = engine.counted.then(|| calls / operations);
    record.fallbacks = fallbacks.map(|fallbacks| fallbacks / operations);
}

/// Measures memory, for as long as a run takes to reach the steady state.
fn memory(case: &Case, engine: &Engine, effort: &Effort, record: &mut Record) {
    // Forgets the peak so far; where that is not allowed the peak is that of the start, which is
    // small.
    let _ = fs::write("/proc/self/clear_refs", "5");
    let before = status("VmRSS:");
    let Ok(mut cell) = engine.cell(case) else { return };
    let start = Instant::now();
    cell.run(1);
    while start.elapsed() < effort.memory {
        cell.run(4);
    }
    let grown = before.zip(status("VmHWM:"));
    record.peak_bytes = grown.map(|(before, peak)| peak.saturating_sub(before));
}

/// Returns a field of the process's status, in bytes.
fn status(field: &str) -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(field))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}
