//! The replay: the recorded requests once, over a candidate that nothing has touched before.
//!
//! The pools are built inside of it, and every page is touched for the first time as it would be in
//! the program: without a pool too. So a program that requests a buffer once pays the same with a
//! pool as without.
//!
//! Time is processor time of the workers, without what they wait for each other: how many other
//! programs run at the same time changes little. Memory is measured at some steps, which take no
//! time of the replay.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Barrier, OnceLock};
use std::thread;

use bufcore::ConfigError;
use rtrb::{Consumer, Producer, RingBuffer};
use serde::{Deserialize, Serialize};

use super::page_touch;
use super::schedule::{Schedule, Step};
use super::source::{self, Held, Source, Visitor};
use crate::measure::place::pin;
use crate::measure::process::{give_back, resident, thread_faults, thread_time};

/// What a replay found.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Replayed {
    /// Processor time of all workers in nanoseconds, without the waits.
    pub(crate) nanos: u64,
    /// Their page faults.
    pub(crate) faults: u64,
    /// Requests that the pools refused.
    pub(crate) refused: u64,
    /// Buffers whose bytes were not those that were written.
    pub(crate) wrong: u64,
    /// By how much resident memory grew at most; 0 where the system does not say.
    pub(crate) bytes: u64,
}

/// How many buffers a worker has released. In a line of its own, with the one that is fetched
/// along.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Progress(AtomicU64);

/// A buffer on its way to another worker, with the place that it is known by there.
type Sent<S> = (u32, Held<<S as Source>::Buf>);

/// What all workers share.
struct Shared<'a> {
    schedule: &'a Schedule,
    progress: Vec<Progress>,
    /// Resident memory before the pools were built, where the system says it, and the most that it
    /// grew by.
    before: OnceLock<u64>,
    bytes: AtomicU64,
}

/// A worker.
struct Worker<'a, S: Source> {
    shared: &'a Shared<'a>,
    index: usize,
    sources: Vec<S>,
    /// What this worker is to release, by place.
    live: Vec<Option<Held<S::Buf>>>,
    /// To and from the other workers; none for itself.
    out: Vec<Option<Producer<Sent<S>>>>,
    into: Vec<Option<Consumer<Sent<S>>>>,
    /// What this worker knows of the others' releases.
    seen: Vec<u64>,
    /// Processor time that passed in waits and measurements.
    aside_ns: u64,
    found: Replayed,
}

/// Replays the schedule.
pub(crate) struct Replay<'a>(pub(crate) &'a Schedule);

impl Visitor for Replay<'_> {
    type Out = Result<Replayed, ConfigError>;

    fn visit<S: Source>(self, make: impl FnOnce() -> Result<Vec<S>, ConfigError>) -> Self::Out {
        let schedule = self.0;
        let workers = schedule.parts.len();
        let shared = &Shared {
            schedule,
            progress: (0..workers).map(|_| Progress::default()).collect(),
            before: OnceLock::new(),
            bytes: AtomicU64::new(0),
        };
        // What the workers have before any pool is built is not the candidate's.
        let mut players: Vec<_> = (0..workers).map(|index| Worker::<S>::new(shared, index)).collect();
        connect(&mut players, schedule.places);
        give_back();
        if let Some(before) = resident() {
            let _ = shared.before.set(before);
        }
        let (start, faults) = (thread_time(), thread_faults());
        let mut sources: Vec<Option<S>> = make()?.into_iter().map(Some).collect();
        let mut found = Replayed {
            nanos: thread_time() - start,
            faults: thread_faults() - faults,
            ..Replayed::default()
        };
        for (player, part) in players.iter_mut().zip(&schedule.parts) {
            let own = part.sources.iter().filter_map(|number| sources[*number as usize].take());
            player.sources.extend(own);
        }
        let barrier = &Barrier::new(workers);
        let mut players = players.into_iter();
        let first = players.next();
        thread::scope(|scope| {
            // A program of one thread has the first arena of the C library: so has this.
            let others: Vec<_> = players.map(|worker| scope.spawn(move || worker.play(barrier))).collect();
            let mut all: Vec<Replayed> = first.map(|worker| worker.play(barrier)).into_iter().collect();
            all.extend(
                others
                    .into_iter()
                    .map(|other| other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))),
            );
            for one in all {
                found.nanos += one.nanos;
                found.faults += one.faults;
                found.refused += one.refused;
                found.wrong += one.wrong;
            }
        });
        // ORDER: Relaxed: the workers have ended.
        found.bytes = shared.bytes.load(Ordering::Relaxed);
        Ok(found)
    }
}

