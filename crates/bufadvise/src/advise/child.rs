//! The work of child processes: rounds of some candidates in turn, or the counting replay of one.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use buftrace::{EventKind, Profile, Trace};

use super::candidate::Candidate;
use super::exact::{Exact, Replayed};
use super::handed;
use super::play::{Run, Stage};
use super::record::Said;
use super::script::{Script, workers};
use super::traffic::{MOST_EVENTS, Traffic};
use crate::input::{self, Input};
use crate::measure::process::settle_heap;
use crate::measure::tail::tail_of;

/// What a child process is told.
#[derive(Debug, clap::Args)]
pub(crate) struct Job {
    /// The file with the traffic.
    #[arg(long)]
    traffic: PathBuf,
    /// Takes part.
    #[arg(long = "candidate", required = true)]
    candidates: Vec<Candidate>,
    /// Rounds; without, requests are counted instead of timed.
    #[arg(long)]
    rounds: Option<usize>,
    /// The processor that the counting replay runs on.
    #[arg(long, default_value_t = 0)]
    processor: usize,
    /// Replays in which single operations are timed.
    #[arg(long, default_value_t = 0)]
    samples: usize,
    /// Write and read all bytes once, before anything is timed.
    #[arg(long)]
    all_bytes: bool,
}

/// What is in a file.
pub(crate) struct Read {
    /// As many of its events as are replayed.
    pub(crate) trace: Trace,
    pub(crate) traffic: Traffic,
    /// Acquires in all of it.
    pub(crate) acquires: usize,
    /// The recording that the trace was made of, if the file has one.
    pub(crate) heap: Option<Profile>,
}

impl Read {
    /// Returns whether most requests of a heap recording are for zeros.
    pub(crate) fn requests_zeros(&self) -> bool {
        let sites = self.heap.iter().flat_map(|heap| heap.sites());
        let (zeroed, all) =
            sites.fold((0.0, 0.0), |(zeroed, all), site| (zeroed + site.zeroed, all + site.count));
        zeroed > all / 2.0
    }
}

/// Reads a trace, up to as many events.
///
/// # Errors
///
/// When there is no such file, it is no trace, or no thread asks for a buffer in it.
pub(crate) fn read(path: &Path, events: usize) -> Result<Read> {
    let Input { trace, heap } = input::read(path)?;
    let acquires = trace.events().iter().filter(|event| matches!(event.kind, EventKind::Acquire { .. }));
    let acquires = acquires.count();
    let trace = trace.prefix(events.min(MOST_EVENTS));
    let traffic = Traffic::new(&trace);
    ensure!(!traffic.buffers.is_empty(), "{}: no thread asks for a buffer in this trace", path.display());
    Ok(Read { trace, traffic, acquires, heap })
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
    pub(crate) fn run(self) -> Result<()> {
        // A worker that is gone would be waited for: better an end with its words.
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            usual(panic);
            std::process::exit(101);
        }));
        if self.rounds.is_some() {
            settle_heap();
        }
        let traffic = handed::read(&self.traffic)?;
        match self.rounds {
            Some(rounds) => self.time(&traffic, &self.candidates, rounds),
            None => self.candidates.iter().try_for_each(|candidate| self.count(&traffic, candidate)),
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
            say(&Said::Warm)?;
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
                say(&Said::Warm)?;
            }
        }
        for (candidate, samples) in samples.into_iter().enumerate() {
            if let Some(tail) = tail_of(samples) {
                say(&Said::Tail { candidate, tail })?;
            }
        }
        Ok(())
    }

    fn count(&self, traffic: &Traffic, candidate: &Candidate) -> Result<()> {
        let exact = Exact { traffic, processor: self.processor };
        let replayed = candidate.accept(traffic.owners().len(), exact);
        let Replayed { counted, bytes } = replayed.with_context(|| format!("cannot build {candidate}"))?;
        ensure!(counted.wrong == 0, "{candidate}: {} buffers came back with wrong bytes", counted.wrong);
        say(&Said::Counted { counted, bytes })
    }
}
