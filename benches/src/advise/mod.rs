//! `advise`: replays a recorded trace on every strategy, with a small sweep of settings each, and says which to take.
//!
//! - `traffic`, `candidate`: what the trace asks, and who is tried with which settings.
//! - `exact`: what each refuses and how much memory it takes, in the recorded order.
//! - `lives`, `script`, `play`: the replay that is timed. `source`, `marks`: what both replays ask, and write.
//! - `stages`, `child`: who is timed how often, in which processes.
//! - `choice`: the rule. `record`, `words`, `picture`: the advice.

pub mod candidate;
mod child;
pub mod choice;
mod exact;
mod lives;
mod marks;
mod picture;
mod play;
mod record;
mod script;
mod source;
mod stages;
mod traffic;
mod words;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result, ensure};

pub use child::Job;
pub use exact::Counted;
pub use record::{Advice, Check, Entry, SCHEMA, Times};
pub use source::Refused;
pub use traffic::Needs;

use choice::{CLOSE, Entrant, choose};
use script::Script;
use stages::{Effort, Parent, Size, summary};
use traffic::MOST_EVENTS;

/// Events that `--test` replays.
const TEST_EVENTS: usize = 5000;
/// What `--check` does with all candidates.
const CHECK: Size = Size { processes: 15, rounds: 3 };

/// Says which strategy fits a trace, with which settings.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// The recorded trace: a file that `buftrace`'s recorder wrote
    trace: PathBuf,
    /// The folder that `advice.json` and `advice.svg` are written to
    #[arg(long, default_value = "target/advise", value_name = "DIR")]
    out: PathBuf,
    /// Print the advice as JSON
    #[arg(long)]
    json: bool,
    /// The seconds that the command may take, about, without the check
    #[arg(long, default_value_t = 75, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=3600))]
    seconds: u32,
    /// Replay all candidates longer afterwards, and fail if the choice is not within 5 % of the best
    #[arg(long, conflicts_with = "test")]
    check: bool,
    /// Replay a few times only, to check that the command runs
    #[arg(long)]
    test: bool,
}

impl Options {
    /// Does it, and prints the advice.
    ///
    /// # Errors
    ///
    /// When the trace cannot be read, a candidate fails, the advice cannot be written, or the check fails.
    pub fn run(&self) -> Result<()> {
        let program = std::env::current_exe().context("cannot find this program")?;
        let (advice, parts) = self.advise(program)?;
        fs::create_dir_all(&self.out).with_context(|| format!("cannot make {}", self.out.display()))?;
        let write = |name: &str, text: &str| {
            let path = self.out.join(name);
            fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
        };
        let json = serde_json::to_string_pretty(&advice)? + "\n";
        write("advice.json", &json)?;
        let picture = picture::draw(&advice).context("there is nothing to draw")?;
        write("advice.svg", &picture)?;
        if self.json {
            print!("{json}");
        } else {
            print!("{}", words::text(&advice));
            if let Some(check) = &advice.check {
                println!("\n{}", words::check(&advice, check));
            }
            println!("\n{:.0} s; {}, {}", advice.seconds, parts.0.display(), parts.1.display());
        }
        if let Some(check) = &advice.check {
            ensure!(check.ratio <= CLOSE, "the first choice is not within 5 % of the best");
        }
        Ok(())
    }

    /// Measures and chooses. With the advice come the names of the files that it belongs into.
    fn advise(&self, program: PathBuf) -> Result<(Advice, (PathBuf, PathBuf))> {
        let started = Instant::now();
        let events = if self.test { TEST_EVENTS } else { MOST_EVENTS };
        let (trace, traffic, acquires) = child::read(&self.trace, events)?;
        let needs = Needs::of(&traffic);
        let (candidates, left_out) = candidate::sweep(&needs);
        let effort = if self.test { Effort::test() } else { Effort::usual(f64::from(self.seconds)) };
        let parent = Parent {
            program,
            trace: &self.trace,
            events,
            traffic: &traffic,
            candidates: &candidates,
            bar: stages::bar(self.test)?,
        };
        let outcome = parent.run(&effort)?;
        let entrants: Vec<Entrant> = outcome
            .last
            .iter()
            .map(|(index, times)| Entrant {
                times: times.clone(),
                bytes: outcome.entries[*index].bytes(),
                serves_all: outcome.entries[*index].serves_all(),
            })
            .collect();
        let mut choice = choose(&entrants).context("no candidate served all requests")?;
        choice.renumber(|place| outcome.last[place].0);
        let seconds = started.elapsed().as_secs_f64();
        let script = Script::new(&traffic, child::workers_here(&traffic));
        let summary = trace.summary();
        let advice = Advice {
            schema: SCHEMA,
            trace: self.trace.display().to_string(),
            name: name_of(&trace.meta().name, &self.trace),
            needs,
            acquires,
            replayed: traffic.buffers.len(),
            threads: traffic.threads,
            workers: script.parts.len(),
            crossing: script.crossings as f64 / traffic.buffers.len() as f64,
            crossing_kept: script.crossings_kept as f64 / script.crossings.max(1) as f64,
            host: crate::harness::host::look(),
            left_out,
            code: candidates[choice.pick].code(),
            why: words::why(&summary, &needs, script.parts.len(), &outcome.entries, &choice),
            check: self.check.then(|| check(&parent, &outcome.entries, choice.pick)).transpose()?,
            entries: outcome.entries,
            choice,
            seconds,
        };
        parent.bar.finish_and_clear();
        Ok((advice, (self.out.join("advice.json"), self.out.join("advice.svg"))))
    }
}

/// The trace's own name, or its file's.
fn name_of(name: &str, file: &Path) -> String {
    if name.is_empty() {
        file.file_stem().unwrap_or_default().to_string_lossy().into_owned()
    } else {
        name.into()
    }
}

/// Replays all candidates, none of them less often than others.
fn check(parent: &Parent<'_>, entries: &[Entry], pick: usize) -> Result<Check> {
    let all: Vec<usize> = (0..entries.len()).collect();
    let times = parent.time(&all, CHECK, "check: all candidates")?;
    let medians: Vec<f64> = times.iter().map(|times| summary(times).median).collect();
    let best = all
        .into_iter()
        .filter(|one| entries[*one].serves_all())
        .min_by(|one, other| medians[*one].total_cmp(&medians[*other]))
        .context("no candidate served all requests")?;
    let ratio = medians[pick] / medians[best];
    Ok(Check { medians, processes: CHECK.processes, best, ratio })
}
