//! Runs the matrix: a child process for each row, watched, and started again without whoever took
//! it down.

use std::io::{BufRead, BufReader};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use buftrials::run::name_of;
use indicatif::{ProgressBar, ProgressStyle};

use crate::harness::child::{Job, What};
use crate::harness::measure::{Effort, Scale};
use crate::harness::record::{Column, Message, Outcome, Record, Results, Row, SCHEMA, Settings};
use crate::harness::{Case, Engine};

/// What to run.
#[derive(Debug)]
pub struct Plan {
    /// How much.
    pub scale: Scale,
    /// The rows.
    pub cases: Vec<Case>,
    /// The columns.
    pub engines: Vec<Engine>,
    /// The counting binary, if heap calls are to be counted.
    pub count: Option<PathBuf>,
    /// Whether to measure memory.
    pub memory: bool,
}

/// Steps of the progress bar for one row.
const SHARE: u64 = 100;

/// Runs everything that is planned.
///
/// # Errors
///
/// When no child can be started at all.
pub fn run(plan: &Plan) -> Result<Results> {
    let started = Instant::now();
    let host = bufadvise::measure::host::look();
    let program = std::env::current_exe().context("cannot find this program")?;
    let bar = ProgressBar::new(plan.cases.len() as u64 * SHARE);
    bar.set_style(
        ProgressStyle::with_template("{bar:24} {percent:>3} %  {elapsed} of about {duration}  {msg}")
            .context("progress template")?,
    );
    bar.enable_steady_tick(Duration::from_millis(200));
    let mut cells = Vec::new();
    for (base, case) in (0..).step_by(SHARE as usize).zip(&plan.cases) {
        bar.set_position(base);
        bar.set_message(case.to_string());
        let mut records = Rows { plan, case, program: &program }.run(&|done, of| {
            bar.set_position(base + SHARE * 9 / 10 * done / of);
        })?;
        for record in records.iter().filter(|record| record.outcome.is_failure()) {
            bar.println(format!("{case}: {} {}", record.engine, record.outcome.explain()));
        }
        let place = |record: &Record| plan.engines.iter().position(|one| one.name == record.engine);
        records.sort_by_key(place);
        cells.extend(records);
    }
    bar.finish_and_clear();
    let effort = Effort::of(plan.scale);
    let row =
        |case: &Case| Row { id: case.id(), workload: case.workload().into(), parameters: case.parameters() };
    let column = |engine: &Engine| Column {
        name: engine.name.into(),
        kind: engine.kind,
        of: engine.setting_of.map(String::from),
        idiom: engine.idiom.into(),
    };
    let mut results = Results {
        schema: SCHEMA,
        host,
        settings: Settings {
            scale: name_of(&plan.scale),
            layouts: effort.layouts,
            rounds: effort.rounds,
            run_ms: effort.run.as_secs_f64() * 1e3,
            samples: effort.samples,
        },
        engines: plan.engines.iter().map(column).collect(),
        cases: plan.cases.iter().map(row).collect(),
        cells,
        seconds: started.elapsed().as_secs_f64(),
    };
    results.compare();
    Ok(results)
}

/// Measures the times of one row.
///
/// # Errors
///
/// When no child can be started.
pub fn row(case: &Case, engines: Vec<Engine>, scale: Scale) -> Result<Vec<Record>> {
    let plan = Plan { scale, cases: Vec::new(), engines, count: None, memory: false };
    let program = std::env::current_exe().context("cannot find this program")?;
    Rows { plan: &plan, case, program: &program }.run(UNSEEN)
}

/// One row.
#[derive(Clone, Copy)]
struct Rows<'a> {
    plan: &'a Plan,
    case: &'a Case,
    program: &'a Path,
}

/// How far a child is: rounds that are done, of how many.
type Progress<'a> = &'a dyn Fn(u64, u64);
/// Nobody looks.
const UNSEEN: Progress<'static> = &|_, _| {};

/// An engine that took its child down, and how.
type Broken = Option<(String, Outcome)>;

