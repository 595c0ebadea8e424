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
use indicatif::{ProgressBar, ProgressStyle};

use crate::harness::measure::{Effort, Scale};
use crate::harness::record::{Column, Message, Outcome, Record, Results, Row, SCHEMA, Settings};
use crate::harness::{Case, Contestant};

/// What to run.
#[derive(Debug)]
pub struct Plan {
    /// How much.
    pub scale: Scale,
    /// The rows.
    pub cases: Vec<Case>,
    /// The columns.
    pub contestants: Vec<Contestant>,
    /// The counting binary, if heap calls are to be counted.
    pub count: Option<PathBuf>,
    /// Whether to measure memory.
    pub memory: bool,
}

impl Plan {
    /// How hard to measure.
    #[must_use]
    pub fn effort(&self) -> Effort {
        Effort::of(self.scale)
    }

    /// How long a silent child is waited for.
    fn patience(&self) -> Duration {
        Duration::from_secs(if self.scale == Scale::Full { 120 } else { 30 })
    }

    fn scale_flag(&self) -> &'static str {
        match self.scale {
            Scale::Test => "test",
            Scale::Quick => "quick",
            Scale::Full => "full",
        }
    }
}

/// Runs everything that is planned.
///
/// # Errors
///
/// When no child can be started at all.
pub fn run(plan: &Plan) -> Result<Results> {
    let started = Instant::now();
    let host = bufadvise::measure::host::look();
    let bar = ProgressBar::new((plan.cases.len() * SHARE) as u64);
    bar.set_style(
        ProgressStyle::with_template("{bar:24} {percent:>3} %  {elapsed} of about {duration}  {msg}")
            .context("progress template")?,
    );
    bar.enable_steady_tick(Duration::from_millis(200));
    let mut cells = Vec::new();
    for (index, case) in plan.cases.iter().enumerate() {
        let base = (index * SHARE) as u64;
        bar.set_position(base);
        bar.set_message(case.to_string());
        let row = row(plan, case, &bar, base)?;
        for record in &row {
            if let Outcome::Wrong { .. } | Outcome::Crashed { .. } | Outcome::Hung { .. } = record.outcome {
                bar.println(format!("{case}: {} {}", record.contestant, record.outcome.explain()));
            }
        }
        cells.extend(row);
    }
    bar.finish_and_clear();
    let effort = plan.effort();
    let mut results = Results {
        schema: SCHEMA,
        host,
        settings: Settings {
            scale: plan.scale_flag().into(),
            layouts: effort.layouts,
            rounds: effort.rounds,
            run_ms: effort.run.as_secs_f64() * 1e3,
            samples: effort.samples,
        },
        contestants: plan.contestants.iter().map(column).collect(),
        cases: plan
            .cases
            .iter()
            .map(|case| Row {
                id: case.id(),
                workload: case.workload().into(),
                parameters: case.parameters(),
            })
            .collect(),
        cells,
        seconds: started.elapsed().as_secs_f64(),
    };
    results.compare();
    Ok(results)
}

/// Steps of the progress bar for one row.
const SHARE: usize = 100;

fn column(contestant: &Contestant) -> Column {
    Column {
        name: contestant.name.into(),
        kind: contestant.kind,
        of: contestant.setting_of.map(String::from),
        idiom: contestant.idiom.into(),
        counted: contestant.counted,
    }
}

/// All cells of one row.
fn row(plan: &Plan, case: &Case, bar: &ProgressBar, base: u64) -> Result<Vec<Record>> {
    let mode = if plan.scale == Scale::Test { "test" } else { "group" };
    let this = std::env::current_exe().context("cannot find this program")?;
    let mut records = Vec::new();
    let mut names: Vec<&str> = plan
        .contestants
        .iter()
        .filter(|contestant| contestant.takes_part(case))
        .map(|contestant| contestant.name)
        .collect();
    while !names.is_empty() {
        let child =
            Child { program: &this, mode, plan, case, names: &names, alone: false, times_only: false };
        let ended = child.run(&mut records, |done, of| {
            bar.set_position(base + (SHARE * 9 / 10 * done / of) as u64);
        })?;
        let End::Broken { culprit, outcome } = ended else { break };
        // It gets a second chance by itself; the others go on together.
        let alone = [culprit.as_str()];
        let child = Child { program: &this, mode, plan, case, names: &alone, alone: true, times_only: false };
        let again = if matches!(outcome, Outcome::Hung { .. }) {
            End::Broken { culprit: culprit.clone(), outcome }
        } else {
            child.run(&mut records, |_, _| {})?
        };
        if let End::Broken { culprit, outcome } = again {
            records.push(Record::new(&case.id(), &culprit, outcome));
        }
        names.retain(|name| !records.iter().any(|record| record.contestant == *name));
    }
    if plan.scale != Scale::Test {
        let timed: Vec<String> = records
            .iter()
            .filter(|record| record.timing().is_some())
            .map(|record| record.contestant.clone())
            .collect();
        let timed: Vec<&str> = timed.iter().map(String::as_str).collect();
        let together: Vec<String> = records
            .iter()
            .filter(|record| record.timing().is_some_and(|timing| !timing.alone))
            .map(|record| record.contestant.clone())
            .collect();
        let together: Vec<&str> = together.iter().map(String::as_str).collect();
        let effort = plan.effort();
        more_layouts(plan, case, &this, &together, &mut records, effort.layouts - 1)?;
        records.iter_mut().for_each(Record::forget_rounds);
        let extra = counts_and_memory(plan, case, &this, &timed)?;
        for found in extra {
            if let Some(record) = records.iter_mut().find(|record| record.contestant == found.contestant) {
                record.heap_calls = record.heap_calls.or(found.heap_calls);
                record.fallbacks = record.fallbacks.or(found.fallbacks);
                record.peak_bytes = record.peak_bytes.or(found.peak_bytes);
            }
        }
    }
    let place =
        |record: &Record| plan.contestants.iter().position(|contestant| contestant.name == record.contestant);
    records.sort_by_key(place);
    Ok(records)
}

