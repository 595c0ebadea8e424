//! `check`: whether settings still fit a trace.

use std::path::PathBuf;

use anyhow::{Context, Result};
use serde::Serialize;

use super::choice::Prices;
use super::record::{Advice, Entry};
use super::{PriceOptions, Study, emit, words};
use crate::command::Answer;
use crate::drawing::number::{exact_memory, time};
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
    /// Settings such as `slot:capacity=64KiB,slots=16`, or a file that `advise --emit` wrote
    settings: String,
    /// Print what was found as JSON
    #[arg(long)]
    json: bool,
    /// The seconds that the command may take, about
    #[arg(long, default_value_t = 30, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=3600))]
    seconds: u32,
    #[command(flatten)]
    prices: PriceOptions,
    /// Replay a few times only, to check that the command runs: times mean nothing then
    #[arg(long)]
    test: bool,
}

/// What was found.
#[derive(Debug, Serialize)]
struct Found<'a> {
    /// Whether all of `checks` hold.
    fits: bool,
    /// The settings, and all that was measured of them.
    settings: &'a Entry,
    /// What the rule would choose for this trace.
    choice: &'a Entry,
    /// What time and memory are worth.
    prices: Prices,
    /// What was looked at.
    checks: [Checked; 3],
}

/// One thing that was looked at.
#[derive(Debug, Serialize)]
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
    /// When the trace or the settings cannot be read, or a candidate fails.
    pub(crate) fn run(&self) -> Result<Answer> {
        let given = emit::read(&self.settings)?;
        let (file, prices, seconds) = (&*self.file, &self.prices, self.seconds);
        let study = Study {
            file,
            prices,
            seconds,
            is_test: self.test,
            checks: false,
            given: Some(given),
            places: 0,
            frames: 0,
        };
        let Some(advice) = study.advise()? else { return Ok(Answer::No) };
        let found = Found::of(&advice, given.to_string().as_str(), self.test)?;
        if self.json {
            print::line(serde_json::to_string_pretty(&found)?)?;
        } else {
            print::line(found.text().trim_end_matches('\n'))?;
        }
        Ok(if found.fits { Answer::Yes } else { Answer::No })
    }
}

impl<'a> Found<'a> {
    fn of(advice: &'a Advice, given: &str, is_test: bool) -> Result<Self> {
        let settings = advice.entries.iter().find(|entry| entry.candidate.to_string() == given);
        let settings = settings.context("the settings were not replayed")?;
        let choice = advice.pick();
        let fastest = &advice.entries[advice.choice.fastest];
        let checks = [
            requests(settings),
            Checked {
                holds: is_test || advice.prices.first == super::First::Memory || in_time(advice, settings),
                ..speed(settings, fastest)
            },
            memory(settings, choice, &advice.prices),
        ];
        let fits = checks.iter().all(|check| check.holds);
        Ok(Self { fits, settings, choice, prices: advice.prices, checks })
    }

    fn text(&self) -> String {
        let mut text = String::new();
        for check in &self.checks {
            let verdict = if check.holds { "fits" } else { "does not fit" };
            text += &format!("{}: {verdict}. {}\n", check.what, check.found);
        }
        let choice = if self.choice.candidate == self.settings.candidate {
            "It is what the rule chooses for this trace.".to_owned()
        } else {
            format!("The rule chooses `{}` for this trace.", self.choice.candidate)
        };
        let fits = if self.fits { "fits" } else { "does not fit" };
        text + &format!("`{}` {fits} this trace. {choice}\n", self.settings.candidate)
    }
}

/// Returns whether nobody would notice the difference to the fastest.
fn in_time(advice: &Advice, settings: &Entry) -> bool {
    let fastest = advice.entries[advice.choice.fastest].times.median;
    let near = match advice.prices.first {
        super::First::Cpu => fastest * super::choice::CLOSE,
        _ => advice.prices.unnoticed(fastest),
    };
    // Those that came to the last stage by a hair have wide spreads: a tenth of the processes
    // decides.
    settings.times.median <= near || settings.times.p10 <= near
}

fn requests(settings: &Entry) -> Checked {
    let (once, twice) = (settings.counted.refused.all(), settings.twice.refused.all());
    let beyond = settings.candidate.beyond();
    let found = match (once, twice) {
        (0, 0) => "All requests were served, those of twice the connections too.".to_owned(),
        (0, _) => format!(
            "All requests were served. At twice the connections there was no room for {twice} requests ({}): {beyond}.",
            words::percent(settings.refused_twice)
        ),
        _ => {
            format!("There was no room for {once} requests ({}): {beyond}.", words::percent(settings.refused))
        }
    };
    // The margin is for the advice; settings fit as long as they serve what is.
    Checked { what: "Requests", holds: once == 0, found }
}

fn speed(settings: &Entry, fastest: &Entry) -> Checked {
    let found = format!(
        "A request takes {}, which is {} of a processor at the recorded rate. The fastest is `{}` with {} and {}.",
        time(settings.times.median),
        words::processor(settings.processor),
        fastest.candidate,
        time(fastest.times.median),
        words::processor(fastest.processor),
    );
    Checked { what: "Time", holds: true, found }
}

fn memory(settings: &Entry, choice: &Entry, prices: &Prices) -> Checked {
    let (own, other) = (settings.bytes(), choice.bytes());
    let most = ((other as f64 * MOST_MEMORY) as u64).max(other + SPARE_BYTES);
    let is_first = prices.first == super::First::Cpu;
    let holds = prices.memory_limit.map_or(is_first || own <= most, |limit| own <= limit);
    let limit = match prices.memory_limit {
        Some(limit) => format!("The limit is {}.", exact_memory(limit)),
        None if is_first => "With --cpu-first it has no limit.".to_owned(),
        None => format!(
            "The choice for this trace takes {}; up to {} fit.",
            exact_memory(other),
            exact_memory(most / 1024 * 1024)
        ),
    };
    Checked { what: "Memory", holds, found: format!("It takes {}. {limit}", exact_memory(own)) }
}