impl Rows<'_> {
    /// All cells.
    fn run(self, progress: Progress<'_>) -> Result<Vec<Record>> {
        let is_test = self.plan.scale == Scale::Test;
        let what = if is_test { What::Test } else { What::Times { tails: true } };
        let engines = self.plan.engines.iter().filter(|engine| engine.takes_part(self.case));
        let mut names: Vec<&str> = engines.map(|engine| engine.name).collect();
        let mut records = Vec::new();
        while !names.is_empty() {
            let Some((culprit, outcome)) = self.child(self.program, what, &names, &mut records, progress)?
            else {
                break;
            };
            // The others go on together.
            records.push(Record::new(&self.case.id(), &culprit, outcome));
            names.retain(|name| !records.iter().any(|record| record.engine == *name));
        }
        if !is_test {
            self.more_layouts(&mut records)?;
            self.counts_and_memory(&mut records)?;
        }
        Ok(records)
    }

    /// Measures the row again in further processes, and takes their rounds in. An engine that fails
    /// there keeps the rounds that it has.
    fn more_layouts(self, records: &mut [Record]) -> Result<()> {
        let timed = records.iter().filter(|record| record.timing().is_some());
        let names: Vec<&str> = timed.map(|record| record.engine.as_str()).collect();
        let mut more = Vec::new();
        for _ in 1..Effort::of(self.plan.scale).layouts {
            self.child(self.program, What::Times { tails: false }, &names, &mut more, UNSEEN)?;
        }
        for record in records {
            let Outcome::Timed(timing) = &mut record.outcome else { continue };
            let same = more.iter().filter(|other| other.engine == record.engine);
            let nanos = same.filter_map(Record::timing).flat_map(|other| &other.nanos);
            timing.merge(&nanos.copied().collect::<Vec<f64>>());
            timing.nanos = Vec::new();
        }
        Ok(())
    }

    /// Counts heap calls and measures memory: processes that time nothing, and so run beside each
    /// other, unless they have threads that wait for one another.
    fn counts_and_memory(self, records: &mut [Record]) -> Result<()> {
        let timed = records.iter().filter(|record| record.timing().is_some());
        let names: Vec<&str> = timed.map(|record| record.engine.as_str()).collect();
        let count = self.plan.count.iter().map(|program| (program.as_path(), What::Counts, names.as_slice()));
        let memory = names.chunks(1).filter(|_| self.plan.memory);
        let memory = memory.map(|name| (self.program, What::Memory, name));
        let children = Mutex::new(count.chain(memory).collect::<Vec<_>>().into_iter());
        let next = || children.lock().unwrap_or_else(PoisonError::into_inner).next();
        let work = || {
            let mut found = Vec::new();
            while let Some((program, what, names)) = next() {
                self.child(program, what, names, &mut found, UNSEEN)?;
            }
            anyhow::Ok(found)
        };
        let workers = thread::available_parallelism().map_or(1, NonZeroUsize::get);
        let workers = if self.case.has_threads() { 1 } else { workers };
        let found: Vec<Record> = thread::scope(|scope| {
            let workers: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
            let join = |worker: thread::ScopedJoinHandle<'_, _>| {
                worker.join().expect("starting processes does not panic")
            };
            workers.into_iter().map(join).collect::<Result<Vec<_>>>()
        })?
        .concat();
        for record in records {
            for found in found.iter().filter(|found| found.engine == record.engine) {
                record.heap_calls = record.heap_calls.or(found.heap_calls);
                record.fallbacks = record.fallbacks.or(found.fallbacks);
                record.peak_bytes = record.peak_bytes.or(found.peak_bytes);
            }
        }
        Ok(())
    }

    /// Runs a child to its end, however that comes.
    fn child(
        self,
        program: &Path,
        what: What,
        names: &[&str],
        records: &mut Vec<Record>,
        progress: Progress<'_>,
    ) -> Result<Broken> {
        let engines: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut culprit = engines.first().cloned().unwrap_or_default();
        let job = Job { what, case: self.case.clone(), engines, scale: self.plan.scale };
        let mut process = Command::new(program)
            .args(["job", &serde_json::to_string(&job)?])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .with_context(|| format!("cannot start {}", program.display()))?;
        let output = process.stdout.take().context("the child's output is piped")?;
        let (sender, lines) = mpsc::channel();
        let reader = thread::spawn(move || {
            let lines = BufReader::new(output).lines().map_while(Result::ok);
            // It ends with the child, or when nobody listens any more.
            let _ = lines.map(|line| sender.send(line)).find(Result::is_err);
        });
        let patience = Duration::from_secs(if self.plan.scale == Scale::Full { 120 } else { 30 });
        let broken = loop {
            match lines.recv_timeout(patience) {
                Ok(line) => match serde_json::from_str(&line) {
                    Ok(Message::At { engine }) => culprit = engine,
                    Ok(Message::Round { done, of }) => progress(done as u64, of as u64),
                    Ok(Message::Cell(record)) => records.push(*record),
                    // Not ours: a peer prints.
                    Err(_) => {}
                },
                Err(RecvTimeoutError::Timeout) => {
                    // It may have ended by itself in this very moment.
                    let _ = process.kill();
                    process.wait().context("cannot wait for the child")?;
                    break Some(Outcome::Hung { seconds: patience.as_secs_f64() });
                }
                Err(RecvTimeoutError::Disconnected) => {
                    let status = process.wait().context("cannot wait for the child")?;
                    break (!status.success()).then(|| Outcome::Crashed { how: status.to_string() });
                }
            }
        };
        // The pipe is closed by now.
        let _ = reader.join();
        Ok(broken.map(|outcome| (culprit, outcome)))
    }
}
