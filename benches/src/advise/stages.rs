//! Runs the candidates in child processes: all of them a few rounds, and the better ones more.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use indicatif::{ProgressBar, ProgressStyle};

use super::candidate::Candidate;
use super::exact::Counted;
use super::record::{Entry, Said, Times};
use super::traffic::Traffic;
use crate::measure::quantile;
use crate::record::Tail;

/// A child that says nothing for so long has failed.
const PATIENCE: Duration = Duration::from_secs(120);
/// Who is within this much of the fastest goes on, after the first stage and after the second.
const GOES_ON: [f64; 2] = [1.3, 1.12];
/// So many go on at the most, and at the least.
const MOST: [usize; 2] = [16, 8];
const LEAST: [usize; 2] = [6, 4];

/// Processes and rounds of a stage.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Size {
    pub(crate) processes: usize,
    pub(crate) rounds: usize,
}

/// How much is done.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Effort {
    /// The first two stages.
    pub(crate) early: [Size; 2],
    /// The last stage at the least; it gets what is left of the time.
    pub(crate) last: Size,
    /// Rounds of the last stage at the most, in each process.
    pub(crate) most_rounds: usize,
    /// Replays in which single operations are timed.
    pub(crate) samples: usize,
    /// What all timing may take, about.
    pub(crate) seconds: f64,
}

impl Effort {
    /// For advice.
    pub(crate) fn usual(seconds: f64) -> Self {
        Self {
            early: [Size { processes: 2, rounds: 3 }, Size { processes: 3, rounds: 4 }],
            last: Size { processes: 7, rounds: 5 },
            most_rounds: 25,
            samples: 3,
            seconds,
        }
    }

    /// To see that all of it runs.
    pub(crate) fn test() -> Self {
        let once = Size { processes: 1, rounds: 1 };
        Self {
            early: [once; 2],
            last: Size { processes: 2, rounds: 2 },
            most_rounds: 2,
            samples: 1,
            seconds: 1.0,
        }
    }
}

/// Everybody's times in a stage: by candidate, process and round.
pub(crate) type StageTimes = Vec<Vec<Vec<f64>>>;

/// What came of it.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// All candidates.
    pub(crate) entries: Vec<Entry>,
    /// Who came to the last stage, by number, with the times there.
    pub(crate) last: Vec<(usize, Vec<Vec<f64>>)>,
}

/// The parent of the children.
pub(crate) struct Parent<'a> {
    pub(crate) program: PathBuf,
    pub(crate) trace: &'a Path,
    pub(crate) events: usize,
    pub(crate) traffic: &'a Traffic,
    pub(crate) candidates: &'a [Candidate],
    pub(crate) bar: ProgressBar,
}

/// A bar that says what is being done.
pub(crate) fn bar(hidden: bool) -> Result<ProgressBar> {
    let bar = if hidden { ProgressBar::hidden() } else { ProgressBar::new(0) };
    bar.set_style(
        ProgressStyle::with_template("{bar:24} {pos:>3} of {len}  {elapsed}  {msg}")
            .context("progress template")?,
    );
    bar.enable_steady_tick(Duration::from_millis(200));
    Ok(bar)
}

