//! `reuse`: acquire, write the first byte, drop. The hot path and nothing else.

use core::hint::black_box;
use std::time::{Duration, Instant};

use super::not_mine;
use crate::harness::block::touch;
use crate::harness::case::Case;
use crate::harness::cell::Cell;
use crate::harness::check;
use crate::harness::measure::Scale;
use crate::harness::plan::{Plan, Settings, Unsupported};
use crate::harness::serve::Pool;

const SIZES: [usize; 9] = [4, 64, 256, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20];

/// Buffers that are live, the one that comes and goes among them: the cost of a pool must not grow
/// with them.
const LIVE: [usize; 3] = [8, 64, 1024];
/// This number is measured as well, but not in a quick run: there is a pool that takes 15 us for
/// each of them.
const LIVE_HUGE: usize = 100_000;
/// Bytes of each of them.
const LIVE_BYTES: usize = 64;

pub(super) fn cases(scale: Scale) -> Vec<Case> {
    let alone = SIZES.into_iter().map(|bytes| Case::Reuse { bytes, held: 0 });
    let huge = (scale == Scale::Full).then_some(LIVE_HUGE);
    let among = LIVE.into_iter().chain(huge).map(|live| Case::Reuse { bytes: LIVE_BYTES, held: live - 1 });
    alone.chain(among).collect()
}

struct Reuse<P> {
    pool: P,
    plan: Plan,
    bytes: usize,
    held: usize,
}

pub(super) fn cell<P: Pool>(case: &Case, settings: Settings) -> Result<Box<dyn Cell>, Unsupported> {
    let &Case::Reuse { bytes, held } = case else { return Err(not_mine(case)) };
    let plan = Plan::equal(1 + held, bytes).with(settings);
    Ok(Box::new(Reuse { pool: P::build(&plan)?, plan, bytes, held }))
}

impl<P: Pool> Reuse<P> {
    /// The others.
    fn hold(&mut self) -> Vec<P::Buf> {
        let mut held = Vec::with_capacity(self.held);
        while held.len() < self.held {
            held.push(self.pool.acquire(self.bytes));
        }
        held
    }
}

impl<P: Pool> Cell for Reuse<P> {
    fn check(&mut self) -> Result<(), String> {
        check::pool(&mut self.pool, &self.plan, &|_| self.bytes)
    }

    fn run(&mut self, iterations: u64) -> Duration {
        let held = self.hold();
        let start = Instant::now();
        for _ in 0..iterations {
            let mut buf = self.pool.acquire(black_box(self.bytes));
            touch(&mut buf);
        }
        let elapsed = start.elapsed();
        drop(held);
        elapsed
    }

    fn operations(&self) -> u64 {
        1
    }

    fn sample(&mut self, nanos: &mut [u32]) -> bool {
        let held = self.hold();
        for nanos in nanos {
            let start = Instant::now();
            let mut buf = self.pool.acquire(black_box(self.bytes));
            touch(&mut buf);
            drop(buf);
            *nanos = start.elapsed().as_nanos().try_into().unwrap_or(u32::MAX);
        }
        drop(held);
        true
    }

    fn fallbacks(&self) -> Option<u64> {
        self.pool.fallbacks()
    }
}
