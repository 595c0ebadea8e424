//! `advise` and `check`: replay a recorded trace on every strategy, with a small sweep of settings
//! each.
//!
//! - `traffic`, `candidate`: what the trace asks, and which strategies are tried with which
//!   settings.
//! - `handed`: the traffic on its way to child processes.
//! - `exact`: what each refuses and how much memory it takes, in the recorded order.
//! - `lives`, `script`, `play`: the replay that is timed. `source`, `marks`: what both replays ask,
//!   and write.
//! - `stages`, `child`: which candidates are timed how often, in which processes.
//! - `by_place`, `place_words`: the same for the largest places of a heap recording.
//! - `over_time`, `memory_chart`: memory over time, now and with the choice.
//! - `choice`: the rule. `record`, `words`, `table`, `picture`, `page`: the advice. `emit`: the
//!   choice for a program.
//! - `check`: whether settings still fit a trace.

mod by_place;
mod candidate;
mod check;
mod child;
mod choice;
mod emit;
mod exact;
mod handed;
mod known;
mod lives;
mod marks;
mod memory_chart;
mod over_time;
mod page;
mod picture;
mod place_words;
mod play;
mod record;
mod script;
mod source;
mod stages;
mod table;
mod traffic;
mod words;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result};

pub(crate) use check::Options as CheckOptions;
pub(crate) use child::Job;

use crate::command::Answer;
use crate::held::Held;
use crate::names::Stacks;
use crate::{input, print};
use by_place::Verdict;
use candidate::Candidate;
use child::Read;
use choice::{Choice, Entrant, First, Prices, choose, front};
use handed::Handed;
use over_time::OverTime;
use record::{Advice, Check, Entry, SCHEMA};
use script::Script;
use stages::{Effort, Outcome, Parent, Size, summary};
use traffic::{MOST_EVENTS, Needs};

/// Events that `--test` replays.
const TEST_EVENTS: usize = 5000;
/// What `--check` does with all candidates.
const CHECK: Size = Size { processes: 15, rounds: 3 };

/// What time and memory are worth, on the command line.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct PriceOptions {
    /// Take the fastest, whatever memory it takes
    #[arg(long, conflicts_with = "memory_first")]
    cpu_first: bool,
    /// Take what needs the least memory, however slow it is
    #[arg(long)]
    memory_first: bool,
    /// Take nothing that needs more memory, such as 16M
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    memory_limit: Option<u64>,
}

/// Returns a number of bytes, with a unit or without.
fn bytes(text: &str) -> Result<u64, String> {
    const UNITS: [(&str, u32); 6] = [("kib", 10), ("mib", 20), ("gib", 30), ("k", 10), ("m", 20), ("g", 30)];
    let lower = text.trim().to_ascii_lowercase();
    let unit = UNITS.iter().find_map(|(unit, shift)| Some((lower.strip_suffix(unit)?, *shift)));
    let (digits, shift) = unit.unwrap_or((&lower, 0));
    let number: Option<u64> = digits.trim_end().parse().ok();
    number
        .and_then(|number| number.checked_mul(1 << shift))
        .ok_or_else(|| "expected a number of bytes, such as 65536, 64K or 16M (powers of 1024)".to_owned())
}

impl PriceOptions {
    fn prices(&self, rate: f64) -> Prices {
        let first = match (self.cpu_first, self.memory_first) {
            (true, _) => First::Cpu,
            (_, true) => First::Memory,
            _ => First::Balanced,
        };
        Prices { first, memory_limit: self.memory_limit, rate }
    }
}

/// Says which strategy fits a trace, with which settings, or that no pool would help.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// The recorded trace: a file that `buftrace`'s recorder wrote
    file: PathBuf,
    #[command(flatten)]
    how: How,
}

/// How the answer is found, and printed.
#[derive(Debug, clap::Args)]
pub(crate) struct How {
    /// Write `advice.json`, `advice.svg`, `memory.svg` and the page `advice.html` to this folder
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Print the advice as JSON
    #[arg(long)]
    json: bool,
    /// Print the choice alone, as a program takes it in
    #[arg(long, value_name = "FORM", conflicts_with = "json")]
    emit: Option<emit::Form>,
    /// The seconds that the command may take, about, without the check; each place takes a fifth of
    /// them more
    #[arg(long, default_value_t = 75, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=3600))]
    seconds: u32,
    /// Say it of this number of places of a heap recording too, those that request most
    #[arg(long, default_value_t = 3, value_name = "N")]
    places: usize,
    /// Take call stacks as one place whose innermost N frames look alike
    #[arg(long, value_name = "N", default_value_t = crate::places::FRAMES)]
    frames: usize,
    #[command(flatten)]
    prices: PriceOptions,
    /// Replay all candidates longer afterwards, and fail if the choice is not near the best by the
    /// rule
    #[arg(long, conflicts_with = "test")]
    check: bool,
    /// Replay a few times only, to check that the command runs
    #[arg(long)]
    test: bool,
}

