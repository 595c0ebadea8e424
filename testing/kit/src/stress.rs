//! Long programs under load: what a `stress` program runs.
//!
//! A program has some parts, each of which runs for its share of the time in *rounds*. In a
//! round pools are made, more threads than there are processors live and end, the pools end, and
//! all is looked at. [`pools`] has the rounds for everything that hands out buffers, and [`keeper`]
//! phases with a keeper beside them. Other subjects bring rounds of their own.
//!
//! - `BUFTEST_STRESS_SECONDS` is the time for the whole program, a fraction of a second unless set.
//! - `BUFTEST_SEED` is the seed of each part's first round; the next ones count up from it. A
//!   failure names the seed of its round. It gives the same pools, sizes and choices again, not the
//!   same schedule.
//! - `BUFTEST_STUCK_SECONDS` is how long all threads together may do nothing before that is a
//!   failure, a minute unless set.
//! - `BUFTEST_SANITIZED` leaves out what a sanitizer would not understand: the map of addresses,
//!   whose lock orders threads, and the look at resident memory.

pub mod keeper;
pub mod pools;

use std::env;
use std::panic;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use crate::model::Shadow;
use crate::process;

/// What resident memory may grow by from the first tenth of a part to its last: caches of the
/// allocator's for each thread.
const SLACK_BYTES: usize = 16 << 20;
/// Parts that are shorter show nothing about memory.
const LEAST_FOR_MEMORY: Duration = Duration::from_secs(4);
/// Rounds of a part, and the times between which each of them is kept.
const ROUNDS: u32 = 40;
const ROUND: (Duration, Duration) = (Duration::from_millis(30), Duration::from_secs(1));
/// How often the watchdog looks.
const LOOK: Duration = Duration::from_millis(200);
/// Between two lines about how far a part has come.
const REPORT: Duration = Duration::from_secs(10);

/// Steps that were done by all threads; the watchdog sees by it that something happens.
static STEPS: AtomicU64 = AtomicU64::new(0);
/// The seed of the round that runs.
static SEED: AtomicU64 = AtomicU64::new(0);

/// One round of a part.
#[derive(Debug)]
pub struct Round {
    /// All choices come from it.
    pub seed: u64,
    /// Whether addresses of buffers are noted in a map. Its lock orders the threads, so it is left
    /// out in every second round.
    pub is_mapped: bool,
    end: Instant,
}

impl Round {
    /// Returns whether its threads are to come to an end.
    pub fn is_over(&self) -> bool {
        Instant::now() >= self.end
    }

    /// Says that something was done.
    pub fn step(&self) {
        // ORDER: Relaxed: a count, which orders nothing.
        STEPS.fetch_add(1, Relaxed);
    }

    /// Makes the choices of one thread of it.
    pub fn rng(&self, thread: u64) -> fastrand::Rng {
        fastrand::Rng::with_seed(self.seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ thread)
    }

    /// Threads that live at once: more than there are processors.
    pub fn threads(&self) -> usize {
        let processors = thread::available_parallelism().map_or(1, usize::from);
        (2 * processors).clamp(6, 24)
    }
}

/// A part of a program: its name, and what one round of it does.
pub type Part<'a> = (&'a str, &'a dyn Fn(&Round));

fn number(name: &str) -> Option<u64> {
    let text = env::var(name).ok()?;
    let parsed = match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => text.parse(),
    };
    Some(parsed.unwrap_or_else(|error| panic!("{name} is {text}: {error}")))
}

fn seconds(name: &str) -> Option<Duration> {
    let text = env::var(name).ok()?;
    let seconds: f64 = text.parse().unwrap_or_else(|error| panic!("{name} is {text}: {error}"));
    Some(Duration::from_secs_f64(seconds))
}

/// Returns how long one wait may take before its wake-up counts as lost.
pub fn patience() -> Duration {
    static PATIENCE: OnceLock<Duration> = OnceLock::new();
    *PATIENCE.get_or_init(|| seconds("BUFTEST_STUCK_SECONDS").unwrap_or(Duration::from_secs(60)))
}