/// Counts heap calls and measures memory: processes that time nothing, and so run beside each
/// other, unless they have threads that wait for one another.
///
/// A contestant that fails here has been timed all the same; only its numbers are missing.
fn counts_and_memory(plan: &Plan, case: &Case, program: &Path, timed: &[&str]) -> Result<Vec<Record>> {
    let child = |program, mode, names| Child {
        program,
        mode,
        plan,
        case,
        names,
        alone: mode == "memory",
        times_only: false,
    };
    let count = plan.count.iter().map(|program| child(program, "count", timed));
    let memory = timed.chunks(1).filter(|_| plan.memory).map(|name| child(program, "memory", name));
    let children = Mutex::new(count.chain(memory).collect::<Vec<_>>().into_iter());
    let next = || children.lock().unwrap_or_else(PoisonError::into_inner).next();
    let work = || {
        let mut records = Vec::new();
        while let Some(child) = next() {
            child.run(&mut records, |_, _| {})?;
        }
        anyhow::Ok(records)
    };
    let workers = thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let workers = if case.has_threads() { 1 } else { workers };
    thread::scope(|scope| {
        let workers: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        let mut all = Vec::new();
        for worker in workers {
            all.extend(worker.join().expect("starting processes does not panic")?);
        }
        Ok(all)
    })
}

/// Measures the row again in `layouts` further processes, and takes their rounds in. A contestant
/// that fails there keeps the rounds that it has.
fn more_layouts(
    plan: &Plan,
    case: &Case,
    program: &Path,
    names: &[&str],
    records: &mut [Record],
    layouts: usize,
) -> Result<()> {
    let mut more = Vec::new();
    for _ in 0..layouts {
        let child = Child { program, mode: "group", plan, case, names, alone: false, times_only: true };
        child.run(&mut more, |_, _| {})?;
    }
    for record in records {
        let Outcome::Timed(timing) = &mut record.outcome else { continue };
        let same = more.iter().filter(|other| other.contestant == record.contestant);
        let nanos: Vec<f64> = same.filter_map(Record::timing).flat_map(|other| other.nanos.clone()).collect();
        timing.merge(&nanos);
    }
    Ok(())
}

/// A process to be started.
struct Child<'a> {
    program: &'a Path,
    mode: &'a str,
    plan: &'a Plan,
    case: &'a Case,
    names: &'a [&'a str],
    alone: bool,
    times_only: bool,
}

/// How a child ended.
enum End {
    /// It said all that it had to say.
    Well,
    /// It did not.
    Broken { culprit: String, outcome: Outcome },
}

impl Child<'_> {
    fn run(&self, records: &mut Vec<Record>, mut progress: impl FnMut(usize, usize)) -> Result<End> {
        let mut command = Command::new(self.program);
        command.args([self.mode, "--case", &self.case.id(), "--scale", self.plan.scale_flag()]);
        command.args(self.names.iter().flat_map(|name| ["--contestant", name]));
        if self.alone && self.mode == "group" {
            command.arg("--alone");
        }
        if self.times_only {
            command.arg("--times-only");
        }
        let mut process = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .with_context(|| format!("cannot start {}", self.program.display()))?;
        let output = process.stdout.take().context("the child's output is piped")?;
        let (sender, lines) = mpsc::channel();
        let reader = thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        let mut culprit = self.names.first().copied().unwrap_or_default().to_owned();
        let patience = self.plan.patience();
        let broken = loop {
            match lines.recv_timeout(patience) {
                Ok(line) => match serde_json::from_str(&line) {
                    Ok(Message::At { contestant }) => culprit = contestant,
                    Ok(Message::Round { done, of }) => progress(done, of),
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
        Ok(match broken {
            None => End::Well,
            Some(outcome) => End::Broken { culprit, outcome },
        })
    }
}
