//! The replay that counts: as many threads as were recorded, one event after the other in the
//! recorded order.
//!
//! So what the pools refuse, what their caches for each thread hold, and how much memory they take
//! is as it would be in the program. Time means nothing here: most of it goes to changing threads.

use std::cmp::Reverse;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{self, Thread};

use bufcore::ConfigError;
use serde::{Deserialize, Serialize};

use super::page_touch;
use super::source::{Held, Refused, Source, Visitor};
use super::traffic::{Act, Traffic};
use crate::measure::place::pin;
use crate::measure::process::{give_back, resident};

/// Threads at the most. Where more were recorded, some share one.
const MOST_THREADS: usize = 1024;
/// How often memory is looked at in a replay, at equal distances, unless these are shorter than
/// [`EVENTS_EACH`]. It is looked at when the most bytes are out, too.
const LOOKS: usize = 128;
/// A look takes as long as many events.
const EVENTS_EACH: usize = 32;
/// Stack that each thread has used before memory is measured.
const STACK_BYTES: usize = 24 << 10;

/// What was counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Counted {
    /// Requests that the pools did not serve.
    pub(crate) refused: Refused,
    /// Buffers whose bytes were not those that were written.
    pub(crate) wrong: u64,
    /// By how much resident memory grew at its peak: the pages that the candidate touched. Nothing
    /// where the system does not say.
    pub(crate) resident_bytes: Option<u64>,
    /// The most address space that the pools held, as they count it, with what was taken from the
    /// heap in their place.
    pub(crate) reserved_bytes: usize,
}

impl Counted {
    /// Returns memory at its peak: resident, or what the pools say where the system does not.
    pub(crate) fn bytes(&self) -> u64 {
        self.resident_bytes.unwrap_or(self.reserved_bytes as u64)
    }
}

/// What a replay found.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Replayed {
    pub(crate) counted: Counted,
    /// Memory before the first event, and after each event of [`looks`]: resident, or what the
    /// pools say where the system does not.
    pub(crate) bytes: Vec<u64>,
}

/// Replays the traffic.
pub(crate) struct Exact<'a> {
    pub(crate) traffic: &'a Traffic,
    /// All threads run on one processor: that is the shortest way from one to the next.
    pub(crate) processor: usize,
}

/// What the threads share.
struct Shared<'a, S: Source> {
    traffic: &'a Traffic,
    /// The events after which memory is looked at, ascending.
    looks: Vec<usize>,
    /// The event whose turn it is.
    turn: AtomicUsize,
    threads: Vec<OnceLock<Thread>>,
    world: Mutex<World<S>>,
}

/// What belongs to the thread whose turn it is.
struct World<S: Source> {
    /// By number.
    sources: Vec<S>,
    live: Vec<Option<Held<S::Buf>>>,
    /// Bytes that are out, and those of them that are from the heap because a source refused.
    out: usize,
    from_heap: usize,
    /// What was resident before the sources were built.
    before: Option<u64>,
    replayed: Replayed,
}

impl Visitor for Exact<'_> {
    type Out = Result<Replayed, ConfigError>;

    fn visit<S: Source>(self, make: impl FnOnce() -> Result<Vec<S>, ConfigError>) -> Self::Out {
        let traffic = self.traffic;
        let threads = traffic.threads.clamp(1, MOST_THREADS);
        let numbers = traffic.pool_numbers();
        let turns = turns(traffic, threads);
        let shared = Shared::new(traffic, threads);
        // The threads that are started from here stay here as well.
        let _here = pin(self.processor);
        thread::scope(|scope| {
            for (index, turns) in turns.into_iter().enumerate() {
                let (shared, numbers) = (&shared, &numbers);
                scope.spawn(move || {
                    use_stack();
                    let _ = shared.threads[index].set(thread::current());
                    shared.play(turns, numbers);
                });
            }
            while shared.threads.iter().any(|thread| thread.get().is_none()) {
                thread::yield_now();
            }
            // What the candidate takes from here on is new to the process, and counted.
            give_back();
            let before = resident();
            let made = make();
            let mut world = shared.world();
            world.before = before;
            let built = made.map(|sources| world.sources = sources);
            world.look();
            drop(world);
            // Where nothing could be built, all threads find that they are past their last turn.
            let first = if built.is_ok() { 0 } else { traffic.acts.len() };
            // ORDER: Relaxed: what the threads share is behind the lock, and `unpark` shows them
            // the turn.
            shared.turn.store(first, Ordering::Relaxed);
            shared.threads.iter().filter_map(OnceLock::get).for_each(Thread::unpark);
            built
        })
        .map(|()| std::mem::take(&mut shared.world().replayed))
    }
}

