//! Runs the candidates in child processes: all of them a few rounds, and the better ones more.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Instant;

use anyhow::{Context, Result, ensure};

use super::candidate::Candidate;
use super::choice::{Choice, NOTICED, Prices, choose, front};
use super::entry::{Entry, Said, Times};
use super::replay_exact::{Counted, Replayed};
use super::strategies;
use super::traffic::Traffic;
use crate::measure::statistics::quantile;
use crate::print;

/// Events that a test replays.
pub(crate) const TEST_EVENTS: usize = 5000;
/// A candidate that is within this much of the fastest continues, after the first stage and after
/// the second.
const GOES_ON: [f64; 2] = [1.3, 1.12];
/// The most candidates that continue, and the fewest.
const MOST: [usize; 2] = [16, 8];
const LEAST: [usize; 2] = [6, 4];

/// Processes and rounds of a stage.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Size {
    pub(crate) processes: usize,
    pub(crate) rounds: usize,
}

impl Size {
    /// Replays of each candidate in a process: one to warm up.
    fn runs(&self) -> usize {
        self.rounds + 1
    }
}

/// How much is done.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Effort {
    /// The first two stages.
    pub(crate) early: [Size; 2],
    /// The last stage at least; it gets processes for what is left of the time.
    pub(crate) last: Size,
    /// The most processes that it has.
    pub(crate) most_processes: usize,
    /// What all of it may take, about.
    pub(crate) seconds: f64,
}

impl Effort {
    /// Returns the effort for advice.
    pub(crate) fn usual(seconds: f64) -> Self {
        Self {
            early: [Size { processes: 3, rounds: 3 }, Size { processes: 5, rounds: 3 }],
            last: Size { processes: 9, rounds: 3 },
            most_processes: 99,
            seconds,
        }
    }

    /// Returns the effort for one call site of several.
    pub(crate) fn short(seconds: f64) -> Self {
        Self {
            early: [Size { processes: 2, rounds: 2 }, Size { processes: 3, rounds: 2 }],
            last: Size { processes: 7, rounds: 3 },
            most_processes: 25,
            seconds,
        }
    }

    /// Returns the effort that shows that all of it runs.
    pub(crate) fn test() -> Self {
        let once = Size { processes: 1, rounds: 1 };
        Self { early: [once; 2], last: Size { processes: 2, rounds: 2 }, most_processes: 2, seconds: 1.0 }
    }
}

/// Everybody's times in a stage: by candidate and process.
pub(crate) type StageTimes = Vec<Vec<f64>>;

/// What came of it.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// All candidates.
    pub(crate) entries: Vec<Entry>,
    /// Who came to the last stage, by number, with the times there.
    pub(crate) last: Vec<(usize, Vec<f64>)>,
    /// Memory of each candidate, in the order of the entries, as [`Replayed`] has it.
    pub(crate) memory: Vec<Vec<u64>>,
}

impl Outcome {
    /// Applies the rule to those that came to the last stage. The numbers are those of the entries.
    pub(crate) fn choose(&self, prices: &Prices) -> Option<Choice> {
        let last = self.last.iter();
        let entrants: Vec<_> = last.map(|(index, times)| self.entries[*index].entrant(times)).collect();
        let mut choice = choose(&entrants, prices)?;
        choice.renumber(|one| self.last[one].0);
        Some(choice)
    }

    /// Returns the number of what there is without a pool: `heap` for a program that requests
    /// zeros, and `vec` for one that does not.
    pub(crate) fn without_pool(&self, is_zeroed: bool) -> usize {
        let control = if is_zeroed { strategies::HEAP } else { strategies::VEC };
        let found = self.entries.iter().position(|entry| entry.strategy == control);
        found.expect("both take part in every sweep")
    }
}

/// The parent of the children.
pub(crate) struct Parent<'a> {
    pub(crate) program: PathBuf,
    pub(crate) traffic: &'a Traffic,
    /// The same for the children, as it is and at twice the connections.
    pub(crate) piped: [Vec<u8>; 2],
    pub(crate) prices: Prices,
    /// A candidate that is in all stages, whatever it takes.
    pub(crate) given: Option<usize>,
    pub(crate) candidates: &'a [Candidate],
}