impl Parent<'_> {
    /// All three stages.
    pub(crate) fn run(&self, effort: &Effort) -> Result<Outcome> {
        let mut entries = self.count()?;
        let started = Instant::now();
        let mut going: Vec<usize> = (0..entries.len()).collect();
        let mut per_round = 0.0;
        for (stage, size) in effort.early.iter().enumerate() {
            let message = format!("{}: {} candidates", ["first rounds", "more rounds"][stage], going.len());
            let began = Instant::now();
            let times = self.time(&going, *size, &message)?;
            let rounds = size.processes * (size.rounds + 1) * going.len();
            per_round = began.elapsed().as_secs_f64() / rounds as f64;
            note(&mut entries, &going, &times, stage + 1);
            going = better(&entries, &going, stage);
        }
        // Without a pool: everybody wants to know how that compares.
        going.extend((0..entries.len()).filter(|one| entries[*one].candidate.is_control()));
        going.sort_unstable();
        going.dedup();
        let left = effort.seconds - started.elapsed().as_secs_f64();
        // Warming up takes one, and a replay with a clock around each operation two or three.
        let extra = 1.0 + 3.0 * effort.samples as f64 / effort.last.processes as f64;
        let affordable = left / (per_round * (going.len() * effort.last.processes) as f64) - extra;
        let rounds = (affordable.max(0.0) as usize).clamp(effort.last.rounds, effort.most_rounds);
        let message = format!("last rounds: {} candidates", going.len());
        let size = Size { rounds, ..effort.last };
        let times = self.time(&going, size, &message)?;
        note(&mut entries, &going, &times, 3);
        self.bar.set_message("single operations");
        for (place, tail) in self.tails(&going, effort.samples)? {
            if let Some(entry) = going.get(place).and_then(|index| entries.get_mut(*index)) {
                entry.tail = Some(tail);
            }
        }
        Ok(Outcome { entries, last: going.into_iter().zip(times).collect() })
    }

    /// Rounds of these candidates in so many processes.
    pub(crate) fn time(&self, going: &[usize], size: Size, message: &str) -> Result<StageTimes> {
        self.bar.set_message(message.to_owned());
        self.bar.set_length((size.processes * size.rounds * going.len()) as u64);
        self.bar.set_position(0);
        let mut all: StageTimes = vec![Vec::new(); going.len()];
        for _ in 0..size.processes {
            let mut times = vec![Vec::new(); going.len()];
            self.child(going, &["--rounds", &size.rounds.to_string()], |said| {
                if let Said::Time { candidate, nanos } = said
                    && let Some(times) = times.get_mut(candidate)
                {
                    times.push(nanos);
                    self.bar.inc(1);
                }
            })?;
            ensure!(times.iter().all(|times| times.len() == size.rounds), "a child process said too little");
            all.iter_mut().zip(times).for_each(|(all, times)| all.push(times));
        }
        Ok(all)
    }

    /// Single operations; with all bytes written and read before, once.
    fn tails(&self, going: &[usize], samples: usize) -> Result<Vec<(usize, Tail)>> {
        let mut tails = Vec::new();
        self.child(going, &["--rounds", "0", "--samples", &samples.to_string(), "--all-bytes"], |said| {
            if let Said::Tail { candidate, tail } = said {
                tails.push((candidate, tail));
            }
        })?;
        Ok(tails)
    }

    /// Replays in exact order what each candidate refuses and takes, each in a process of its own.
    fn count(&self) -> Result<Vec<Entry>> {
        self.bar.set_message("refusals and memory, in the recorded order");
        self.bar.set_length(self.candidates.len() as u64);
        let mut entries = Vec::new();
        for (index, candidate) in self.candidates.iter().enumerate() {
            let mut found = None;
            self.child(&[index], &[], |said| {
                if let Said::Counted { counted } = said {
                    found = Some(counted);
                }
            })?;
            let counted: Counted = found.with_context(|| format!("nothing was counted of {candidate}"))?;
            let requests = self.traffic.buffers.len() as f64;
            let apart =
                self.traffic.buffers.iter().filter(|buffer| candidate.is_apart(buffer.bytes as usize));
            entries.push(Entry {
                id: candidate.id(),
                candidate: *candidate,
                counted,
                refused: counted.refused.all() as f64 / requests,
                apart: apart.count() as f64 / requests,
                stage: 0,
                times: Times { median: f64::NAN, p10: f64::NAN, p90: f64::NAN, rounds: 0 },
                tail: None,
            });
            self.bar.inc(1);
        }
        Ok(entries)
    }

    /// Runs a child to its end.
    fn child(&self, going: &[usize], arguments: &[&str], mut hear: impl FnMut(Said)) -> Result<()> {
        let mut command = Command::new(&self.program);
        command.arg("advise-child").arg("--trace").arg(self.trace);
        command.args(["--events", &self.events.to_string()]).args(arguments);
        command.args(going.iter().flat_map(|index| ["--candidate".to_owned(), self.candidates[*index].id()]));
        let mut process = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start {}", self.program.display()))?;
        let output = process.stdout.take().context("the child's output is piped")?;
        let (sender, lines) = mpsc::channel();
        let reader = thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(std::io::Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        loop {
            match lines.recv_timeout(PATIENCE) {
                Ok(line) => {
                    hear(serde_json::from_str(&line).with_context(|| format!("a child said `{line}`"))?)
                }
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => {
                    // It may have ended by itself in this very moment.
                    let _ = process.kill();
                    process.wait().context("cannot wait for the child")?;
                    bail!("a child process said nothing for {} s", PATIENCE.as_secs());
                }
            }
        }
        // The pipe is closed by now.
        let _ = reader.join();
        let status = process.wait().context("cannot wait for the child")?;
        ensure!(status.success(), "a child process failed: {status}");
        Ok(())
    }
}

