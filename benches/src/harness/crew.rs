//! Several threads at work at once, each with a handle to one pool or with a pool of its own.

use std::sync::{Barrier, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::harness::place::pin;
use crate::harness::plan::{Plan, Unsupported};
use crate::harness::serve::Pool;

/// Makes, in a thread, the pool of that thread.
type Seed<P> = Box<dyn FnOnce() -> P + Send>;

/// Threads, and where each gets its pool from.
pub(crate) struct Crew<P> {
    /// Makes what one thread of a run gets.
    seed: Box<dyn Fn() -> Seed<P>>,
    pub(crate) threads: usize,
}

impl<P: Pool> Crew<P> {
    /// One pool for all threads, built for what all of them ask.
    pub(crate) fn shared(threads: usize, plan: &Plan) -> Result<Self, Unsupported>
    where
        P: Clone + Send,
    {
        let pool = P::build(plan)?;
        let seed = move || -> Seed<P> {
            let pool = pool.clone();
            Box::new(move || pool)
        };
        Ok(Self { seed: Box::new(seed), threads })
    }

    /// One pool per thread, built for what one of them asks.
    pub(crate) fn private(threads: usize, plan: &Plan) -> Result<Self, Unsupported> {
        let plan = *plan;
        // Whether it can be built at all is known before a thread needs it.
        drop(P::build(&plan)?);
        let built = |built: Result<P, Unsupported>| {
            built.unwrap_or_else(|reason| panic!("built before, not now: {}", reason.0))
        };
        let seed = move || -> Seed<P> { Box::new(move || built(P::build(&plan))) };
        Ok(Self { seed: Box::new(seed), threads })
    }

    /// Runs `prepare`, then `work` with what that returned, in each thread. `work` starts when all
    /// are prepared. Returns the time from its first start to its last end.
    ///
    /// # Errors
    ///
    /// The first error of a thread, in their order.
    pub(crate) fn each<S>(
        &self,
        prepare: impl Fn(&mut P, usize) -> S + Sync,
        work: impl Fn(&mut P, usize, &mut S) -> Result<(), String> + Sync,
    ) -> Result<Duration, String> {
        let seeds: Vec<_> = (0..self.threads).map(|_| Mutex::new(Some((self.seed)()))).collect();
        side_by_side(self.threads, &|index, barrier| {
            let seed = seeds[index].lock().unwrap_or_else(PoisonError::into_inner).take();
            let mut pool = seed.expect("each is taken once")();
            let mut state = prepare(&mut pool, index);
            barrier.wait();
            let start = Instant::now();
            let result = work(&mut pool, index, &mut state);
            Span { start, end: Instant::now(), result }
        })
    }
}

/// What one thread did.
struct Span {
    start: Instant,
    end: Instant,
    result: Result<(), String>,
}

/// Runs `thread` with each number below `threads`, all at once. It is not generic: there are
/// hundreds of kinds of cells with threads.
fn side_by_side(
    threads: usize,
    thread: &(dyn Fn(usize, &Barrier) -> Span + Sync),
) -> Result<Duration, String> {
    let barrier = Barrier::new(threads);
    let spans: Vec<Span> = thread::scope(|scope| {
        let start = |index| {
            let barrier = &barrier;
            scope.spawn(move || {
                let _here = pin(index);
                thread(index, barrier)
            })
        };
        let handles: Vec<_> = (0..threads).map(start).collect();
        let join = |handle: thread::ScopedJoinHandle<_>| {
            handle.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        handles.into_iter().map(join).collect()
    });
    let start = spans.iter().map(|span| span.start).min();
    let end = spans.iter().map(|span| span.end).max();
    spans.into_iter().try_for_each(|span| span.result)?;
    Ok(start.zip(end).map_or(Duration::ZERO, |(start, end)| end - start))
}
