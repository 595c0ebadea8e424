//! `pools`: as `reuse`, from two pools in turn. The row with one pool runs the same loop, and
//! picks the same pool each time.

use core::hint::black_box;
use std::time::{Duration, Instant};

use super::not_mine;
use crate::harness::block::touch;
use crate::harness::case::Case;
use crate::harness::cell::Cell;
use crate::harness::check;
use crate::harness::plan::{Plan, Settings, Unsupported};
use crate::harness::serve::Pool;

const SIZES: [usize; 2] = [64, 4 << 10];
/// Requests in one iteration.
const TURNS: usize = 2;

pub(super) fn cases() -> Vec<Case> {
    SIZES.into_iter().flat_map(|bytes| [1, TURNS].map(|pools| Case::TwoPools { bytes, pools })).collect()
}

struct TwoPools<P> {
    pools: [P; TURNS],
    plan: Plan,
    bytes: usize,
    /// Which pool each request of an iteration goes to.
    picks: [usize; TURNS],
}

pub(super) fn cell<P: Pool>(case: &Case, settings: Settings) -> Result<Box<dyn Cell>, Unsupported> {
    let &Case::TwoPools { bytes, pools } = case else { return Err(not_mine(case)) };
    let plan = Plan::equal(1, bytes).with(settings);
    let picks = if pools == 1 { [0, 0] } else { [0, 1] };
    Ok(Box::new(TwoPools { pools: [P::build(&plan)?, P::build(&plan)?], plan, bytes, picks }))
}

impl<P: Pool> Cell for TwoPools<P> {
    fn check(&mut self) -> Result<(), String> {
        self.pools.iter_mut().try_for_each(|pool| check::pool(pool, &self.plan, &|_| self.bytes))
    }

    fn run(&mut self, iterations: u64) -> Duration {
        let start = Instant::now();
        for _ in 0..iterations {
            for pick in black_box(self.picks) {
                let mut buf = self.pools[pick].acquire(black_box(self.bytes));
                touch(&mut buf);
            }
        }
        start.elapsed()
    }

    fn operations(&self) -> u64 {
        TURNS as u64
    }

    fn fallbacks(&self) -> Option<u64> {
        self.pools.iter().map(Pool::fallbacks).sum()
    }
}
