//! `handoff`: one thread acquires and fills, another reads, sums and drops.

use core::hint::black_box;
use core::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::not_mine;
use crate::harness::block::{fill, read, sum};
use crate::harness::case::Case;
use crate::harness::cell::Cell;
use crate::harness::check;
use crate::harness::courier::{IN_FLIGHT, with_consumer};
use crate::harness::plan::{Plan, Settings, Unsupported};
use crate::harness::serve::Pool;

pub(super) fn cases() -> Vec<Case> {
    [256, 4 << 10, 64 << 10].into_iter().map(|bytes| Case::Handoff { bytes }).collect()
}

struct Handoff<P> {
    pool: P,
    plan: Plan,
    bytes: usize,
}

pub(crate) fn cell<P: Pool<Buf: Send>>(
    case: &Case,
    settings: Settings,
) -> Result<Box<dyn Cell>, Unsupported> {
    let &Case::Handoff { bytes } = case else { return Err(not_mine(case)) };
    let plan = Plan::equal(IN_FLIGHT, bytes).with(settings);
    Ok(Box::new(Handoff { pool: P::build(&plan)?, plan, bytes }))
}

impl<P: Pool<Buf: Send>> Cell for Handoff<P> {
    fn check(&mut self) -> Result<(), String> {
        check::pool(&mut self.pool, &self.plan, &|_| self.bytes)?;
        // And across the threads: the sum of all sums is right only if nothing is overwritten under
        // way.
        const ITEMS: u64 = 500;
        let total = AtomicU64::new(0);
        let bytes = self.bytes;
        with_consumer(
            |mut buf: P::Buf| {
                // SAFETY: filled by the sender.
                let sum = sum(unsafe { read(&mut buf, bytes) });
                // ORDER: Relaxed: only the sum matters, and it is read after the thread has ended.
                total.fetch_add(sum, Ordering::Relaxed);
            },
            |sender| {
                for item in 0..ITEMS {
                    let mut buf = self.pool.acquire(bytes);
                    fill(&mut buf, bytes, item as u8);
                    sender.send(buf);
                }
            },
        );
        let filled = |item: u64| sum(&vec![item as u8; bytes]);
        let wanted = (0..ITEMS).map(filled).fold(0, u64::wrapping_add);
        let found = total.into_inner();
        if found == wanted {
            Ok(())
        } else {
            Err(format!("sum {found:#x} on the other thread, not {wanted:#x}"))
        }
    }

    fn run(&mut self, iterations: u64) -> Duration {
        let bytes = self.bytes;
        with_consumer(
            |mut buf: P::Buf| {
                // SAFETY: filled by the sender.
                black_box(sum(unsafe { read(&mut buf, bytes) }));
            },
            |sender| {
                for item in 0..iterations {
                    let bytes = black_box(bytes);
                    let mut buf = self.pool.acquire(bytes);
                    fill(&mut buf, bytes, item as u8);
                    sender.send(buf);
                }
            },
        )
    }

    fn operations(&self) -> u64 {
        1
    }

    fn bytes(&self) -> Option<u64> {
        Some(self.bytes as u64)
    }

    fn fallbacks(&self) -> Option<u64> {
        self.pool.fallbacks()
    }
}