/// Connects each worker with each other.
fn connect<S: Source>(workers: &mut [Worker<'_, S>], places: usize) {
    for from in 0..workers.len() {
        for to in (0..workers.len()).filter(|to| *to != from) {
            let (producer, consumer) = RingBuffer::new(places);
            workers[from].out[to] = Some(producer);
            workers[to].into[from] = Some(consumer);
        }
    }
}

impl<'a, S: Source> Worker<'a, S> {
    fn new(shared: &'a Shared<'a>, index: usize) -> Self {
        let Schedule { parts, places, .. } = shared.schedule;
        Self {
            shared,
            index,
            sources: Vec::with_capacity(parts[index].sources.len()),
            live: (0..*places).map(|_| None).collect(),
            out: parts.iter().map(|_| None).collect(),
            into: parts.iter().map(|_| None).collect(),
            seen: vec![0; parts.len()],
            aside_ns: 0,
            found: Replayed::default(),
        }
    }

    fn play(mut self, barrier: &Barrier) -> Replayed {
        let workers = self.shared.schedule.parts.len();
        let _here = if workers > 1 { pin(self.index) } else { None };
        barrier.wait();
        let (start, faults) = (thread_time(), thread_faults());
        let mut released = 0;
        for step in &self.shared.schedule.parts[self.index].steps {
            match *step {
                Step::Await { worker, releases } => {
                    self.await_releases(worker as usize, u64::from(releases));
                }
                Step::Acquire { source, bytes, place, to } => self.acquire(source, bytes, place, to),
                Step::Release { from, place, bytes } => {
                    self.arrival(from as usize, place as usize);
                    self.release(place as usize, bytes as usize);
                    released += 1;
                    // ORDER: Release pairs with the Acquire of `await_releases`.
                    self.shared.progress[self.index].0.store(released, Ordering::Release);
                }
                Step::Look => self.look(),
            }
        }
        self.found.nanos = (thread_time() - start).saturating_sub(self.aside_ns);
        self.found.faults = thread_faults() - faults;
        self.found
    }

    /// Measures memory.
    #[cold]
    fn look(&mut self) {
        let start = thread_time();
        let grown =
            resident().zip(self.shared.before.get()).map_or(0, |(now, before)| now.saturating_sub(*before));
        // ORDER: Relaxed: a number, which is read when the workers have ended.
        self.shared.bytes.fetch_max(grown, Ordering::Relaxed);
        self.aside_ns += thread_time() - start;
    }

    /// Waits until that worker has released as many buffers.
    #[inline(always)]
    fn await_releases(&mut self, worker: usize, releases: u64) {
        if self.seen[worker] >= releases {
            return;
        }
        let progress = &self.shared.progress[worker].0;
        self.aside_ns += wait(|| {
            // ORDER: Acquire pairs with the Release in `play`: what the other did with the buffers
            // happened before.
            self.seen[worker] = progress.load(Ordering::Acquire);
            self.seen[worker] >= releases
        });
    }

    /// Takes a buffer, writes to it, and gives it to the worker that is to release it.
    #[inline(always)]
    fn acquire(&mut self, source: u32, bytes: u32, place: u32, to: u32) {
        let bytes = bytes as usize;
        let mut buf = source::take(&mut self.sources[source as usize], bytes, &mut self.found.refused);
        page_touch::mark(&mut buf, bytes.min(self.shared.schedule.touched), place as u8);
        match &mut self.out[to as usize] {
            None => self.live[place as usize] = Some(buf),
            Some(queue) => {
                let pushed = queue.push((place, buf));
                debug_assert!(pushed.is_ok(), "the queue has room for all places");
            }
        }
    }

    /// Waits until the buffer of that place has come from that worker.
    #[inline(always)]
    fn arrival(&mut self, from: usize, place: usize) {
        let Some(queue) = &mut self.into[from] else { return };
        while self.live[place].is_none() {
            if let Ok((arrived, buf)) = queue.pop() {
                self.live[arrived as usize] = Some(buf);
            } else {
                self.aside_ns += wait(|| !queue.is_empty());
            }
        }
    }

    /// Looks at the buffer of that place, and drops it.
    #[inline(always)]
    fn release(&mut self, place: usize, bytes: usize) {
        let Some(mut buf) = self.live[place].take() else { return };
        let touched = bytes.min(self.shared.schedule.touched);
        self.found.wrong += u64::from(!page_touch::ends(&mut buf, touched, place as u8));
    }
}

/// Waits until `is_there` says so, and returns how much processor time that took.
#[inline(always)]
fn wait(mut is_there: impl FnMut() -> bool) -> u64 {
    /// Looks before others are let run: there may be fewer processors than workers.
    const PATIENCE: u32 = 200;
    if is_there() {
        return 0;
    }
    let start = thread_time();
    let mut looks = 0;
    while !is_there() {
        looks += 1;
        if looks < PATIENCE {
            core::hint::spin_loop();
        } else {
            thread::yield_now();
        }
    }
    thread_time() - start
}

#[cfg(test)]
mod tests {
    use super::super::candidate::{Candidate, pool, sweep};
    use super::super::strategies::Owner;
    use super::super::traffic::tests::{random, trace};
    use super::super::traffic::{Needs, Traffic};
    use super::*;

    fn replay(candidate: &Candidate, schedule: &Schedule) -> Replayed {
        candidate
            .accept(schedule.pools, Replay(schedule))
            .unwrap_or_else(|error| panic!("{candidate}: {error}"))
    }

    #[test]
    fn all_candidates_keep_all_bytes_across_threads() {
        for (threads, workers) in [(1, 1), (4, 2), (5, 3)] {
            let traffic = Traffic::new(&random(threads, 250, 5000), 0);
            let schedule = Schedule::new(&traffic, workers);
            for candidate in sweep(&Needs::of(&traffic)).into_iter().chain([Candidate::Vec]) {
                let found = replay(&candidate, &schedule);
                assert_eq!(found.wrong, 0, "{candidate}");
                let is_shared = candidate.in_table().is_some_and(|one| one.owner == Owner::All);
                assert!(!is_shared || found.refused == 0, "{candidate}: {found:?}");
                assert!(found.nanos > 0, "{candidate}");
            }
        }
    }

    #[test]
    fn a_pool_that_is_too_small_refuses() {
        // The second buffer of the first thread finds its only slot taken; that of the second
        // thread does not. The last is too large.
        let events = [(0, 0, Some(10)), (0, 1, Some(10)), (1, 2, Some(10)), (1, 0, None), (0, 1, None)];
        let events = [&events[..], &[(0, 0, Some(90))]].concat();
        let schedule = Schedule::new(&Traffic::new(&trace(&events), 0), 1);
        let small = pool("slot", &[("slots", 1), ("capacity", 64)]).unwrap();
        assert_eq!(replay(&small, &schedule).refused, 2);
        let impossible = pool("slot", &[("slots", 0), ("capacity", 64)]).unwrap();
        assert!(impossible.accept(schedule.pools, Replay(&schedule)).is_err());
    }
}
