//! The replay that is timed: workers on processors of their own, which hand the buffers over to
//! each other.
//!
//! A worker's time is what passes between its first step and its last, without what it waits for
//! the others. So it says how much each request costs whoever does it, not how well the workers
//! happen to overlap. It is taken in many parts, so that what disturbs a run can be told from what
//! the pool does. A disturbance is not in the same part each time.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Barrier};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use bufcore::ConfigError;
use rtrb::{Consumer, Producer, RingBuffer};

use super::candidate::Candidate;
use super::page_touch;
use super::schedule::{Schedule, Step};
use super::source::{Held, Refused, Source, Visitor};
use crate::measure::place::pin;
use crate::measure::statistics::quantile;

/// What a worker has to say of a run.
#[derive(Debug, Clone, Default)]
pub(crate) struct Played {
    /// Time of each part of the steps in nanoseconds, without the waits.
    pub(crate) nanos: Vec<f64>,
    /// Buffers whose bytes were not those that were written.
    pub(crate) wrong: u64,
    /// Requests that the pools refused.
    pub(crate) refused: Refused,
}

/// How many buffers a worker has released. In a line of its own, with the one that is fetched
/// along.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Progress(AtomicU64);

/// A worker's part of one candidate.
trait Player: Send {
    fn play(&mut self) -> Played;
}

/// A buffer on its way to another worker, with the place that it is known by there.
type Sent<S> = (u32, Held<<S as Source>::Buf>);

/// A worker's part of one candidate, with its pools.
struct Part<S: Source> {
    schedule: Arc<Schedule>,
    index: usize,
    sources: Vec<S>,
    /// What this worker is to release, by place.
    live: Vec<Option<Held<S::Buf>>>,
    /// To and from the other workers; none for itself.
    out: Vec<Option<Producer<Sent<S>>>>,
    into: Vec<Option<Consumer<Sent<S>>>>,
    progress: Arc<Vec<Progress>>,
    /// What each worker had released before this run.
    before: Vec<u64>,
    /// What this worker knows of the others.
    seen: Vec<u64>,
}

impl<S: Source> Player for Part<S> {
    fn play(&mut self) -> Played {
        let played = self.steps();
        for (before, part) in self.before.iter_mut().zip(&self.schedule.parts) {
            *before += u64::from(part.releases);
        }
        played
    }
}

/// The number of parts into which the steps of a worker are cut, if that leaves enough steps in
/// each.
const PARTS: usize = 64;
const LEAST_STEPS: usize = 200;

impl<S: Source> Part<S> {
    fn steps(&mut self) -> Played {
        let schedule = Arc::clone(&self.schedule);
        let part = &schedule.parts[self.index];
        let mut played = Played::default();
        played.nanos.reserve(PARTS);
        let mut released = self.before[self.index];
        let mut start = Instant::now();
        for steps in part.steps.chunks(part.steps.len().div_ceil(PARTS).max(LEAST_STEPS)) {
            let mut waited = Duration::ZERO;
            for step in steps {
                match *step {
                    Step::Await { worker, releases } => {
                        waited += self.await_releases(worker as usize, releases)
                    }
                    Step::Acquire { source, bytes, place, to } => {
                        let buf = self.acquire(source, bytes, place, &mut played);
                        self.hand(buf, place, to);
                    }
                    Step::Release { from, place, bytes } => {
                        waited += self.arrival(from as usize, place as usize);
                        self.release(place as usize, bytes as usize, &mut played);
                        released += 1;
                        // ORDER: Release pairs with the Acquire of `await_releases`.
                        self.progress[self.index].0.store(released, Ordering::Release);
                    }
                }
            }
            let end = Instant::now();
            played.nanos.push((end - start).saturating_sub(waited).as_nanos() as f64);
            start = end;
        }
        played
    }

    /// Waits until that worker has released `releases` buffers since the start of the run; how
    /// long.
    #[inline(always)]
    fn await_releases(&mut self, worker: usize, releases: u32) -> Duration {
        let wanted = self.before[worker] + u64::from(releases);
        if self.seen[worker] >= wanted {
            return Duration::ZERO;
        }
        let progress = &self.progress[worker].0;
        wait(|| {
            // ORDER: Acquire pairs with the Release in `steps`: what the other did with the buffers
            // happened before.
            self.seen[worker] = progress.load(Ordering::Acquire);
            self.seen[worker] >= wanted
        })
    }

    /// Takes a buffer and writes to it.
    #[inline(always)]
    fn acquire(&mut self, source: u32, bytes: u32, place: u32, played: &mut Played) -> Held<S::Buf> {
        let bytes = bytes as usize;
        let mut buf = played.refused.take(&mut self.sources[source as usize], bytes);
        page_touch::mark(&mut buf, bytes, place as u8);
        buf
    }

