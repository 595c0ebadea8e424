//! `short-lived` and `growing`: the two tables in the README of `ringal`, whose program is not
//! published.
//!
//! There are N buffers at a time, the oldest makes room for the next, and each is filled to a
//! random length up to its size. In the first table its size is known and acquired. In the second
//! it grows by steps up to that length and is then finished. The steps are of 64 bytes, which is
//! what the two tables' difference suggests at two nanoseconds a step.

use core::hint::black_box;
use std::time::{Duration, Instant};

use super::not_mine;
use crate::harness::block::{Block, copy, fill, read};
use crate::harness::case::Case;
use crate::harness::cell::Cell;
use crate::harness::check;
use crate::harness::plan::{Plan, Settings, Unsupported};
use crate::harness::serve::{Frames, OpenFrame, Pool};

/// Bytes of a buffer, and how many are held: the tables' rows.
const ROWS: [(usize, usize); 5] =
    [(64, 64), (1 << 10, 64), (1 << 10, 1024), (64 << 10, 64), (128 << 10, 1024)];
/// Bytes that are appended at a time.
const STEP: usize = 64;
/// Different lengths, used in turn; a multiple of the buffers held.
const LENGTHS: usize = 1 << 16;

pub(super) fn cases() -> Vec<Case> {
    let fixed = ROWS.into_iter().map(|(bytes, held)| Case::ShortLived { bytes, held });
    let extend = ROWS.into_iter().map(|(bytes, held)| Case::Growing { bytes, held });
    fixed.chain(extend).collect()
}

/// What is written where, the same for all engines.
struct Load {
    bytes: usize,
    lengths: Vec<usize>,
    source: Vec<u8>,
    /// Buffers so far, in turns of `LENGTHS`.
    turn: usize,
}

impl Load {
    fn new(bytes: usize) -> Self {
        let mut random = fastrand::Rng::with_seed(5);
        Self {
            bytes,
            lengths: (0..LENGTHS).map(|_| random.usize(1..=bytes)).collect(),
            source: (0..bytes + LENGTHS).map(|_| random.u8(..)).collect(),
            turn: 0,
        }
    }

    /// The most bytes that any `held` buffers in a row have.
    fn peak_bytes(&self, held: usize) -> usize {
        let mut bytes: usize = self.lengths[..held].iter().sum();
        let mut most = bytes;
        for start in 0..LENGTHS {
            bytes = bytes + self.lengths[(start + held) % LENGTHS] - self.lengths[start];
            most = most.max(bytes);
        }
        most
    }

    /// The content of the buffer of a turn: no two in a row start at the same place.
    #[inline(always)]
    fn content(&self, turn: usize) -> &[u8] {
        &self.source[turn..turn + self.lengths[turn]]
    }

    /// The content of the next buffer.
    #[inline(always)]
    fn next(&mut self) -> &[u8] {
        let turn = self.turn;
        self.turn = (turn + 1) % LENGTHS;
        self.content(turn)
    }

    /// Compares the buffer that was filled `age` buffers ago.
    fn verify<B: Block>(&self, block: &mut B, age: usize) -> Result<(), String> {
        let wanted = self.content((self.turn + LENGTHS - age) % LENGTHS);
        // SAFETY: as many were written.
        let found = unsafe { read(block, wanted.len()) };
        match found.iter().zip(wanted).position(|(found, wanted)| found != wanted) {
            None => Ok(()),
            Some(at) => Err(format!("byte {at} of {} is wrong, {age} buffers later", wanted.len())),
        }
    }
}

/// What fills the next buffer: all that the two workloads differ in.
trait Source {
    type Buf: Block;
    fn fill(&mut self, load: &mut Load) -> Self::Buf;
    /// The same, with all of the buffer's memory written, where that can be had.
    fn fill_all(&mut self, load: &mut Load) -> Self::Buf {
        self.fill(load)
    }
    fn fallbacks(&self) -> Option<u64>;
}

/// Whole buffers.
struct Fixed<P>(P);

impl<P: Pool> Source for Fixed<P> {
    type Buf = P::Buf;

    #[inline(always)]
    fn fill(&mut self, load: &mut Load) -> P::Buf {
        let mut buf = self.0.acquire(black_box(load.bytes));
        copy(&mut buf, load.next());
        buf
    }

    fn fill_all(&mut self, load: &mut Load) -> P::Buf {
        let mut buf = self.0.acquire(load.bytes);
        fill(&mut buf, load.bytes, 0);
        copy(&mut buf, load.next());
        buf
    }

    fn fallbacks(&self) -> Option<u64> {
        self.0.fallbacks()
    }
}

/// Frames.
struct Extend<F> {
    frames: F,
    step: usize,
}

impl<F: Frames> Source for Extend<F> {
    type Buf = F::Frame;

    #[inline(always)]
    fn fill(&mut self, load: &mut Load) -> F::Frame {
        let mut open = self.frames.open();
        for chunk in load.next().chunks(black_box(self.step)) {
            open.append(chunk);
        }
        open.detach()
    }

    fn fallbacks(&self) -> Option<u64> {
        self.frames.fallbacks()
    }
}

struct Ring<S: Source> {
    source: S,
    load: Load,
    /// The newest buffers; all there from the first run on.
    ///
    /// They stay from run to run, so that a short run does not stay in the front of a large ring.
    held: Vec<Option<S::Buf>>,
    /// Where the oldest is.
    place: usize,
    /// Whether the pages are there.
    warm: bool,
}

