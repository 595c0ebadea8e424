//! `check`: whether settings still fit a trace.

use std::path::PathBuf;

use anyhow::{Context as _, Result};

use super::analysis::{Analysis, bytes};
use super::candidate::Candidate;
use super::choice::Prices;
use super::entry::Entry;
use super::measuring;
use super::record::Advice;
use crate::answer::Answer;
use crate::drawing::number::{exact_memory, percent, processor, time};
use crate::print;

/// Memory of settings that fit is at most this many times that of the choice for the trace,
const MOST_MEMORY: f64 = 1.5;
/// or no more than this above it.
const SPARE_BYTES: u64 = 1 << 20;

/// Says whether settings still fit a trace: requests, time, memory. Exit code 0 if they do.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// The recorded trace: a file that `buftrace`'s recorder wrote
    file: PathBuf,
    /// Settings such as `slot:capacity=64KiB,slots=16`, as `advise --emit text` prints them
    settings: Candidate,
    /// The seconds that the command may take, about
    #[arg(long, default_value_t = 30, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=3600))]
    seconds: u32,
    /// Take nothing that needs more memory, such as 16M
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    memory_limit: Option<u64>,
    /// Replay a few times only, to check that the command runs: times mean nothing then
    #[arg(long)]
    test: bool,
}

/// One thing that was looked at.
struct Checked {
    what: &'static str,
    holds: bool,
    found: String,
}

impl Options {
    /// Measures the settings, and prints what was found.
    ///
    /// # Errors
    ///
    /// When the trace cannot be read, or a candidate fails.
    pub(crate) fn run(&self) -> Result<Answer> {
        let analysis = Analysis {
            file: &self.file,
            memory_limit: self.memory_limit,
            seconds: self.seconds,
            is_test: self.test,
            given: Some(self.settings),
            sites: 0,
            frames: 0,
        };
        let Some(advice) = measuring::advise(&analysis)? else { return Ok(Answer::No) };
        let settings = advice.entries.iter().find(|entry| entry.candidate == self.settings);
        let settings = settings.context("the settings were not replayed")?;
        let choice = advice.pick();
        let checks = [
            requests(settings),
            speed(&advice, settings, self.test),
            memory(settings, choice, &advice.prices),
        ];
        let verdict = |fits| if fits { "fits" } else { "does not fit" };
        for Checked { what, holds, found } in &checks {
            print::line(format_args!("{what}: {}. {found}", verdict(*holds)))?;
        }
        let fits = checks.iter().all(|check| check.holds);
        let choice = if choice.candidate == self.settings {
            "It is what the rule chooses for this trace.".to_owned()
        } else {
            format!("The rule chooses `{}` for this trace.", choice.candidate)
        };
        print::line(format_args!("`{}` {} this trace. {choice}", self.settings, verdict(fits)))?;
        Ok(if fits { Answer::Yes } else { Answer::No })
    }
}

fn requests(settings: &Entry) -> Checked {
    let (once, twice) = (settings.counted.refused.all(), settings.twice.refused.all());
    let beyond = settings.candidate.beyond();
    let found = match (once, twice) {
        (0, 0) => "All requests were served, those of twice the connections too.".to_owned(),
        (0, _) => format!(
            "All requests were served. At twice the connections there was no room for {twice} requests ({}): {beyond}.",
            percent(settings.refused_twice)
        ),
        _ => {
            format!("There was no room for {once} requests ({}): {beyond}.", percent(settings.refused))
        }
    };
    // The margin is for the advice; settings fit as long as they serve what is.
    Checked { what: "Requests", holds: once == 0, found }
}

fn speed(advice: &Advice, settings: &Entry, is_test: bool) -> Checked {
    let fastest = &advice.entries[advice.choice.fastest];
    let near = advice.prices.unnoticed(fastest.times.median);
    let found = format!(
        "A request takes {}, which is {} of a processor at the recorded rate. The fastest is `{}` with {} and {}.",
        time(settings.times.median),
        processor(settings.processor),
        fastest.candidate,
        time(fastest.times.median),
        processor(fastest.processor),
    );
    // Those that came to the last stage by a hair have wide spreads: a tenth of the processes
    // decides.
    let holds = is_test || settings.times.median <= near || settings.times.p10 <= near;
    Checked { what: "Time", holds, found }
}

fn memory(settings: &Entry, choice: &Entry, prices: &Prices) -> Checked {
    let (own, other) = (settings.bytes(), choice.bytes());
    let most = ((other as f64 * MOST_MEMORY) as u64).max(other + SPARE_BYTES);
    let limit = match prices.memory_limit {
        Some(limit) => format!("The limit is {}.", exact_memory(limit)),
        None => format!(
            "The choice for this trace takes {}; up to {} fit.",
            exact_memory(other),
            exact_memory(most / 1024 * 1024)
        ),
    };
    let holds = own <= prices.memory_limit.unwrap_or(most);
    Checked { what: "Memory", holds, found: format!("It takes {}. {limit}", exact_memory(own)) }
}
