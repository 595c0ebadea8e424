//! `threads`: so many threads acquire, touch each page, drop. One operation is what one thread does in a loop, so the time
//! stays level from one thread to as many as there are cores if nothing is contended.

use core::hint::black_box;
use core::marker::PhantomData;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use super::not_mine;
use crate::block::touch_pages;
use crate::case::{Case, Plan};
use crate::cell::Cell;
use crate::check;
use crate::contestant::{Pool, Unsupported};

const SIZES: [usize; 2] = [4 << 10, 64 << 10];
/// Operations of each thread before the clock starts, which fill its caches.
const WARM_UP: usize = 32;

pub(super) fn cases() -> Vec<Case> {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let mut counts: Vec<usize> =
        (0..).map(|power| 1 << power).take_while(|&count| count < 2 * cores).collect();
    counts.extend([cores, 2 * cores]);
    counts.sort_unstable();
    counts.dedup();
    SIZES
        .into_iter()
        .flat_map(|bytes| counts.iter().map(move |&threads| Case::Threads { threads, bytes }))
        .collect()
}

struct Threads<T> {
    /// Makes what one thread of a run gets.
    seed: Box<dyn Fn() -> T>,
    plan: Plan,
    threads: usize,
    bytes: usize,
    note: &'static str,
}

fn plan(case: &Case) -> Result<(Plan, usize, usize), Unsupported> {
    let &Case::Threads { threads, bytes } = case else { return Err(not_mine(case)) };
    Ok((Plan::equal(2 * threads, bytes).threads(threads), threads, bytes))
}

/// Builds a pool in each thread.
struct Private<P> {
    plan: Plan,
    pool: PhantomData<fn() -> P>,
}

/// The cell of a contestant that has one pool for all threads.
pub(crate) fn shared<P: Pool + Clone + Send>(case: &Case) -> Result<Box<dyn Cell>, Unsupported> {
    let (plan, threads, bytes) = plan(case)?;
    let pool = P::build(&plan)?;
    let seed = Box::new(move || Handle(pool.clone()));
    Ok(Box::new(Threads { seed, plan, threads, bytes, note: "one pool for all threads" }))
}

/// The cell of a contestant that has one pool per thread.
pub(crate) fn private<P: Pool>(case: &Case) -> Result<Box<dyn Cell>, Unsupported> {
    let (_, threads, bytes) = plan(case)?;
    let plan = Plan::equal(1, bytes);
    // Whether it can be built at all is known before a thread needs it.
    drop(P::build(&plan)?);
    let seed = Box::new(move || Private::<P> { plan, pool: PhantomData });
    Ok(Box::new(Threads { seed, plan, threads, bytes, note: "one pool per thread" }))
}

/// A thread's own handle to a shared pool.
struct Handle<P>(P);

/// What is moved into a thread and becomes its pool there.
trait Seed: Send {
    type Pool: Pool;
    fn grow(self) -> Self::Pool;
}

impl<P: Pool + Send> Seed for Handle<P> {
    type Pool = P;
    fn grow(self) -> P {
        self.0
    }
}

impl<P: Pool> Seed for Private<P> {
    type Pool = P;
    fn grow(self) -> P {
        P::build(&self.plan).unwrap_or_else(|reason| panic!("built before, not now: {}", reason.0))
    }
}

impl<T: Seed> Threads<T> {
    /// Runs `work` in each thread and returns the time from the first start to the last end.
    fn each<R: Send>(&self, work: impl Fn(&mut T::Pool, usize) -> R + Sync) -> (Duration, Vec<R>) {
        let barrier = Barrier::new(self.threads);
        let seeds: Vec<T> = (0..self.threads).map(|_| (self.seed)()).collect();
        let bytes = self.bytes;
        let spans: Vec<(Instant, Instant, R)> = thread::scope(|scope| {
            let handles: Vec<_> = seeds
                .into_iter()
                .enumerate()
                .map(|(index, seed)| {
                    let (barrier, work) = (&barrier, &work);
                    scope.spawn(move || {
                        let mut pool = seed.grow();
                        for _ in 0..WARM_UP {
                            let mut buf = pool.acquire(bytes);
                            touch_pages(&mut buf, bytes);
                        }
                        barrier.wait();
                        let start = Instant::now();
                        let result = work(&mut pool, index);
                        (start, Instant::now(), result)
                    })
                })
                .collect();
            handles
                .into_iter()
                .map(|handle| handle.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
                .collect()
        });
        let start = spans.iter().map(|span| span.0).min();
        let end = spans.iter().map(|span| span.1).max();
        let elapsed = start.zip(end).map_or(Duration::ZERO, |(start, end)| end - start);
        (elapsed, spans.into_iter().map(|span| span.2).collect())
    }
}

impl<T: Seed> Cell for Threads<T> {
    fn check(&mut self) -> Result<(), String> {
        const ROUNDS: u64 = 200;
        let bytes = self.bytes;
        // All threads at once, each with bytes of its own.
        let (_, results) = self.each(|pool, thread| {
            for round in 0..ROUNDS {
                let seed = (thread as u64 + 1) * ROUNDS + round;
                let mut buf = pool.acquire(bytes);
                check::fill(&mut buf, bytes.min(4096), seed);
                check::verify(&mut buf, bytes.min(4096), seed)?;
            }
            check::pool(pool, &Plan { room: 2, ..self.plan }, |_| bytes)
        });
        results.into_iter().collect()
    }

    fn run(&mut self, iterations: u64) -> Duration {
        let bytes = self.bytes;
        let work = |pool: &mut T::Pool, _| {
            for _ in 0..iterations {
                let bytes = black_box(bytes);
                let mut buf = pool.acquire(bytes);
                touch_pages(&mut buf, bytes);
            }
        };
        self.each(work).0
    }

    fn operations(&self) -> u64 {
        1
    }

    fn note(&self) -> Option<&'static str> {
        Some(self.note)
    }
}