/// What is to be measured.
struct Study<'a> {
    file: &'a Path,
    prices: &'a PriceOptions,
    seconds: u32,
    is_test: bool,
    /// Whether all candidates are replayed longer afterwards.
    checks: bool,
    /// Settings that take part besides those that follow from the trace.
    given: Option<Candidate>,
    /// The number of places that are replayed by themselves, and of their frames.
    places: usize,
    frames: usize,
}

impl Options {
    /// Advises, as [`How::run`] does.
    pub(crate) fn run(&self) -> Result<Answer> {
        self.how.run(&self.file)
    }
}

impl How {
    /// Measures the candidates, and prints the advice for a recorded file.
    ///
    /// # Errors
    ///
    /// When the trace cannot be read, a candidate fails, or the advice cannot be written.
    pub(crate) fn run(&self, file: &Path) -> Result<Answer> {
        let (prices, seconds) = (&self.prices, self.seconds);
        // What is emitted is the choice for the whole.
        let places = if self.emit.is_some() { 0 } else { self.places };
        let frames = self.frames.max(1);
        let study = Study {
            file,
            prices,
            seconds,
            is_test: self.test,
            checks: self.check,
            given: None,
            places,
            frames,
        };
        let Some(advice) = study.advise()? else { return Ok(Answer::No) };
        let json = serde_json::to_string_pretty(&advice)? + "\n";
        if let Some(out) = &self.out {
            fs::create_dir_all(out).with_context(|| format!("cannot make {}", out.display()))?;
            let picture = picture::draw(&advice).context("there is nothing to draw")?;
            let held = input::read(file)?.heap.map(|heap| Held::of(&heap, &Stacks::of(&heap)).flamegraph());
            let memory = memory_chart::draw(&advice.name, &advice.memory);
            let page = page::page(&advice, &[&picture, &memory], held.as_deref());
            let files = [
                ("advice.json", &json),
                ("advice.svg", &picture),
                ("memory.svg", &memory),
                ("advice.html", &page),
            ];
            for (name, text) in files {
                let path = out.join(name);
                fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
            }
        }
        let text = if self.json {
            json
        } else if let Some(form) = self.emit {
            form.write(&advice)
        } else {
            let mut text = words::text(&advice);
            if !advice.places.is_empty() {
                text += &place_words::text(&advice.places);
            }
            if let Some(check) = &advice.check {
                text += &format!("\n{}\n", words::check(&advice, check));
            }
            text + &format!("\nThis took {:.0} s.", advice.seconds)
        };
        print::line(text.trim_end_matches('\n'))?;
        match &advice.check {
            Some(check) if !check.holds => {
                print::note("The first choice is not near the best.");
                Ok(Answer::No)
            }
            _ => Ok(Answer::Yes),
        }
    }
}

impl Study<'_> {
    /// Measures and chooses; nothing where no candidate is within the limit, which it says then.
    fn advise(&self) -> Result<Option<Advice>> {
        let started = Instant::now();
        let program = std::env::current_exe().context("cannot find this program")?;
        let read = child::read(self.file, if self.is_test { TEST_EVENTS } else { MOST_EVENTS })?;
        let traffic = &read.traffic;
        let seconds = read.trace.duration_ns().max(1) as f64 / 1e9;
        let prices = self.prices.prices(read.trace.summary().acquires as f64 / seconds);
        let (mut candidates, left_out) = candidate::sweep(&Needs::of(traffic).with_margin());
        candidates.extend(self.given.filter(|given| !candidates.contains(given)));
        let effort = if self.is_test { Effort::test() } else { Effort::usual(f64::from(self.seconds)) };
        let handed =
            [Handed::write(traffic, "once")?, Handed::write(&traffic.at_twice_the_connections(), "twice")?];
        let parent = Parent {
            program,
            traffic,
            handed: &handed,
            candidates: &candidates,
            prices,
            given: self.given.and_then(|given| candidates.iter().position(|one| *one == given)),
            bar: stages::bar(self.is_test)?,
        };
        let outcome = parent.run(&effort)?;
        let Some(choice) = choose_of(&outcome, &prices) else {
            parent.bar.finish_and_clear();
            print::note(words::nothing(&outcome.entries, &prices));
            return Ok(None);
        };
        let places = read.heap.as_ref().map(|heap| by_place::advise(self, heap, &parent)).transpose()?;
        let seconds = started.elapsed().as_secs_f64();
        let check = self.checks.then(|| check_all(&parent, &outcome.entries, &choice)).transpose()?;
        parent.bar.finish_and_clear();
        let found = Found { places: places.unwrap_or_default(), check, left_out, seconds };
        Ok(Some(self.write_up(&read, &parent, outcome, choice, found)))
    }

    /// Writes the advice up, in full.
    fn write_up(
        &self,
        read: &Read,
        parent: &Parent<'_>,
        outcome: Outcome,
        choice: Choice,
        found: Found,
    ) -> Advice {
        let (traffic, prices) = (&read.traffic, parent.prices);
        let needs = Needs::of(traffic);
        let script = Script::new(traffic, child::workers_here(traffic));
        let pick = &parent.candidates[choice.pick];
        let now = without_pool(&outcome.entries, read.requests_zeros());
        let memory = OverTime::of(traffic, &outcome, now, Some(choice.pick));
        let entries = outcome.entries;
        let mut advice = Advice {
            schema: SCHEMA,
            trace: self.file.display().to_string(),
            name: name_of(&read.trace.meta().name, self.file),
            needs,
            room: needs.with_margin(),
            prices,
            acquires: read.acquires,
            replayed: traffic.buffers.len(),
            threads: traffic.threads,
            workers: script.parts.len(),
            crossing: script.crossings as f64 / traffic.buffers.len() as f64,
            crossing_kept: script.crossings_kept as f64 / script.crossings.max(1) as f64,
            version: env!("CARGO_PKG_VERSION").into(),
            machine: crate::measure::host::look().into(),
            left_out: found.left_out,
            front: front_of(&entries, &prices),
            code: emit::Form::Rust.code(pick),
            beyond: pick.beyond().into(),
            why: Vec::new(),
            places: found.places,
            check: found.check,
            entries,
            choice,
            memory,
            seconds: found.seconds,
        };
        advice.why = words::why(&read.trace.summary(), &advice);
        advice
    }
}