    /// Gives a buffer to the worker that is to release it.
    #[inline(always)]
    fn hand(&mut self, buf: Held<S::Buf>, place: u32, to: u32) {
        match &mut self.out[to as usize] {
            None => self.live[place as usize] = Some(buf),
            Some(queue) => {
                let pushed = queue.push((place, buf));
                debug_assert!(pushed.is_ok(), "the queue has room for all places");
            }
        }
    }

    /// Waits until the buffer of that place has come from that worker; how long.
    #[inline(always)]
    fn arrival(&mut self, from: usize, place: usize) -> Duration {
        let mut waited = Duration::ZERO;
        if let Some(queue) = &mut self.into[from] {
            while self.live[place].is_none() {
                if let Ok((arrived, buf)) = queue.pop() {
                    self.live[arrived as usize] = Some(buf);
                } else {
                    waited += wait(|| !queue.is_empty());
                }
            }
        }
        waited
    }

    /// Looks at the buffer of that place, and drops it.
    #[inline(always)]
    fn release(&mut self, place: usize, bytes: usize, played: &mut Played) {
        let Some(mut buf) = self.live[place].take() else { return };
        played.wrong += u64::from(!page_touch::ends(&mut buf, bytes, place as u8));
    }
}

/// Waits until `is_there` says so, and says how long that took.
#[inline(always)]
fn wait(mut is_there: impl FnMut() -> bool) -> Duration {
    /// Looks before others are let run: there may be fewer processors than workers.
    const PATIENCE: u32 = 200;
    if is_there() {
        return Duration::ZERO;
    }
    let start = Instant::now();
    let mut looks = 0;
    while !is_there() {
        looks += 1;
        if looks < PATIENCE {
            core::hint::spin_loop();
        } else {
            thread::yield_now();
        }
    }
    start.elapsed()
}

/// Makes the workers' parts of a candidate.
struct Parts<'a>(&'a Arc<Schedule>);

impl Visitor for Parts<'_> {
    type Out = Result<Vec<Box<dyn Player>>, ConfigError>;

    fn visit<S: Source>(self, make: impl FnOnce() -> Result<Vec<S>, ConfigError>) -> Self::Out {
        let schedule = self.0;
        let workers = schedule.parts.len();
        let progress: Arc<Vec<Progress>> = Arc::new((0..workers).map(|_| Progress::default()).collect());
        let mut sources: Vec<Option<S>> = make()?.into_iter().map(Some).collect();
        let mut parts: Vec<Part<S>> = (0..workers)
            .map(|index| Part {
                schedule: Arc::clone(schedule),
                index,
                sources: schedule.parts[index]
                    .sources
                    .iter()
                    .filter_map(|number| sources[*number as usize].take())
                    .collect(),
                live: (0..schedule.places).map(|_| None).collect(),
                out: (0..workers).map(|_| None).collect(),
                into: (0..workers).map(|_| None).collect(),
                progress: Arc::clone(&progress),
                before: vec![0; workers],
                seen: vec![0; workers],
            })
            .collect();
        for from in 0..workers {
            for to in (0..workers).filter(|to| *to != from) {
                let (producer, consumer) = RingBuffer::new(schedule.places);
                parts[from].out[to] = Some(producer);
                parts[to].into[from] = Some(consumer);
            }
        }
        Ok(parts.into_iter().map(|part| Box::new(part) as Box<dyn Player>).collect())
    }
}

/// Threads that play candidates, all of them the same one at a time.
pub(crate) struct Stage {
    schedule: Arc<Schedule>,
    commands: Vec<Sender<usize>>,
    answers: Vec<Receiver<Played>>,
    threads: Vec<JoinHandle<()>>,
}

