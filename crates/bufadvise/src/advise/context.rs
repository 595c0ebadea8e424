//! The options of `advise`, and from them to the answer.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use buftrace::{Profile, Trace};

use super::answer::{Answer, SCHEMA, SiteAnswer};
use super::children::Children;
use super::schedule::{Schedule, workers};
use super::study::{Study, Verdict, study};
use super::traffic::{Buffer, Needs, Traffic};
use super::verdict::{Prices, Program, Requests, work};
use super::{answer, codegen, table, wire};
use crate::call_sites::{self, CallSite, sums};
use crate::input::{self, Input};
use crate::names::{self, Stacks};
use crate::number::memory;
use crate::print;

/// The most events that a recording is expanded to.
const MOST_EVENTS: usize = 1 << 19;
/// What is kept of the time, to read and to print.
const KEPT: f64 = 0.05;
/// `bufalloc` serves blocks of this number of bytes and more, unless it is told otherwise.
const LARGE_BYTES: u64 = 32 << 10;
/// The C library serves blocks of this number of bytes and more with fresh pages of the system.
const FRESH_BYTES: u64 = 128 << 10;

/// Says whether a pool would help a recorded program, which one, and with which settings.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// The recording: a file that `bufadvise record` or one of `buftrace`'s recorders wrote
    file: PathBuf,
    #[command(flatten)]
    context: Context,
}

/// How the answer is found, and printed.
#[derive(Debug, clap::Args)]
pub(crate) struct Context {
    /// Print the candidates as a table too
    #[arg(long)]
    table: bool,
    /// Print the answer as JSON
    #[arg(long, conflicts_with = "table")]
    json: bool,
    /// The most seconds that the answer takes
    #[arg(long, default_value_t = 30, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=3600))]
    seconds: u32,
    /// If a pool helps, print this number of call sites, those that request most
    #[arg(long, default_value_t = 3, value_name = "N")]
    sites: usize,
    /// Merge call stacks whose innermost N frames are equal into one call site
    #[arg(long, value_name = "N", default_value_t = call_sites::FRAMES)]
    frames: NonZeroUsize,
    /// Exclude pools that need more memory, such as 16M
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    memory_limit: Option<u64>,
}

impl Options {
    /// Prints the answer of [`Context::answer`].
    pub(crate) fn run(&self) -> Result<bool> {
        let started = Instant::now();
        let (text, is_answer) = self.context.answer(input::read(&self.file)?, "", started)?;
        print::line(&text)?;
        Ok(is_answer)
    }
}

impl Context {
    /// Replays what was recorded. Returns the text of the answer, and whether it is one. What else
    /// is to be said of the recording, `notes`, is in it too.
    ///
    /// # Errors
    ///
    /// When this program cannot be found, which replays.
    pub(crate) fn answer(&self, input: Input, notes: &str, started: Instant) -> Result<(String, bool)> {
        let why_few = input.why_few();
        let (program, is_rust, recorded) = (program(&input), is_rust(&input), input.ending() + "." + notes);
        let (part, heap) = match input {
            Input::Heap(heap) => (Part::of(&heap, &program), Some(heap)),
            Input::Trace(trace) => {
                let sums = trace.summary();
                let (samples, [_, _, _, largest]) = (sums.acquires, sums.size_quantiles);
                let work = work(samples, sums.total_bytes as f64);
                let requests = Requests { count: samples as f64, samples, work, ..Requests::default() };
                let peak = (sums.max_live as f64, sums.max_live_bytes as f64);
                (Part { trace, requests, peak, largest, growth: [1.0; 2] }, None)
            }
        };
        let name = part.trace.meta().name.clone();
        let deadline = started + Duration::from_secs_f64(f64::from(self.seconds) * (1.0 - KEPT));
        let (prices, found) = part.study(program, self.memory_limit, deadline)?;
        let heap = heap.filter(|_| found.verdict == Verdict::Pool);
        let call_sites = heap.map_or_else(Vec::new, |heap| self.sites(&heap));
        let best = found.best().map(|(tried, _)| tried.settings);
        let code = best.filter(|_| is_rust && found.verdict == Verdict::Pool);
        let answer = Answer {
            schema: SCHEMA,
            name,
            recorded,
            program,
            is_rust,
            why_few,
            requests: prices.requests,
            code: code.map(|pick| codegen::rust(&pick)),
            study: found,
            call_sites,
        };
        let mut text = if self.json {
            serde_json::to_string_pretty(&answer)?
        } else {
            answer::text(&answer).trim_end().to_owned()
        };
        if self.table && answer.study.now.nanos > 0 {
            text += &table::all(&answer.study, &prices);
        }
        Ok((text, !matches!(answer.study.verdict, Verdict::NoAnswer | Verdict::TooLarge)))
    }

    /// Returns the call sites that request most.
    fn sites(&self, heap: &Profile) -> Vec<SiteAnswer> {
        let stacks = Stacks::of(heap);
        let all = call_sites::of(heap, &stacks, self.frames);
        let (bytes, _) = sums(&all);
        let share_of = |call_site: CallSite| {
            let share_of_bytes = call_site.site.bytes / bytes;
            SiteAnswer { call_site, share_of_bytes }
        };
        all.into_iter().take(self.sites).map(share_of).collect()
    }
}

/// The requests of a program.
struct Part {
    trace: Trace,
    requests: Requests,
    /// The most buffers and bytes that were in use at once, the largest request, and how many times
    /// as much was in use in the whole file as in the part that was read.
    peak: (f64, f64),
    largest: u64,
    growth: [f64; 2],
}

