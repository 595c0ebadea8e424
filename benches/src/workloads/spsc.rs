//! `spsc`: bytes from one thread to another, in chunks of one length.
//!
//! Each engine waits in its own way when the other thread is not ready: those that have none
//! spin and look. Chunks are copied in and copied out, from and to places that move, as in
//! `stream`.

use core::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::not_mine;
use crate::harness::case::Case;
use crate::harness::cell::Cell;
use crate::harness::courier::{beside, pause};
use crate::harness::plan::Unsupported;
use crate::harness::serve::Pipe;

/// Bytes of the ring: a few of the largest chunks; and of a smaller one.
pub(crate) const CAPACITY: usize = 256 << 10;
const SMALL: usize = 64 << 10;
/// The longest chunk where lengths are random, and how many lengths are drawn.
const RANDOM: usize = 2 << 10;
const LENGTHS: usize = 1 << 16;
const LARGEST: usize = 64 << 10;
/// Chunks start at this number of places, a cache line and 16 bytes apart.
const PLACES: usize = 64;
const STEP: usize = 80;
/// Bytes that one iteration moves, about: so much that starting the other thread is a small part of
/// it.
const BYTES: usize = 32 << 20;
const MOST_CHUNKS: usize = 200_000;

pub(super) fn cases() -> Vec<Case> {
    let usual = [32, 256, 4 << 10, LARGEST].map(|bytes| (Some(bytes), CAPACITY));
    let small = [Some(256), None, Some(4 << 10), Some(16 << 10)].map(|bytes| (bytes, SMALL));
    usual.into_iter().chain(small).map(|(bytes, ring)| Case::Spsc { bytes, ring }).collect()
}

struct Through<P: Pipe> {
    ends: (P::Writer, P::Reader),
    ring: usize,
    /// Of chunks, used in turn; a power of two of them.
    lengths: Vec<u32>,
    from: Vec<u8>,
    to: Vec<u8>,
}

pub(crate) fn cell<P: Pipe>(case: &Case) -> Result<Box<dyn Cell>, Unsupported> {
    let &Case::Spsc { bytes, ring } = case else { return Err(not_mine(case)) };
    let mut random = fastrand::Rng::with_seed(7);
    let lengths = match bytes {
        Some(bytes) => vec![bytes as u32],
        None => (0..LENGTHS).map(|_| random.u32(1..=RANDOM as u32)).collect(),
    };
    let mut from = vec![0; PLACES * STEP + bytes.unwrap_or(RANDOM)];
    random.fill(&mut from);
    let to = vec![0; from.len()];
    Ok(Box::new(Through::<P> { ends: P::build(ring)?, ring, lengths, from, to }))
}

impl<P: Pipe> Through<P> {
    fn chunks(&self) -> usize {
        let mean = self.lengths.iter().map(|&length| length as usize).sum::<usize>() / self.lengths.len();
        (BYTES / mean).min(MOST_CHUNKS)
    }
}

impl<P: Pipe> Cell for Through<P> {
    fn check(&mut self) -> Result<(), String> {
        const TOTAL: usize = 20 * CAPACITY;
        // Both ends may wait for a whole chunk, and what is there is too little for either.
        let largest = LARGEST.min(self.ring / 2);
        let byte = |at: usize| ((at as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8;
        let (writer, reader) = &mut self.ends;
        thread::scope(|scope| {
            scope.spawn(|| {
                let mut random = fastrand::Rng::with_seed(8);
                let mut chunk = [0; LARGEST];
                let mut at = 0;
                while at < TOTAL {
                    let len = random.usize(1..=largest).min(TOTAL - at);
                    (at..).zip(&mut chunk[..len]).for_each(|(at, place)| *place = byte(at));
                    P::write(writer, &chunk[..len]);
                    at += len;
                }
            });
            let mut random = fastrand::Rng::with_seed(9);
            let mut chunk = [0; LARGEST];
            let (mut at, mut wrong) = (0, None);
            while at < TOTAL {
                let len = random.usize(1..=largest).min(TOTAL - at);
                P::read(reader, &mut chunk[..len]);
                wrong = wrong.or_else(|| {
                    (at..).zip(&chunk[..len]).find(|&(at, &found)| found != byte(at)).map(|(at, _)| at)
                });
                at += len;
            }
            wrong.map_or(Ok(()), |at| Err(format!("byte {at} is another one")))
        })
    }

    fn run(&mut self, iterations: u64) -> Duration {
        let chunks = self.chunks();
        let lengths = &self.lengths[..];
        let length = |index| black_box(lengths[index & (lengths.len() - 1)]) as usize;
        let (writer, reader) = &mut self.ends;
        let (from, to) = (&self.from, &mut self.to);
        let is_read = AtomicBool::new(false);
        let mut reads = || {
            for _ in 0..iterations {
                for index in 0..chunks {
                    let place = index % PLACES * STEP;
                    let bytes = length(index);
                    P::read(reader, &mut to[place..place + bytes]);
                }
                black_box(&mut *to);
            }
            // ORDER: Relaxed: the clock is read after it, and nothing else.
            is_read.store(true, Ordering::Relaxed);
        };
        let mut writes = || {
            let start = Instant::now();
            for iteration in 0..iterations {
                for index in 0..chunks {
                    // The two drift against each other.
                    let place = (index + iteration as usize) % PLACES * STEP;
                    let bytes = length(index);
                    P::write(writer, &from[place..place + bytes]);
                }
            }
            let mut spins = 0;
            // ORDER: Relaxed, as above.
            while !is_read.load(Ordering::Relaxed) {
                pause(&mut spins);
            }
            start.elapsed()
        };
        beside(&mut reads, &mut writes)
    }

    fn operations(&self) -> u64 {
        self.chunks() as u64
    }

    fn bytes(&self) -> Option<u64> {
        let lengths = self.lengths.iter().cycle().take(self.chunks());
        Some(lengths.map(|&length| u64::from(length)).sum())
    }
}