/// What is in an advice beside the choice.
struct Found {
    places: Vec<Verdict>,
    check: Option<Check>,
    left_out: Vec<String>,
    seconds: f64,
}

/// Applies the rule to those that came to the last stage. The numbers are those of the entries.
fn choose_of(outcome: &Outcome, prices: &Prices) -> Option<Choice> {
    let last = outcome.last.iter();
    let entrants: Vec<Entrant> = last.map(|(index, times)| outcome.entries[*index].entrant(times)).collect();
    let mut choice = choose(&entrants, prices)?;
    choice.renumber(|place| outcome.last[place].0);
    Some(choice)
}

/// Returns the number of what there is without a pool: `heap` for a program that requests zeros,
/// and `vec` for one that does not.
fn without_pool(entries: &[Entry], is_zeroed: bool) -> usize {
    let control = if is_zeroed { known::HEAP } else { known::VEC };
    let found = entries.iter().position(|entry| entry.strategy == control);
    found.expect("both take part in every sweep")
}

/// Returns the trade-off among those that can be chosen.
fn front_of(entries: &[Entry], prices: &Prices) -> Vec<usize> {
    let cost = |entry: &Entry| {
        let counts = entry.serves_all() && prices.allows(entry.bytes());
        (if counts { entry.times.median } else { f64::NAN }, entry.bytes())
    };
    front(&entries.iter().map(cost).collect::<Vec<_>>())
}

/// Returns the trace's own name, or its file's.
fn name_of(name: &str, file: &Path) -> String {
    if name.is_empty() {
        file.file_stem().unwrap_or_default().to_string_lossy().into_owned()
    } else {
        name.into()
    }
}

/// Replays all candidates, none of them less often than others.
fn check_all(parent: &Parent<'_>, entries: &[Entry], choice: &Choice) -> Result<Check> {
    let all: Vec<usize> = (0..entries.len()).collect();
    let times = parent.time(&all, CHECK, "check: all candidates")?;
    let medians: Vec<f64> = times.iter().map(|times| summary(times).median).collect();
    let speeds: Vec<f64> =
        entries.iter().zip(&medians).map(|(entry, now)| entry.times.median / now).collect();
    let prices = parent.prices.at_speed(summary(&speeds).median);
    let entrants: Vec<Entrant> =
        entries.iter().zip(&times).map(|(entry, times)| entry.entrant(times)).collect();
    let best = choose(&entrants, &prices).context("no candidate served all requests")?.pick;
    let ratio = medians[choice.pick] / medians[best];
    // Another choice by the same rule may be faster by what nobody notices, or smaller.
    let (own, other) = (entries[choice.pick].bytes(), entries[best].bytes());
    let memory_ratio = own as f64 / other.max(1) as f64;
    let holds = medians[choice.pick] <= prices.unnoticed(medians[best]) && own <= choice::equal_memory(other)
        || ratio <= choice::CLOSE;
    Ok(Check { medians, processes: CHECK.processes, best, ratio, memory_ratio, holds })
}

#[cfg(test)]
mod tests {
    use super::bytes;

    #[test]
    fn limits_have_units() {
        assert_eq!([bytes("65536"), bytes("64k"), bytes("16 MiB")], [Ok(65536), Ok(65536), Ok(16 << 20)]);
        assert!(bytes("").is_err() && bytes("16 megabytes").is_err() && bytes("99999999999G").is_err());
    }
}