/// Returns the numbers of each thread's events.
fn turns(traffic: &Traffic, threads: usize) -> Vec<VecDeque<usize>> {
    // Of the right size at once: vectors that grow leave free memory behind, which would be the
    // candidate's.
    let mut counts = vec![0; threads];
    traffic.acts.iter().for_each(|(thread, _)| counts[*thread as usize % threads] += 1);
    let mut turns: Vec<VecDeque<usize>> = counts.into_iter().map(VecDeque::with_capacity).collect();
    for (index, (thread, _)) in traffic.acts.iter().enumerate() {
        turns[*thread as usize % threads].push_back(index);
    }
    turns
}

impl<'a, S: Source> Shared<'a, S> {
    /// Makes the state before the first turn.
    fn new(traffic: &'a Traffic, threads: usize) -> Self {
        let looks = looks(traffic);
        // Written once: its pages are not the candidate's.
        let mut bytes = vec![1; looks.len() + 1];
        bytes.clear();
        let world = World {
            sources: Vec::new(),
            live: traffic.buffers.iter().map(|_| None).collect(),
            out: 0,
            from_heap: 0,
            before: None,
            replayed: Replayed { counted: Counted::default(), bytes },
        };
        Self {
            traffic,
            looks,
            turn: AtomicUsize::new(usize::MAX),
            threads: (0..threads).map(|_| OnceLock::new()).collect(),
            world: Mutex::new(world),
        }
    }
}

impl<S: Source> Shared<'_, S> {
    fn world(&self) -> MutexGuard<'_, World<S>> {
        self.world.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does the events of one thread, each when it is its turn.
    fn play(&self, mut turns: VecDeque<usize>, numbers: &[Option<u32>]) {
        while let Some(&mine) = turns.front() {
            loop {
                // ORDER: Relaxed: it says whose turn it is, and what was done in others is behind
                // the lock.
                let turn = self.turn.load(Ordering::Relaxed);
                if turn == mine {
                    break;
                }
                if turn != usize::MAX && turn > mine {
                    return;
                }
                thread::park();
            }
            turns.pop_front();
            let (thread, act) = self.traffic.acts[mine];
            let mut world = self.world();
            world.act(self.traffic, act, numbers[thread as usize]);
            if self.looks.binary_search(&mine).is_ok() {
                world.look();
            }
            drop(world);
            // ORDER: Relaxed, as above.
            self.turn.store(mine + 1, Ordering::Relaxed);
            if let Some((next, _)) = self.traffic.acts.get(mine + 1)
                && turns.front() != Some(&(mine + 1))
            {
                let next = &self.threads[*next as usize % self.threads.len()];
                next.get().into_iter().for_each(Thread::unpark);
            }
        }
    }
}

impl<S: Source> World<S> {
    /// Looks at memory.
    fn look(&mut self) {
        let grown = resident().zip(self.before).map(|(now, before)| now.saturating_sub(before));
        let held = self.sources.iter().map(Source::reserved);
        let held: usize = if S::SHARED { held.take(1).sum() } else { held.sum() };
        // What is no pool holds what is out.
        let held = if held == 0 { self.out } else { held + self.from_heap };
        let Replayed { counted, bytes } = &mut self.replayed;
        counted.resident_bytes = counted.resident_bytes.max(grown);
        counted.reserved_bytes = counted.reserved_bytes.max(held);
        bytes.push(grown.unwrap_or(held as u64));
    }

