//! `threads`: a number of threads acquire, touch each page, drop. One operation is what one thread
//! does in a loop, so the time stays level from one thread to as many as there are cores if nothing
//! is contended.

use core::hint::black_box;
use std::thread;
use std::time::Duration;

use super::{MakeCrew, not_mine};
use crate::harness::block::touch_pages;
use crate::harness::case::Case;
use crate::harness::cell::Cell;
use crate::harness::check;
use crate::harness::crew::Crew;
use crate::harness::plan::{Plan, Unsupported};
use crate::harness::serve::Pool;

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

struct Threads<P> {
    crew: Crew<P>,
    plan: Plan,
    bytes: usize,
}

pub(super) fn cell<P: Pool>(
    case: &Case,
    is_shared: bool,
    crew: MakeCrew<'_, P>,
) -> Result<Box<dyn Cell>, Unsupported> {
    let &Case::Threads { threads, bytes } = case else { return Err(not_mine(case)) };
    let plan = Plan::equal(if is_shared { 2 * threads } else { 1 }, bytes);
    Ok(Box::new(Threads { crew: crew(threads, plan)?, plan, bytes }))
}

impl<P: Pool> Cell for Threads<P> {
    fn check(&mut self) -> Result<(), String> {
        const ROUNDS: u64 = 200;
        let bytes = self.bytes;
        // All threads at once, each with bytes of its own.
        let done = self.crew.each(
            |_, _| (),
            |pool, thread, ()| {
                let first = (thread as u64 + 1) << 32;
                for seed in first..first + ROUNDS {
                    let mut buf = pool.acquire(bytes);
                    check::fill(&mut buf, bytes.min(4096), seed);
                    check::verify(&mut buf, bytes.min(4096), seed)?;
                }
                check::pool_from(pool, &Plan { room: 2, ..self.plan }, first, &|_| bytes)
            },
        );
        done.map(drop)
    }

    fn run(&mut self, iterations: u64) -> Duration {
        let bytes = self.bytes;
        let turn = |pool: &mut P| {
            let bytes = black_box(bytes);
            let mut buf = pool.acquire(bytes);
            touch_pages(&mut buf, bytes);
        };
        let warm_up = |pool: &mut P, _| {
            for _ in 0..WARM_UP {
                turn(pool);
            }
        };
        let work = |pool: &mut P, _, (): &mut ()| {
            for _ in 0..iterations {
                turn(pool);
            }
            Ok(())
        };
        self.crew.each(warm_up, work).expect("no thread has an error")
    }

    fn operations(&self) -> u64 {
        1
    }

    fn threads(&self) -> u64 {
        self.crew.threads as u64
    }
}
