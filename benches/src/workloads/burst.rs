//! `burst`: acquire N, touch each, then drop all, oldest first, newest first, or in an order that
//! has no pattern.

use core::hint::black_box;
use std::time::{Duration, Instant};

use super::not_mine;
use crate::harness::block::touch;
use crate::harness::case::{Case, Order};
use crate::harness::cell::Cell;
use crate::harness::check;
use crate::harness::measure::Scale;
use crate::harness::plan::{Plan, Settings, Unsupported};
use crate::harness::serve::Pool;

/// Buffers in the largest burst, too slow for a quick run.
const HUGE: usize = 100_000;
/// Bytes of each buffer in the burst of large ones.
const LARGE: usize = 64 << 10;

pub(super) fn cases(scale: Scale) -> Vec<Case> {
    let counts: &[usize] = if scale == Scale::Full { &[8, 64, 1024, HUGE] } else { &[8, 64, 1024] };
    let mut cases = Vec::new();
    for &count in counts {
        let sizes: &[usize] = if count == HUGE { &[64] } else { &[64, 4096] };
        for &bytes in sizes {
            for order in [Order::Fifo, Order::Lifo, Order::Random] {
                cases.push(Case::Burst { count, bytes, order });
            }
        }
    }
    cases.push(Case::Burst { count: 64, bytes: LARGE, order: Order::Fifo });
    cases
}

struct Burst<P: Pool> {
    pool: P,
    plan: Plan,
    count: usize,
    bytes: usize,
    order: Order,
    live: Vec<P::Buf>,
    /// For the random order: which of the remaining buffers goes next.
    picks: Vec<u32>,
}

pub(super) fn cell<P: Pool>(case: &Case, settings: Settings) -> Result<Box<dyn Cell>, Unsupported> {
    let &Case::Burst { count, bytes, order } = case else { return Err(not_mine(case)) };
    let plan = Plan::equal(count, bytes).with(settings);
    Ok(Box::new(Burst {
        pool: P::build(&plan)?,
        plan,
        count,
        bytes,
        order,
        live: Vec::with_capacity(count),
        picks: picks(count),
    }))
}

/// Which of `count` goes next, until none is left.
fn picks(count: usize) -> Vec<u32> {
    let mut random = fastrand::Rng::with_seed(count as u64);
    (1..=count as u32).rev().map(|remaining| random.u32(..remaining)).collect()
}

/// Each phase is compiled by itself, so that what the compiler does with one moves no other.
impl<P: Pool> Burst<P> {
    #[inline(never)]
    fn acquire_all(&mut self) {
        for _ in 0..self.count {
            let mut buf = self.pool.acquire(black_box(self.bytes));
            touch(&mut buf);
            self.live.push(buf);
        }
    }

    #[inline(never)]
    fn drop_oldest_first(&mut self) {
        self.live.drain(..).for_each(drop);
    }

    #[inline(never)]
    fn drop_newest_first(&mut self) {
        while let Some(buf) = self.live.pop() {
            drop(buf);
        }
    }

    #[inline(never)]
    fn drop_at_random(&mut self) {
        for &pick in &self.picks {
            drop(self.live.swap_remove(pick as usize));
        }
    }
}

impl<P: Pool> Cell for Burst<P> {
    fn check(&mut self) -> Result<(), String> {
        check::pool(&mut self.pool, &self.plan, &|_| self.bytes)
    }

    fn run(&mut self, iterations: u64) -> Duration {
        let start = Instant::now();
        for _ in 0..iterations {
            self.acquire_all();
            match self.order {
                Order::Fifo => self.drop_oldest_first(),
                Order::Lifo => self.drop_newest_first(),
                Order::Random => self.drop_at_random(),
            }
        }
        start.elapsed()
    }

    fn operations(&self) -> u64 {
        self.count as u64
    }

    fn fallbacks(&self) -> Option<u64> {
        self.pool.fallbacks()
    }
}