    fn act(&mut self, traffic: &Traffic, act: Act, source: Option<u32>) {
        match act {
            Act::Acquire(number) => {
                let Some(source) = source.and_then(|source| self.sources.get_mut(source as usize)) else {
                    return;
                };
                let bytes = traffic.buffers[number as usize].bytes as usize;
                let mut buf = self.replayed.counted.refused.take(source, bytes);
                self.out += bytes;
                self.from_heap += if matches!(buf, Held::Heap(_)) { bytes } else { 0 };
                page_touch::mark(&mut buf, bytes, number as u8);
                self.live[number as usize] = Some(buf);
            }
            Act::Release(number) => {
                let bytes = traffic.buffers[number as usize].bytes as usize;
                if let Some(mut buf) = self.live[number as usize].take() {
                    self.out -= bytes;
                    self.from_heap -= if matches!(buf, Held::Heap(_)) { bytes } else { 0 };
                    self.replayed.counted.wrong += u64::from(!page_touch::all(&mut buf, bytes, number as u8));
                }
            }
        }
    }
}

/// Returns the events after which memory is looked at, ascending: at equal distances, and when the
/// most bytes are out.
pub(crate) fn looks(traffic: &Traffic) -> Vec<usize> {
    let events = traffic.acts.len();
    let count = (events / EVENTS_EACH).clamp(1, LOOKS);
    let mut looks: Vec<usize> = (1..=count).map(|look| look * events / count - 1).collect();
    // Of several, the first.
    let peak = traffic.bytes_out().enumerate().min_by_key(|(_, out)| Reverse(*out));
    looks.extend(peak.map(|(at, _)| at));
    looks.sort_unstable();
    looks.dedup();
    looks
}

/// Uses as much stack as the replay will, so that this is not taken for the pool's.
#[inline(never)]
fn use_stack() {
    core::hint::black_box([1_u8; STACK_BYTES]);
}

#[cfg(test)]
mod tests {
    use super::super::candidate::{pool, sweep};
    use super::super::traffic::Needs;
    use super::super::traffic::tests::{random, trace};
    use super::*;

    #[test]
    fn right_bytes_and_the_same_refusals_each_time() {
        let traffic = Traffic::new(&random(6, 500, 20_000));
        let needs = Needs::of(&traffic);
        for candidate in sweep(&needs) {
            let count = || candidate.accept(needs.owners, Exact { traffic: &traffic, processor: 0 }).unwrap();
            let (one, other) = (count(), count());
            assert_eq!(one.bytes.len(), looks(&traffic).len() + 1, "{candidate}");
            let (one, other) = (one.counted, other.counted);
            assert_eq!(one.wrong, 0, "{candidate}");
            assert_eq!(one.refused, other.refused, "{candidate}");
            assert!(candidate.one_per_thread() || one.refused == Refused::default(), "{candidate}");
        }
    }

    #[test]
    fn refusals_are_counted_exactly() {
        // The second buffer of the first thread finds its only slot taken; that of the second
        // thread does not.
        let events = [
            (0, 0, Some(10)),
            (0, 1, Some(10)),
            (1, 2, Some(10)),
            (1, 0, None),
            (0, 1, None),
            (0, 0, Some(90)),
        ];
        let traffic = Traffic::new(&trace(&events));
        let candidate = pool("slot", &[("slots", 1), ("capacity", 64)]).unwrap();
        let counted = candidate.accept(2, Exact { traffic: &traffic, processor: 0 }).unwrap().counted;
        assert_eq!(counted.refused, Refused { exhausted: 1, too_large: 1 });
        assert!(counted.reserved_bytes >= 128, "two pools: {counted:?}");
    }

    #[test]
    fn what_cannot_be_built_ends_all_threads() {
        let traffic = Traffic::new(&random(3, 50, 100));
        let impossible = pool("slot", &[("slots", 0), ("capacity", 64)]).unwrap();
        assert!(impossible.accept(3, Exact { traffic: &traffic, processor: 0 }).is_err());
    }
}
