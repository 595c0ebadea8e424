//! Several threads at work at once, each with a handle to one pool or with a pool of its own.

use core::marker::PhantomData;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use crate::harness::place::pin;
use crate::harness::plan::{Plan, Unsupported};
use crate::harness::serve::Pool;

/// Threads, and where each gets its pool from.
pub(crate) struct Crew<T> {
    /// Makes what one thread of a run gets.
    seed: Box<dyn Fn() -> T>,
    pub(crate) threads: usize,
    /// Which of the two it is, for the report.
    pub(crate) note: &'static str,
}

/// What is moved into a thread and becomes its pool there.
pub(crate) trait Seed: Send {
    type Pool: Pool;
    fn grow(self) -> Self::Pool;
}

/// A thread's own handle to a shared pool.
pub(crate) struct Handle<P>(P);

impl<P: Pool + Send> Seed for Handle<P> {
    type Pool = P;
    fn grow(self) -> P {
        self.0
    }
}

/// Builds a pool in each thread.
pub(crate) struct Private<P> {
    plan: Plan,
    pool: PhantomData<fn() -> P>,
}

impl<P: Pool> Seed for Private<P> {
    type Pool = P;
    fn grow(self) -> P {
        P::build(&self.plan).unwrap_or_else(|reason| panic!("built before, not now: {}", reason.0))
    }
}

impl<P: Pool + Clone + Send> Crew<Handle<P>> {
    /// One pool for all threads, built for what all of them ask.
    pub(crate) fn shared(threads: usize, plan: &Plan) -> Result<Self, Unsupported> {
        let pool = P::build(&plan.threads(threads))?;
        Ok(Self { seed: Box::new(move || Handle(pool.clone())), threads, note: "one pool for all threads" })
    }
}

impl<P: Pool> Crew<Private<P>> {
    /// One pool per thread, built for what one of them asks.
    pub(crate) fn private(threads: usize, plan: &Plan) -> Result<Self, Unsupported> {
        let plan = *plan;
        // Whether it can be built at all is known before a thread needs it.
        drop(P::build(&plan)?);
        Ok(Self {
            seed: Box::new(move || Private { plan, pool: PhantomData }),
            threads,
            note: "one pool per thread",
        })
    }
}

impl<T: Seed> Crew<T> {
    /// Runs `prepare`, then `work` with what that returned, in each thread. `work` starts when all
    /// are prepared. Returns the time from its first start to its last end, and what it returned,
    /// by thread.
    pub(crate) fn each<S, R: Send>(
        &self,
        prepare: impl Fn(&mut T::Pool, usize) -> S + Sync,
        work: impl Fn(&mut T::Pool, usize, &mut S) -> R + Sync,
    ) -> (Duration, Vec<R>) {
        let barrier = Barrier::new(self.threads);
        let seeds: Vec<T> = (0..self.threads).map(|_| (self.seed)()).collect();
        let spans: Vec<(Instant, Instant, R)> = thread::scope(|scope| {
            let handles: Vec<_> = seeds
                .into_iter()
                .enumerate()
                .map(|(index, seed)| {
                    let (barrier, prepare, work) = (&barrier, &prepare, &work);
                    scope.spawn(move || {
                        let _here = pin(index);
                        let mut pool = seed.grow();
                        let mut state = prepare(&mut pool, index);
                        barrier.wait();
                        let start = Instant::now();
                        let result = work(&mut pool, index, &mut state);
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