impl Parent<'_> {
    /// Runs all three stages.
    pub(crate) fn run(&self, effort: &Effort) -> Result<Outcome> {
        let started = Instant::now();
        let (mut entries, memory) = self.count()?;
        let mut going: Vec<usize> = (0..entries.len()).collect();
        let mut stages = Vec::new();
        let mut per_round = 0.0;
        for (stage, size) in effort.early.iter().enumerate() {
            let message = format!("{} rounds of {} candidates.", ["First", "More"][stage], going.len());
            let began = Instant::now();
            let times = self.time(&going, *size, &message)?;
            per_round = began.elapsed().as_secs_f64() / (size.processes * size.runs() * going.len()) as f64;
            note(&mut entries, &going, &times, stage + 1, &self.prices);
            let mut next = better(&entries, &going, stage, &self.prices);
            next.extend(self.given.filter(|given| !next.contains(given)));
            stages.push((going, times));
            going = next;
        }
        let left = effort.seconds - started.elapsed().as_secs_f64();
        let processes = (left / (per_round * going.len() as f64)).max(0.0) as usize / effort.last.runs();
        let processes = processes.clamp(effort.last.processes, effort.most_processes);
        let message = format!("Last rounds of {} candidates.", going.len());
        let times = self.time(&going, Size { processes, ..effort.last }, &message)?;
        note(&mut entries, &going, &times, 3, &self.prices);
        for (index, (before, times)) in stages.iter().enumerate() {
            scale(&mut entries, index + 1, before, times);
        }
        Ok(Outcome { entries, last: going.into_iter().zip(times).collect(), memory })
    }

    /// Rounds of these candidates in this number of processes.
    pub(crate) fn time(&self, going: &[usize], size: Size, message: &str) -> Result<StageTimes> {
        print::note(message);
        let mut all: StageTimes = vec![Vec::new(); going.len()];
        for _ in 0..size.processes {
            let mut times = vec![None; going.len()];
            self.child(going, &self.piped[0], &["--rounds", &size.rounds.to_string()], |said| {
                if let Said::Time { candidate, nanos } = said {
                    times.get_mut(candidate).into_iter().for_each(|time| *time = Some(nanos));
                }
            })?;
            for (all, time) in all.iter_mut().zip(times) {
                all.push(time.context("a child process said too little")?);
            }
        }
        level(&mut all);
        Ok(all)
    }

    /// Replays in exact order what each candidate refuses and takes, each in a process of its own.
    /// With the memory over time.
    fn count(&self) -> Result<(Vec<Entry>, Vec<Vec<u64>>)> {
        print::note("Refusals and memory, in the recorded order.");
        let processors = thread::available_parallelism().map_or(1, usize::from);
        // Nothing is timed here, so one of them runs on each processor.
        let counted: Vec<Vec<(usize, [Replayed; 2])>> = thread::scope(|scope| {
            let one = |processor: usize| {
                scope.spawn(move || {
                    let [once, twice] = &self.piped;
                    let own = (processor..self.candidates.len()).step_by(processors);
                    let count = |index, piped| self.count_one(index, piped, processor);
                    own.map(|index| Ok((index, [count(index, once)?, count(index, twice)?]))).collect()
                })
            };
            let threads: Vec<_> = (0..processors).map(one).collect();
            let join = |thread: thread::ScopedJoinHandle<'_, Result<_>>| {
                thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            };
            threads.into_iter().map(join).collect::<Result<_>>()
        })?;
        let mut counted = counted.concat();
        counted.sort_unstable_by_key(|one| one.0);
        let of_one = |(index, [once, twice]): (usize, [Replayed; 2])| {
            let candidate: &Candidate = &self.candidates[index];
            (self.entry(candidate, [once.counted, twice.counted]), once.bytes)
        };
        Ok(counted.into_iter().map(of_one).unzip())
    }

    /// Counts the same of one candidate.
    fn count_one(&self, index: usize, piped: &[u8], processor: usize) -> Result<Replayed> {
        let mut found = None;
        self.child(&[index], piped, &["--processor", &processor.to_string()], |said| {
            if let Said::Counted(replayed) = said {
                found = Some(replayed);
            }
        })?;
        found.with_context(|| format!("nothing was counted of {}", self.candidates[index]))
    }

    /// Returns what is known of a candidate before it is timed.
    fn entry(&self, candidate: &Candidate, [counted, twice]: [Counted; 2]) -> Entry {
        let requests = self.traffic.buffers.len() as f64;
        Entry {
            strategy: candidate.strategy().into(),
            candidate: *candidate,
            counted,
            twice,
            refused: counted.refused.all() as f64 / requests,
            refused_twice: twice.refused.all() as f64 / (2.0 * requests),
            processor: f64::NAN,
            stage: 0,
            times: Times { median: f64::NAN, p10: f64::NAN, p90: f64::NAN, processes: 0 },
        }
    }

    /// Runs a child to its end.
    fn child(
        &self,
        going: &[usize],
        piped: &[u8],
        arguments: &[&str],
        mut hear: impl FnMut(Said),
    ) -> Result<()> {
        let mut command = Command::new(&self.program);
        command.arg("child").args(arguments);
        let texts = going.iter().map(|index| self.candidates[*index].to_string());
        command.args(texts.flat_map(|text| ["--candidate".to_owned(), text]));
        let mut process = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start {}", self.program.display()))?;
        let mut input = process.stdin.take().context("the child's input is piped")?;
        // It reads all of it before it says anything. One that has failed has said so itself.
        let _ = input.write_all(piped);
        drop(input);
        let output = process.stdout.take().context("the child's output is piped")?;
        let mut heard = Ok(());
        for line in BufReader::new(output).lines().map_while(std::io::Result::ok) {
            match serde_json::from_str(&line) {
                Ok(said) => hear(said),
                Err(error) => heard = Err(error).with_context(|| format!("a child said `{line}`")),
            }
        }
        let status = process.wait().context("cannot wait for the child")?;
        ensure!(status.success(), "a child process failed: {status}");
        heard
    }
}

