//! The work of child processes: rounds of some candidates in turn, or the counting replay of one.

use std::io::{self, Write};
use std::path::Path;

use anyhow::{Context, Result, ensure};
use buftrace::{EventKind, Profile, Trace};

use super::candidate::Candidate;
use super::entry::Said;
use super::replay_exact::Exact;
use super::replay_timed::Stage;
use super::schedule::{Schedule, workers};
use super::traffic::{MOST_EVENTS, Traffic};
use super::traffic_pipe;
use crate::input::{self, Input};
use crate::measure::process::settle_heap;

/// What a child process is told, besides the traffic on its standard input.
#[derive(Debug, clap::Args)]
pub(crate) struct Job {
    /// Takes part.
    #[arg(long = "candidate", required = true)]
    candidates: Vec<Candidate>,
    /// Rounds; without, requests are counted instead of timed.
    #[arg(long)]
    rounds: Option<usize>,
    /// The processor that the counting replay runs on.
    #[arg(long, default_value_t = 0)]
    processor: usize,
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
        let traffic = traffic_pipe::read(io::stdin().lock())?;
        match self.rounds {
            Some(rounds) => time(&traffic, &self.candidates, rounds),
            None => self.candidates.iter().try_for_each(|candidate| self.count(&traffic, candidate)),
        }
    }

    fn count(&self, traffic: &Traffic, candidate: &Candidate) -> Result<()> {
        let exact = Exact { traffic, processor: self.processor };
        let replayed = candidate.accept(traffic.owners().len(), exact);
        let replayed = replayed.with_context(|| format!("cannot build {candidate}"))?;
        let wrong = replayed.counted.wrong;
        ensure!(wrong == 0, "{candidate}: {wrong} buffers came back with wrong bytes");
        say(&Said::Counted(replayed))
    }
}

fn time(traffic: &Traffic, candidates: &[Candidate], rounds: usize) -> Result<()> {
    let stage = Stage::new(Schedule::new(traffic, workers_here(traffic)), candidates)?;
    let nanos = |index: usize| stage.nanos(index).with_context(|| format!("{} failed", candidates[index]));
    for index in 0..candidates.len() {
        // Warms up.
        nanos(index)?;
    }
    let mut times: Vec<Vec<Vec<f64>>> = vec![Vec::new(); candidates.len()];
    for round in 0..rounds {
        for turn in 0..candidates.len() {
            let candidate = (round + turn) % candidates.len();
            times[candidate].push(nanos(candidate)?);
        }
    }
    for (candidate, times) in times.iter().enumerate() {
        say(&Said::Time { candidate, nanos: stage.per_request(times) })?;
    }
    Ok(())
}