/// Runs a program: all its parts, or the one that is named behind `--exact`.
///
/// # Panics
///
/// Never: what goes wrong in any thread ends the process, with a line that says how to have it
/// again.
pub fn run(program: &str, parts: &[Part<'_>]) {
    let wanted = env::args().skip_while(|argument| argument != "--exact").nth(1);
    let is_wanted = |name: &str| wanted.as_deref().is_none_or(|wanted| wanted == name);
    let parts: Vec<_> = parts.iter().filter(|(name, _)| is_wanted(name)).collect();
    assert!(!parts.is_empty(), "no part of this name");
    if env::var_os("BUFTEST_SANITIZED").is_some() {
        Shadow::switch_off();
    } else {
        process::calm_allocator();
    }
    let whole = seconds("BUFTEST_STRESS_SECONDS").unwrap_or(Duration::from_millis(300));
    let seed = number("BUFTEST_SEED").unwrap_or_else(|| fastrand::u64(..) >> 16);
    end_at_the_first_panic(program);
    let _ = patience();
    thread::spawn(watch);
    for (name, part) in &parts {
        run_part(&format!("{program} {name}"), whole / parts.len() as u32, seed, part);
    }
}

/// Ends the process at a panic anywhere: threads that wait for the one that panicked would wait for
/// ever.
fn end_at_the_first_panic(program: &str) {
    let (program, before) = (program.to_owned(), panic::take_hook());
    panic::set_hook(Box::new(move |info| {
        before(info);
        fail(&program, "a thread panicked");
    }));
}

/// Ends the process, and says how to have this again.
fn fail(program: &str, why: &str) -> ! {
    // ORDER: Relaxed: a number for people.
    let (seed, steps) = (SEED.load(Relaxed), STEPS.load(Relaxed));
    eprintln!("stress {program}: {why} after {steps} steps; the round again: BUFTEST_SEED={seed:#x}");
    // Not by `exit`, which would run destructors beside the other threads.
    std::process::abort();
}

/// Fails when nothing happens for long.
fn watch() {
    let mut last = (0, Instant::now());
    loop {
        thread::sleep(LOOK);
        // ORDER: Relaxed: a count.
        let steps = STEPS.load(Relaxed);
        if steps != last.0 {
            last = (steps, Instant::now());
        } else if last.1.elapsed() > patience() {
            fail("watchdog", &format!("no thread did anything for {:?}", patience()));
        }
    }
}

/// Returns the resident bytes of this process. Elsewhere than on Linux, and where sanitizers change
/// them, they count as 0: nothing is found to grow.
fn resident_bytes() -> usize {
    #[cfg(target_os = "linux")]
    if !Shadow::is_off() {
        return process::resident_bytes();
    }
    0
}

/// Runs the rounds of one part for `time`.
fn run_part(name: &str, time: Duration, seed: u64, part: &dyn Fn(&Round)) {
    println!("stress {name}: {:.1} s, BUFTEST_SEED={seed:#x}", time.as_secs_f64());
    // ORDER: Relaxed, here and below: numbers for people.
    let before = STEPS.load(Relaxed);
    let started = Instant::now();
    let mut told = started;
    let mut samples = Vec::new();
    while started.elapsed() < time || samples.is_empty() {
        let round_seed = seed.wrapping_add(samples.len() as u64);
        SEED.store(round_seed, Relaxed);
        let end = Instant::now() + (time / ROUNDS).clamp(ROUND.0, ROUND.1);
        part(&Round { seed: round_seed, is_mapped: round_seed.is_multiple_of(2), end });
        STEPS.fetch_add(1, Relaxed);
        samples.push((started.elapsed(), resident_bytes()));
        if told.elapsed() >= REPORT {
            told = Instant::now();
            let (passed, whole) = (started.elapsed().as_secs(), time.as_secs());
            println!("stress {name}: {passed} of {whole} s, {} rounds", samples.len());
        }
    }
    let (early, late) = ends(&samples, started.elapsed());
    let steps = STEPS.load(Relaxed) - before;
    println!(
        "stress {name}: ok, {} rounds, {steps} steps, {} KiB resident after a tenth, {} KiB at the end",
        samples.len(),
        early >> 10,
        late >> 10
    );
    assert!(
        late <= early + SLACK_BYTES || time < LEAST_FOR_MEMORY,
        "resident memory grew from {early} to {late} bytes"
    );
}

/// Returns the most that was resident in the first tenth, of two rounds at least, and the least in
/// the last.
fn ends(samples: &[(Duration, usize)], whole: Duration) -> (usize, usize) {
    let (first, last) = (whole / 10, whole - whole / 10);
    let is_early = |at: usize| at < 2 || samples[at].0 <= first;
    let is_late = |at: usize| at + 2 >= samples.len() || samples[at].0 >= last;
    let resident = |is: &dyn Fn(usize) -> bool| -> Vec<usize> {
        (0..samples.len()).filter(|&at| is(at)).map(|at| samples[at].1).collect()
    };
    let early = resident(&is_early).into_iter().max().unwrap_or(0);
    (early, resident(&is_late).into_iter().min().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_that_grows_is_seen() {
        let samples = |resident: fn(u64) -> u64| -> Vec<_> {
            (1..=100).map(|at| (Duration::from_secs(at), resident(at) as usize)).collect()
        };
        let whole = Duration::from_secs(100);
        assert_eq!(ends(&samples(|at| at), whole), (10, 90));
        assert_eq!(ends(&samples(|_| 7), whole), (7, 7));
        assert_eq!(ends(&samples(|_| 7)[..1], Duration::from_secs(1)), (7, 7));
    }
}