/// Writes down the times of a stage.
fn note(entries: &mut [Entry], going: &[usize], times: &StageTimes, stage: usize, prices: &Prices) {
    for (index, times) in going.iter().zip(times) {
        let entry = &mut entries[*index];
        entry.stage = stage;
        entry.times = Times::of(times);
        entry.processor = prices.share(entry.times.median);
    }
}

/// Takes out of the times what made a process faster or slower for all: its factor is the geometric
/// mean over the candidates against the median process. Many machines have phases in which
/// everything takes up to twice as long.
fn level(times: &mut StageTimes) {
    let processes = times.first().map_or(0, Vec::len);
    let mean = |process: usize| {
        let logs: f64 = times.iter().map(|times| times[process].ln()).sum();
        (logs / times.len() as f64).exp()
    };
    let means: Vec<f64> = (0..processes).map(mean).collect();
    let usual = Times::of(&means).median;
    for times in times {
        times.iter_mut().zip(&means).for_each(|(time, mean)| *time *= usual / mean);
    }
}

/// Makes the times of those that went no further than this stage comparable with those of the last
/// one: by the factor that lies between the two for those that were in both.
fn scale(entries: &mut [Entry], stage: usize, going: &[usize], times: &StageTimes) {
    let both = going.iter().zip(times).filter(|(index, _)| entries[**index].stage == 3);
    let mut factors: Vec<f64> =
        both.map(|(index, times)| entries[*index].times.median / Times::of(times).median).collect();
    factors.sort_by(f64::total_cmp);
    let factor = quantile(&factors, 0.5);
    for entry in entries.iter_mut().filter(|entry| entry.stage == stage && factor.is_finite()) {
        let times = &mut entry.times;
        let all = [&mut times.median, &mut times.p10, &mut times.p90, &mut entry.processor];
        all.into_iter().for_each(|time| *time *= factor);
    }
}