/// Writes down the times of a stage.
fn note(entries: &mut [Entry], going: &[usize], times: &StageTimes, stage: usize) {
    for (index, times) in going.iter().zip(times) {
        let entry = &mut entries[*index];
        entry.stage = stage;
        entry.times = summary(times);
    }
}

/// Median and spread of some rounds.
pub(crate) fn summary(times: &[Vec<f64>]) -> Times {
    let mut nanos = times.concat();
    nanos.sort_by(f64::total_cmp);
    let at = |share| quantile(&nanos, share);
    Times { median: at(0.5), p10: at(0.1), p90: at(0.9), rounds: nanos.len() }
}

/// Who goes on to the next stage: of those that served everything, who is near the fastest; of too many, the fastest and those that take
/// the least memory.
fn better(entries: &[Entry], going: &[usize], stage: usize) -> Vec<usize> {
    let mut fit: Vec<usize> = going.iter().copied().filter(|one| entries[*one].serves_all()).collect();
    fit.sort_by(|one, other| entries[*one].times.median.total_cmp(&entries[*other].times.median));
    let Some(first) = fit.first() else { return Vec::new() };
    let limit = entries[*first].times.median * GOES_ON[stage];
    let near = fit.iter().filter(|one| entries[**one].times.median <= limit).count();
    fit.truncate(near.max(LEAST[stage]));
    let (most, half) = (MOST[stage], MOST[stage] / 2);
    if fit.len() > most {
        fit[half..].sort_by_key(|one| entries[*one].bytes());
        fit.truncate(most);
    }
    fit
}

#[cfg(test)]
mod tests {
    use super::super::source::Refused;
    use super::*;

    fn entry(median: f64, bytes: u64, exhausted: u64) -> Entry {
        let refused = Refused { exhausted, too_large: 0 };
        Entry {
            id: String::new(),
            candidate: Candidate::Vec,
            counted: Counted { refused, wrong: 0, peak_bytes: Some(bytes), reserved_bytes: 0 },
            refused: exhausted as f64,
            apart: 0.0,
            stage: 1,
            times: Times { median, p10: median, p90: median, rounds: 1 },
            tail: None,
        }
    }

    #[test]
    fn who_refuses_does_not_go_on() {
        let entries = [entry(1.0, 1, 5), entry(9.0, 1, 0), entry(8.0, 1, 0)];
        assert_eq!(better(&entries, &[0, 1, 2], 0), [2, 1]);
    }

    #[test]
    fn the_fast_and_the_small_go_on() {
        // Twenty that are equally fast, of which each takes less memory than the one before; and a slow one.
        let mut entries: Vec<Entry> =
            (0..20).map(|n| entry(100.0 + f64::from(n) / 10.0, 100 - n as u64, 0)).collect();
        entries.push(entry(200.0, 0, 0));
        let all: Vec<usize> = (0..21).collect();
        assert_eq!(better(&entries, &all, 1), [0, 1, 2, 3, 19, 18, 17, 16]);
    }
}
