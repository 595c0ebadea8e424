//! What runs in child processes: rounds of some candidates in turn, or the counting replay of one.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use buftrace::{EventKind, Trace};

use super::candidate::{Candidate, sweep};
use super::exact::Exact;
use super::play::{Run, Stage};
use super::record::Said;
use super::script::{Script, workers};
use super::traffic::{MOST_EVENTS, Needs, Traffic};
use crate::harness::measure::tail_of;
use crate::harness::process::settle_heap;

/// What a child process is told.
#[derive(Debug, clap::Args)]
pub struct Job {
    /// The trace's file.
    #[arg(long)]
    trace: PathBuf,
    /// The first so many events of it.
    #[arg(long)]
    events: usize,
    /// Who takes part.
    #[arg(long = "candidate", required = true)]
    candidates: Vec<String>,
    /// Rounds; without, requests are counted instead of timed.
    #[arg(long)]
    rounds: Option<usize>,
    /// Where the counting replay runs.
    #[arg(long, default_value_t = 0)]
    processor: usize,
    /// Replays in which single operations are timed.
    #[arg(long, default_value_t = 0)]
    samples: usize,
    /// Write and read all bytes once, before anything is timed.
    #[arg(long)]
    all_bytes: bool,
}

/// Reads a trace, up to as many events, and says how many acquires there are in all of it.
///
/// # Errors
///
/// When there is no such file, it is no trace, or no thread asks for a buffer in it.
pub(crate) fn read(path: &Path, events: usize) -> Result<(Trace, Traffic, usize)> {
    let file = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    let trace = Trace::decode(&file).with_context(|| format!("cannot decode {}", path.display()))?;
    let acquires = trace.events().iter().filter(|event| matches!(event.kind, EventKind::Acquire { .. }));
    let acquires = acquires.count();
    let trace = trace.prefix(events.min(MOST_EVENTS));
    let traffic = Traffic::new(&trace);
    ensure!(!traffic.buffers.is_empty(), "{}: no thread asks for a buffer in this trace", path.display());
    Ok((trace, traffic, acquires))
}

fn say(said: &Said) -> Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{}", serde_json::to_string(said)?)?;
    out.flush().context("the parent is gone")
}

/// Workers for such traffic on this machine.
pub(crate) fn workers_here(traffic: &Traffic) -> usize {
    workers(traffic, std::thread::available_parallelism().map_or(1, usize::from))
}

impl Job {
    /// Does it.
    ///
    /// # Errors
    ///
    /// When a candidate cannot be built, or loses bytes.
    pub fn run(self) -> Result<()> {
        // A worker that is gone would be waited for: better an end with its words.
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            usual(panic);
            std::process::exit(101);
        }));
        settle_heap();
        let (_, traffic, _) = read(&self.trace, self.events)?;
        let needs = Needs::of(&traffic);
        let all = sweep(&needs).0;
        let find = |id: &String| {
            all.iter()
                .find(|candidate| candidate.id() == *id)
                .copied()
                .with_context(|| format!("no candidate {id}"))
        };
        let candidates: Vec<Candidate> = self.candidates.iter().map(find).collect::<Result<_>>()?;
        match self.rounds {
            Some(rounds) => self.time(&traffic, &candidates, rounds),
            None => candidates.iter().try_for_each(|candidate| self.count(&traffic, &needs, candidate)),
        }
    }

    fn time(&self, traffic: &Traffic, candidates: &[Candidate], rounds: usize) -> Result<()> {
        let script = Script::new(traffic, workers_here(traffic));
        let stage = Stage::new(script, candidates)?;
        let of = |index: usize| move || format!("{} failed", candidates[index]);
        for index in 0..candidates.len() {
            // Warms up, too.
            let run = if self.all_bytes { Run::Check } else { Run::Time };
            stage.run(index, run).with_context(of(index))?;
        }
        let mut times: Vec<Vec<Vec<f64>>> = vec![Vec::new(); candidates.len()];
        for round in 0..rounds {
            for turn in 0..candidates.len() {
                let candidate = (round + turn) % candidates.len();
                times[candidate].push(stage.nanos(candidate).with_context(of(candidate))?);
                say(&Said::Round)?;
            }
        }
        for (candidate, times) in times.iter().enumerate().filter(|(_, times)| !times.is_empty()) {
            say(&Said::Time { candidate, nanos: stage.per_request(times) })?;
        }
        let mut samples: Vec<Vec<u32>> = vec![Vec::new(); candidates.len()];
        for _ in 0..self.samples {
            for (index, samples) in samples.iter_mut().enumerate() {
                samples.extend(stage.samples(index).with_context(of(index))?);
            }
        }
        for (candidate, samples) in samples.into_iter().enumerate() {
            if let Some(tail) = tail_of(samples) {
                say(&Said::Tail { candidate, tail })?;
            }
        }
        Ok(())
    }

    fn count(&self, traffic: &Traffic, needs: &Needs, candidate: &Candidate) -> Result<()> {
        let exact = Exact { traffic, processor: self.processor };
        let counted = candidate.accept(needs.owners, exact);
        let counted = counted.with_context(|| format!("cannot build {candidate}"))?;
        ensure!(counted.wrong == 0, "{candidate}: {} buffers came back with wrong bytes", counted.wrong);
        say(&Said::Counted { counted })
    }
}