pub(super) fn fixed<P: Pool>(case: &Case, settings: Settings) -> Result<Box<dyn Cell>, Unsupported> {
    let &Case::ShortLived { bytes, held } = case else { return Err(not_mine(case)) };
    let source = Fixed(P::build(&Plan::equal(held, bytes).with(settings))?);
    Ok(Box::new(Ring::new(source, Load::new(bytes), held)))
}

pub(super) fn extend<F: Frames>(case: &Case, settings: Settings) -> Result<Box<dyn Cell>, Unsupported> {
    let &Case::Growing { bytes, held } = case else { return Err(not_mine(case)) };
    let load = Load::new(bytes);
    // A quarter at most, so that the smallest grows as well.
    let step = STEP.min(bytes / 4);
    let plan = Plan::mixed(held, bytes, load.peak_bytes(held)).growing_from(step).with(settings);
    Ok(Box::new(Ring::new(Extend { frames: F::build(&plan)?, step }, load, held)))
}

impl<S: Source> Ring<S> {
    fn new(source: S, load: Load, held: usize) -> Self {
        Self { source, load, held: check::empty(held), place: 0, warm: false }
    }

    /// The oldest goes, a new one comes.
    #[inline(always)]
    fn turn(&mut self) {
        let place = &mut self.held[self.place];
        *place = None;
        *place = Some(self.source.fill(&mut self.load));
        self.place = (self.place + 1) % self.held.len();
    }

    /// Goes round until all memory that will be used has been: whoever takes new memory each time
    /// comes back to the old only after a lap or more of a ring that may be twice as large as what
    /// it holds.
    fn warm_up(&mut self) {
        const LAPS: usize = 2;
        for _ in 0..LAPS * self.held.len() {
            let place = &mut self.held[self.place];
            *place = None;
            *place = Some(self.source.fill_all(&mut self.load));
            self.place = (self.place + 1) % self.held.len();
        }
        self.warm = true;
    }
}

impl<S: Source> Cell for Ring<S> {
    /// Looks at each buffer before it goes, for two laps and a half.
    fn check(&mut self) -> Result<(), String> {
        let held = self.held.len();
        for _ in 0..2 * held + held / 2 {
            if let Some(oldest) = &mut self.held[self.place] {
                self.load.verify(oldest, held)?;
            }
            self.turn();
        }
        // And all of those that are there at one time.
        (0..held).try_for_each(|index| {
            let age = held - index;
            let place = (self.place + index) % held;
            self.held[place].as_mut().map_or(Ok(()), |buf| self.load.verify(buf, age))
        })
    }

    fn run(&mut self, iterations: u64) -> Duration {
        if !self.warm {
            self.warm_up();
        }
        let start = Instant::now();
        for _ in 0..iterations {
            self.turn();
        }
        start.elapsed()
    }

    fn operations(&self) -> u64 {
        1
    }

    fn fallbacks(&self) -> Option<u64> {
        self.source.fallbacks()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adapters::slot::{SlotBuffers, SlotFrames};
    use crate::adapters::vec::{VecFrames, VecPool};

    #[test]
    fn every_row_keeps_its_bytes() {
        // The largest row writes half a gigabyte in all, which takes seconds where it is not
        // optimised.
        let rows = if cfg!(debug_assertions) { ROWS.len() - 1 } else { ROWS.len() };
        let is_small = |case: &Case| {
            let &(Case::ShortLived { bytes, .. } | Case::Growing { bytes, .. }) = case else {
                return false;
            };
            ROWS[..rows].iter().any(|row| row.0 == bytes)
        };
        for case in cases().into_iter().filter(is_small) {
            let cells = match case {
                Case::ShortLived { .. } => [
                    fixed::<VecPool>(&case, Settings::Planned),
                    fixed::<SlotBuffers>(&case, Settings::Planned),
                ],
                _ => [
                    extend::<VecFrames>(&case, Settings::Planned),
                    extend::<SlotFrames>(&case, Settings::Planned),
                ],
            };
            for cell in cells {
                let mut cell = cell.unwrap_or_else(|reason| panic!("{case}: {}", reason.0));
                assert_eq!(cell.check(), Ok(()), "{case}");
                assert!(cell.run(10) > Duration::ZERO);
            }
        }
    }

    /// The same memory for all.
    struct Same(Vec<u8>);
    struct Part(*mut u8);

    // SAFETY: not exclusive, which is what the check has to find; valid while the vector lives.
    unsafe impl Block for Part {
        fn start(&mut self) -> *mut u8 {
            self.0
        }
    }

    impl Source for Same {
        type Buf = Part;
        fn fill(&mut self, load: &mut Load) -> Part {
            let mut part = Part(self.0.as_mut_ptr());
            copy(&mut part, load.next());
            part
        }
        fn fallbacks(&self) -> Option<u64> {
            None
        }
    }

    #[test]
    fn a_buffer_that_is_handed_out_twice_is_found() {
        let mut ring = Ring::new(Same(vec![0; 100]), Load::new(100), 4);
        assert!(ring.check().is_err());
    }

    #[test]
    fn lengths_and_places_are_in_step() {
        assert!(ROWS.into_iter().all(|(_, held)| LENGTHS.is_multiple_of(held)));
        let load = Load::new(64);
        assert!(load.peak_bytes(64) > 64 * 25 && load.peak_bytes(64) <= 64 * 64);
    }
}
