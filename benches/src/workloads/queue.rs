//! `queue`: the newest N buffers are held, each of random size; the oldest goes when the next one
//! comes.
//!
//! Memory is short: a pool gets a quarter more bytes than are out at most, the ring a quarter more
//! buffers, and the slot pool two slots more. So what lies free between the live buffers has to be
//! used again, in pieces that seldom have the size of the next request.

use core::hint::black_box;
use std::time::{Duration, Instant};

use super::not_mine;
use crate::harness::block::{fill, touch};
use crate::harness::case::Case;
use crate::harness::cell::Cell;
use crate::harness::check;
use crate::harness::plan::{Plan, Settings, Unsupported};
use crate::harness::serve::Pool;

/// Buffers that are held: the rows.
const HELD: [usize; 2] = [64, 1024];
/// Bytes of the largest buffer; the smallest has one.
const LARGEST: usize = 4 << 10;
/// Different sizes, used in turn; a multiple of the buffers held.
const SIZES: usize = 8192;

pub(super) fn cases() -> Vec<Case> {
    HELD.into_iter().map(|held| Case::Queue { held }).collect()
}

/// The sizes, the same for all contestants.
fn sizes() -> Vec<usize> {
    let mut random = fastrand::Rng::with_seed(6);
    (0..SIZES).map(|_| random.usize(1..=LARGEST)).collect()
}

/// The most bytes that any `held` buffers in a row, around the end, have.
fn peak_bytes(sizes: &[usize], held: usize) -> usize {
    let window = |start: usize| (0..held).map(|index| sizes[(start + index) % sizes.len()]).sum();
    (0..sizes.len()).map(window).max().unwrap_or(0)
}

struct Queue<P: Pool> {
    pool: P,
    plan: Plan,
    sizes: Vec<usize>,
    /// Buffers so far, in turns of `SIZES`.
    turn: usize,
    /// The newest buffers, all there from the first run on: a short run does not stay in the front
    /// of a large region.
    held: Vec<Option<P::Buf>>,
    /// Where the oldest is.
    place: usize,
    /// Whether the pages are there.
    warm: bool,
}

pub(super) fn cell<P: Pool>(case: &Case, settings: Settings) -> Result<Box<dyn Cell>, Unsupported> {
    let &Case::Queue { held } = case else { return Err(not_mine(case)) };
    let sizes = sizes();
    let plan = Plan::mixed(held, LARGEST, peak_bytes(&sizes, held)).tight().with(settings);
    let pool = P::build(&plan)?;
    let places = check::empty(held);
    Ok(Box::new(Queue { pool, plan, sizes, turn: 0, held: places, place: 0, warm: false }))
}

impl<P: Pool> Queue<P> {
    /// The oldest goes, a new one comes, and `write` writes to it.
    #[inline(always)]
    fn turn(&mut self, write: impl Fn(&mut P::Buf, usize)) {
        let place = &mut self.held[self.place];
        *place = None;
        let bytes = black_box(self.sizes[self.turn]);
        let mut buf = self.pool.acquire(bytes);
        write(&mut buf, bytes);
        *place = Some(buf);
        // No division: it would take as long as an acquire.
        self.place += 1;
        if self.place == self.held.len() {
            self.place = 0;
        }
        self.turn = (self.turn + 1) % SIZES;
    }

    /// Goes round until all memory that will be used has been.
    fn warm_up(&mut self) {
        const LAPS: usize = 3;
        for _ in 0..LAPS * self.held.len() {
            self.turn(|buf, bytes| _ = fill(buf, bytes, 0));
        }
        self.warm = true;
    }
}

impl<P: Pool> Cell for Queue<P> {
    fn check(&mut self) -> Result<(), String> {
        let sizes = &self.sizes;
        check::pool(&mut self.pool, &self.plan, &|index| sizes[index % sizes.len()])
    }

    fn run(&mut self, iterations: u64) -> Duration {
        if !self.warm {
            self.warm_up();
        }
        let start = Instant::now();
        for _ in 0..iterations {
            self.turn(|buf, _| touch(buf));
        }
        start.elapsed()
    }

    fn operations(&self) -> u64 {
        1
    }

    fn sample(&mut self, nanos: &mut [u32]) -> bool {
        for nanos in nanos {
            let start = Instant::now();
            self.turn(|buf, _| touch(buf));
            *nanos = start.elapsed().as_nanos().try_into().unwrap_or(u32::MAX);
        }
        true
    }

    fn fallbacks(&self) -> Option<u64> {
        self.pool.fallbacks()
    }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use super::*;
    use crate::adapters::ring::RingBuffers;
    use crate::adapters::slot::SlotBuffers;
    use crate::adapters::vec::VecPool;
    use crate::harness::block::Block;

    #[test]
    fn every_row_keeps_its_bytes() {
        for case in cases() {
            for cell in [
                cell::<VecPool>(&case, Settings::Planned),
                cell::<SlotBuffers>(&case, Settings::Planned),
                cell::<RingBuffers>(&case, Settings::Planned),
            ] {
                let mut cell = cell.unwrap_or_else(|reason| panic!("{case}: {}", reason.0));
                assert_eq!(cell.check(), Ok(()), "{case}");
                assert!(cell.run(10) > Duration::ZERO);
            }
        }
    }

    #[test]
    fn sizes_and_places_are_in_step() {
        assert!(HELD.into_iter().all(|held| SIZES.is_multiple_of(held)));
        let sizes = sizes();
        assert!(sizes.iter().all(|bytes| (1..=LARGEST).contains(bytes)));
        let peak = peak_bytes(&sizes, 64);
        assert!((64 * LARGEST / 2..64 * LARGEST).contains(&peak), "{peak}");
    }

    /// Says how many buffers are out, and how many bytes.
    struct Counting(Rc<std::cell::Cell<(usize, usize)>>);
    struct Counted {
        bytes: Vec<u8>,
        out: Rc<std::cell::Cell<(usize, usize)>>,
    }

    impl Drop for Counted {
        fn drop(&mut self) {
            let (buffers, bytes) = self.out.get();
            self.out.set((buffers - 1, bytes - self.bytes.capacity()));
        }
    }

    // SAFETY: a vector that does not grow.
    unsafe impl Block for Counted {
        fn start(&mut self) -> *mut u8 {
            self.bytes.as_mut_ptr()
        }
    }

    impl Pool for Counting {
        type Buf = Counted;
        fn build(_plan: &Plan) -> Result<Self, Unsupported> {
            Ok(Self(Rc::default()))
        }
        fn acquire(&mut self, bytes: usize) -> Counted {
            let bytes = Vec::with_capacity(bytes);
            let (buffers, out) = self.0.get();
            self.0.set((buffers + 1, out + bytes.capacity()));
            Counted { bytes, out: self.0.clone() }
        }
    }

    /// A pool with a quarter more bytes would be too small if the plan said less than is out.
    #[test]
    fn no_more_is_out_than_planned() {
        let sizes = sizes();
        let peak = peak_bytes(&sizes, 64);
        let plan = Plan::mixed(64, LARGEST, peak).tight();
        let pool = Counting::build(&plan).unwrap_or_else(|reason| panic!("{}", reason.0));
        let out = pool.0.clone();
        let held = check::empty(64);
        let mut queue = Queue { pool, plan, sizes, turn: 0, held, place: 0, warm: true };
        let mut most = 0;
        for _ in 0..2 * SIZES {
            queue.turn(|_, _| ());
            assert!(out.get().0 <= 64);
            most = most.max(out.get().1);
        }
        assert_eq!(most, peak, "the plan is exact");
    }
}
