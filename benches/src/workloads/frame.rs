//! `frame`: the three benchmarks of Stratum's `buffer_sv2`. Frames of random length are filled with
//! random bytes in steps of ten, two at a time. They are then dropped here, or sent to another
//! thread that drops them, without and with waiting for it.

use std::time::{Duration, Instant};

use super::not_mine;
use crate::harness::block::Block;
use crate::harness::case::{Case, Fate};
use crate::harness::cell::Cell;
use crate::harness::check;
use crate::harness::courier::{IN_FLIGHT, with_consumer};
use crate::harness::plan::{Plan, Settings, Unsupported};
use crate::harness::serve::{Frames, OpenFrame};

/// Bytes of the longest frame.
pub(crate) const LARGEST: usize = 16384;
/// Bytes of the shortest.
const SMALLEST: usize = 4384;
/// Bytes appended at a time.
const STEP: usize = 10;
/// Different lengths, used in turn.
const LENGTHS: usize = 512;

pub(super) fn cases() -> Vec<Case> {
    [Fate::Stay, Fate::Thread, Fate::Wait].into_iter().map(|fate| Case::Frame { fate }).collect()
}

struct Frame<F> {
    frames: F,
    plan: Plan,
    fate: Fate,
    lengths: Vec<usize>,
    random: Vec<u8>,
    /// Which length is next: runs go on where the last one ended.
    next: usize,
}

pub(crate) fn cell<F: Frames>(case: &Case, settings: Settings) -> Result<Box<dyn Cell>, Unsupported> {
    let &Case::Frame { fate } = case else { return Err(not_mine(case)) };
    let live = if fate == Fate::Stay { 1 } else { IN_FLIGHT };
    let plan = Plan::equal(live, LARGEST).with(settings);
    let mut random = fastrand::Rng::with_seed(3);
    Ok(Box::new(Frame {
        frames: F::build(&plan)?,
        plan,
        fate,
        lengths: (0..LENGTHS).map(|_| random.usize(SMALLEST..=LARGEST)).collect(),
        random: (0..LARGEST + LENGTHS).map(|_| random.u8(..)).collect(),
        next: 0,
    }))
}

/// Fills one frame; the source moves by one byte a step, as in the original.
#[inline(always)]
fn make<F: Frames>(frames: &mut F, length: usize, source: &[u8]) -> F::Frame {
    let mut open = frames.open();
    for step in source.windows(STEP).take(length / STEP) {
        open.append(step);
    }
    open.detach()
}

/// What the reader does with a frame: it looks at its first byte.
#[inline(always)]
fn look<B: Block>(mut frame: B) {
    // SAFETY: every frame has at least one step's bytes, all written.
    core::hint::black_box(unsafe { frame.start().read() });
}

impl<F: Frames> Frame<F> {
    /// Makes two frames of the next length, and passes each on when it is done.
    #[inline(always)]
    fn two(&mut self, mut keep: impl FnMut(F::Frame)) {
        self.next = (self.next + 1) % LENGTHS;
        let (length, source) = (self.lengths[self.next], &self.random[self.next..]);
        keep(make(&mut self.frames, length, source));
        keep(make(&mut self.frames, length, source));
    }
}

impl<F: Frames> Cell for Frame<F> {
    fn check(&mut self) -> Result<(), String> {
        let lengths = &self.lengths;
        check::frames(&mut self.frames, &self.plan, STEP, &|index| lengths[index % lengths.len()])
    }

    fn run(&mut self, iterations: u64) -> Duration {
        match self.fate {
            Fate::Stay => {
                let start = Instant::now();
                for _ in 0..iterations {
                    self.two(look);
                }
                start.elapsed()
            }
            Fate::Thread => with_consumer(look, |sender| {
                for _ in 0..iterations {
                    self.two(|frame| sender.send(frame));
                }
            }),
            Fate::Wait => with_consumer(look, |sender| {
                for _ in 0..iterations {
                    self.two(|frame| sender.send(frame));
                    sender.settle();
                }
            }),
        }
    }

    fn operations(&self) -> u64 {
        2
    }

    fn bytes(&self) -> Option<u64> {
        let mean = self.lengths.iter().map(|length| length / STEP * STEP).sum::<usize>() / LENGTHS;
        Some(2 * mean as u64)
    }

    fn fallbacks(&self) -> Option<u64> {
        self.frames.fallbacks()
    }
}