impl Part {
    /// Returns what a heap requested.
    fn of(heap: &Profile, program: &Program) -> Self {
        let peak = heap.expanded_peak(|_| true);
        Self {
            peak,
            growth: heap.whole().peak_growth,
            largest: heap.objects().iter().map(|one| one.largest).max().unwrap_or(0),
            requests: requests_of(heap, peak.1, program),
            trace: heap.expanded_trace(MOST_EVENTS, |_| true),
        }
    }

    /// Replays it, and judges.
    fn study(
        self,
        program: Program,
        memory_limit: Option<u64>,
        deadline: Instant,
    ) -> Result<(Prices, Study)> {
        let Self { trace, mut requests, peak, largest, growth } = self;
        let mut replay = |start| {
            let traffic = Traffic::new(&trace, start);
            requests.replayed = traffic.buffers.len();
            let touched = |buffer: &Buffer| f64::from(buffer.bytes).min(program.touched());
            let bytes = traffic.buffers.iter().map(touched).sum();
            requests.replayed_work = work(requests.replayed, bytes);
            let replayed = Needs::of(&traffic);
            let whole = || ((replayed.live as f64, replayed.bytes as f64), 0);
            let ((buffers, bytes), largest) = if requests.are_a_part() { (peak, largest) } else { whole() };
            (traffic, replayed, replayed.of_all((buffers * growth[0], bytes * growth[1]), largest))
        };
        let (mut traffic, mut replayed, mut needs) = replay(0);
        if !replayed.are_enough_for(&needs) {
            (traffic, replayed, needs) = replay(Traffic::start_of_peak(&trace));
        }
        drop(trace);
        let too_large = (!replayed.are_enough_for(&needs)).then(|| {
            let of = |needs: &Needs| {
                let buffers = print::count(needs.live as u64, "buffer");
                format!("{buffers} of {} in all", memory(needs.bytes as u64))
            };
            format!("{} were in use at once, and a replay has {}", of(&needs), of(&replayed))
        });
        let prices = Prices { program, requests };
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let touched = program.touched() as usize;
        let encoded = |workers| wire::encode(&Schedule { touched, ..Schedule::new(&traffic, workers) });
        let workers = workers(&traffic, processors);
        let children = Children {
            program: std::env::current_exe().context("cannot find this program")?,
            schedule: encoded(workers),
            alone: (workers > 1).then(|| encoded(1)),
            deadline,
            times_bytes: needs.bytes as f64 / replayed.bytes.max(1) as f64,
        };
        drop(traffic);
        Ok((prices, study(&prices, &needs, too_large, memory_limit, children)))
    }
}

/// Returns what the program took of the machine.
fn program(input: &Input) -> Program {
    let (ran, nanos, usage) = match input {
        Input::Heap(heap) => (heap.whole().duration_ns, heap.duration_ns(), Some(heap.usage())),
        Input::Trace(trace) => (trace.duration_ns(), trace.duration_ns(), None),
    };
    let usage = usage.filter(|usage| usage.processor_ns > 0);
    Program {
        ran_seconds: ran as f64 / 1e9,
        seconds: nanos as f64 / 1e9,
        processor_seconds: usage.map(|usage| usage.processor_ns as f64 / 1e9),
        faults: usage.map(|usage| usage.faults),
        bytes: usage.map(|usage| usage.peak_bytes),
    }
}

/// Returns whether the program is written in Rust. One that records its own pools is.
fn is_rust(input: &Input) -> bool {
    !matches!(input, Input::Heap(heap) if !names::is_rust(heap))
}

/// Returns what was requested of a heap that had so many bytes in use at its peak.
fn requests_of(heap: &Profile, peak: f64, program: &Program) -> Requests {
    let (mut bytes, mut large, mut zeroed_bytes, mut held, mut held_variance) = (0.0, 0.0, 0.0, 0.0, 0.0);
    // Of the smallest requests, there may be as many as a sample stands for, and no sample.
    let rate = heap.objects().iter().map(|object| object.rate).max().unwrap_or(0);
    let unseen = rate as f64 / heap.info().min_bytes.max(1) as f64;
    // Of requests, and of what they cost.
    let (mut sums, mut variances) = ([0.0; 2], [unseen * unseen; 2]);
    for object in heap.objects() {
        let (weight, largest) = (object.weight(), object.largest as f64);
        let touched = largest.min(program.touched());
        for (of, one) in [1.0, work(1, touched)].into_iter().enumerate() {
            sums[of] += weight * one;
            variances[of] += weight * (weight - 1.0) * one * one;
        }
        bytes += weight * largest;
        if object.largest >= LARGE_BYTES {
            large += weight * largest;
        }
        if object.zeroed && object.largest >= FRESH_BYTES {
            zeroed_bytes += weight * object.bytes as f64;
        }
        let nanos = object.lifetime_ns().unwrap_or(heap.duration_ns().saturating_sub(object.at_ns)) as f64;
        held += weight * largest * nanos;
        held_variance += weight * (weight - 1.0) * largest * largest * nanos;
    }
    let [error, work_error] = [0, 1].map(|of| f64::sqrt(variances[of]) / f64::max(sums[of], 1.0));
    // The peak is of the objects at one time.
    let held_error = f64::sqrt(held_variance / f64::max(held, 1.0) / peak.max(1.0));
    let ([count, work], samples) = (sums, heap.objects().len());
    let large_share = large / f64::max(bytes, 1.0);
    let requests = Requests { count, error, work, work_error, held_error, ..Requests::default() };
    Requests { samples, large_share, zeroed_bytes, ..requests }
}

/// Returns a number of bytes, with a unit or without.
fn bytes(text: &str) -> Result<u64, parse_size::Error> {
    // Units are powers of 1024 always.
    parse_size::Config::new().with_binary().parse_size(text)
}