impl Stage {
    /// Builds the pools of all candidates, and starts the workers.
    ///
    /// # Errors
    ///
    /// When a pool cannot be built.
    pub(crate) fn new(schedule: Schedule, candidates: &[Candidate]) -> Result<Self> {
        let schedule = Arc::new(schedule);
        let workers = schedule.parts.len();
        let mut parts: Vec<Vec<Box<dyn Player>>> = (0..workers).map(|_| Vec::new()).collect();
        for candidate in candidates {
            let built = candidate.accept(schedule.pools, Parts(&schedule));
            let built = built.with_context(|| format!("cannot build {candidate}"))?;
            parts.iter_mut().zip(built).for_each(|(parts, part)| parts.push(part));
        }
        let barrier = Arc::new(Barrier::new(workers));
        let (mut commands, mut answers, mut threads) = (Vec::new(), Vec::new(), Vec::new());
        for (index, mut parts) in parts.into_iter().enumerate() {
            let (command, orders) = mpsc::channel::<usize>();
            let (answer, results) = mpsc::channel();
            let barrier = Arc::clone(&barrier);
            threads.push(thread::spawn(move || {
                let _here = pin(index);
                for candidate in orders {
                    barrier.wait();
                    // Nobody listens any more: the others have failed.
                    if answer.send(parts[candidate].play()).is_err() {
                        return;
                    }
                }
            }));
            commands.push(command);
            answers.push(results);
        }
        Ok(Self { schedule, commands, answers, threads })
    }

    /// Replays all on one candidate. By worker.
    ///
    /// # Errors
    ///
    /// When a worker is gone, or found wrong bytes.
    fn run(&self, candidate: usize) -> Result<Vec<Played>> {
        for command in &self.commands {
            command.send(candidate).ok().context("a worker has ended")?;
        }
        let played: Vec<Played> = self
            .answers
            .iter()
            .map(|answer| answer.recv().context("a worker has failed"))
            .collect::<Result<_>>()?;
        let wrong: u64 = played.iter().map(|played| played.wrong).sum();
        ensure!(wrong == 0, "{wrong} buffers came back with wrong bytes");
        Ok(played)
    }

    /// Times of the parts of all workers, in nanoseconds.
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run).
    pub(crate) fn nanos(&self, candidate: usize) -> Result<Vec<f64>> {
        Ok(self.run(candidate)?.into_iter().flat_map(|played| played.nanos).collect())
    }

    /// Returns time per request from such times of several rounds: of each part the median.
    pub(crate) fn per_request(&self, rounds: &[Vec<f64>]) -> f64 {
        let parts = rounds.first().map_or(0, Vec::len);
        let sum: f64 = (0..parts)
            .map(|part| {
                let mut times: Vec<f64> = rounds.iter().map(|round| round[part]).collect();
                times.sort_by(f64::total_cmp);
                quantile(&times, 0.5)
            })
            .sum();
        sum / self.schedule.buffers as f64
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        self.commands.clear();
        for thread in self.threads.drain(..) {
            // One that failed has said so.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::candidate::{pool, sweep};
    use super::super::traffic::tests::random;
    use super::super::traffic::{Needs, Traffic};
    use super::*;

    #[test]
    fn all_candidates_keep_all_bytes_across_threads() {
        for (threads, workers) in [(1, 1), (4, 2), (5, 3)] {
            let traffic = Traffic::new(&random(threads, 250, 5000));
            let needs = Needs::of(&traffic);
            let candidates = sweep(&needs);
            let schedule = Schedule::new(&traffic, workers);
            assert!(workers == 1 || schedule.crossings_kept * 3 > schedule.crossings, "{workers} workers");
            let stage = Stage::new(schedule, &candidates).unwrap();
            for (index, candidate) in candidates.iter().enumerate() {
                for _ in 0..3 {
                    let played = stage.run(index).unwrap_or_else(|error| panic!("{candidate}: {error}"));
                    let refused: u64 = played.iter().map(|played| played.refused.all()).sum();
                    let bounded = candidate.one_per_thread();
                    assert!(bounded || refused == 0, "{candidate} refused {refused}");
                }
                assert!(stage.per_request(&[stage.nanos(index).unwrap()]) > 0.0);
            }
        }
    }

    #[test]
    fn a_pool_that_is_too_small_refuses() {
        let traffic = Traffic::new(&random(2, 2000, 9000));
        let needs = Needs::of(&traffic);
        let small = [
            pool("slot", &[("slots", 1), ("capacity", needs.largest)]).unwrap(),
            pool("slot", &[("slots", needs.own_live), ("capacity", needs.largest / 2)]).unwrap(),
            pool("ring", &[("buffers", 1), ("capacity", needs.largest)]).unwrap(),
        ];
        let stage = Stage::new(Schedule::new(&traffic, 2), &small).unwrap();
        for (index, candidate) in small.iter().enumerate() {
            let played = stage.run(index).unwrap();
            let refused = played.iter().fold(Refused::default(), |sum, played| Refused {
                exhausted: sum.exhausted + played.refused.exhausted,
                too_large: sum.too_large + played.refused.too_large,
            });
            assert!(refused.exhausted > 100, "{candidate}: {refused:?}");
            assert_eq!(refused.too_large > 0, index == 1, "{candidate}: {refused:?}");
        }
    }
}