/// Lists the candidates that continue to the next stage, of those that served everything: those
/// near the fastest, or those whose difference to it nobody would notice. Of too many, these are
/// the fastest, those that take the least memory, and those that no other one beats in both. The
/// fastest of each strategy continues in any case: a few rounds are not enough to rule out a
/// strategy, and everybody wants to know how the others compare, those without a pool too.
fn better(entries: &[Entry], going: &[usize], stage: usize, prices: &Prices) -> Vec<usize> {
    let mut fit: Vec<usize> = going.iter().copied().filter(|one| entries[*one].serves_all()).collect();
    fit.sort_by(|one, other| entries[*one].times.median.total_cmp(&entries[*other].times.median));
    let Some(first) = fit.first() else { return Vec::new() };
    let fastest = entries[*first].times.median;
    // A little more than what counts in the end.
    let limit = fastest * GOES_ON[stage] + NOTICED * 1e9 / prices.rate.max(1e-9);
    let mut seen = BTreeSet::new();
    let mut firsts = fit.clone();
    firsts.retain(|one| seen.insert(entries[*one].candidate.strategy()));
    let near = fit.iter().filter(|one| entries[**one].times.median <= limit).count();
    fit.truncate(near.max(LEAST[stage]));
    let (most, half) = (MOST[stage], MOST[stage] / 2);
    if fit.len() > most {
        let costs: Vec<_> =
            fit.iter().map(|one| (entries[*one].times.median, entries[*one].bytes())).collect();
        let unbeaten: Vec<usize> = front(&costs).into_iter().map(|one| fit[one]).collect();
        fit[half..].sort_by_key(|one| (!unbeaten.contains(one), entries[*one].bytes()));
        fit.truncate(most);
    }
    firsts.retain(|one| !fit.contains(one));
    fit.extend(firsts);
    fit
}

#[cfg(test)]
mod tests {
    use super::super::source::Refused;
    use super::*;

    /// A program that asks so often that each nanosecond counts.
    const BUSY: Prices = Prices { memory_limit: None, rate: 1e9 };

    fn entry(median: f64, bytes: u64, exhausted: u64) -> Entry {
        let refused = Refused { exhausted, too_large: 0 };
        Entry {
            strategy: String::new(),
            candidate: Candidate::Vec,
            counted: Counted { refused, wrong: 0, resident_bytes: Some(bytes), reserved_bytes: 0 },
            twice: Counted::default(),
            refused: exhausted as f64,
            refused_twice: 0.0,
            processor: 0.0,
            stage: 1,
            times: Times { median, p10: median, p90: median, processes: 1 },
        }
    }

    #[test]
    fn who_refuses_does_not_go_on() {
        let entries = [entry(1.0, 1, 5), entry(9.0, 1, 0), entry(8.0, 1, 0)];
        assert_eq!(better(&entries, &[0, 1, 2], 0, &BUSY), [2, 1]);
    }

    #[test]
    fn a_slow_process_is_taken_out() {
        let mut times = vec![vec![10.0, 20.0, 10.0], vec![30.0, 60.0, 30.0]];
        level(&mut times);
        let expected = [[10.0; 3], [30.0; 3]];
        assert!(times.concat().iter().zip(expected.concat()).all(|(one, other)| (one - other).abs() < 1e-9));
    }

    #[test]
    fn a_slow_stage_is_taken_out() {
        // The machine was twice as fast in the first stage.
        let mut entries = [entry(100.0, 1, 0), entry(60.0, 1, 0)];
        entries[0].stage = 3;
        scale(&mut entries, 1, &[0, 1], &vec![vec![50.0; 3], vec![60.0; 3]]);
        assert_eq!((entries[0].times.median, entries[1].times.median), (100.0, 120.0));
    }

    #[test]
    fn the_fast_and_the_small_go_on() {
        // Twenty that are equally fast, of which each takes less memory than the one before; and a
        // slow one.
        let mut entries: Vec<Entry> =
            (0..20).map(|n| entry(100.0 + f64::from(n) / 10.0, 100 - n as u64, 0)).collect();
        entries.push(entry(200.0, 0, 0));
        let all: Vec<usize> = (0..21).collect();
        assert_eq!(better(&entries, &all, 1, &BUSY), [0, 1, 2, 3, 19, 18, 17, 16]);
    }

    #[test]
    fn the_fastest_of_each_strategy_goes_on() {
        let mut entries: Vec<Entry> = (0..8).map(|n| entry(100.0 + f64::from(n), 1, 0)).collect();
        let mut slow = |median, refused| {
            entries.push(entry(median, 1, refused));
            entries.last_mut().unwrap().candidate = "ring".parse().unwrap();
        };
        slow(200.0, 1);
        slow(400.0, 0);
        slow(300.0, 0);
        let all: Vec<usize> = (0..11).collect();
        for stage in [0, 1] {
            assert_eq!(better(&entries, &all, stage, &BUSY), [0, 1, 2, 3, 4, 5, 6, 7, 10]);
        }
    }
}
