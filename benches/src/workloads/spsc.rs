//! `spsc`: bytes from one thread to another, in chunks of one length.
//!
//! Each contestant waits in its own way when the other thread is not ready: those that have none
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

/// Bytes of the ring: a few of the largest chunks.
pub(crate) const CAPACITY: usize = 256 << 10;
const LARGEST: usize = 64 << 10;
/// Chunks start at this number of places, a cache line and 16 bytes apart.
const PLACES: usize = 64;
const STEP: usize = 80;
/// Bytes that one iteration moves, about: so much that starting the other thread is a small part of
/// it.
const BYTES: usize = 32 << 20;
const MOST_CHUNKS: usize = 200_000;

pub(super) fn cases() -> Vec<Case> {
    [32, 256, 4 << 10, LARGEST].into_iter().map(|bytes| Case::Spsc { bytes }).collect()
}

struct Through<P: Pipe> {
    ends: (P::Writer, P::Reader),
    bytes: usize,
    from: Vec<u8>,
    to: Vec<u8>,
}

pub(crate) fn cell<P: Pipe>(case: &Case) -> Result<Box<dyn Cell>, Unsupported> {
    let &Case::Spsc { bytes } = case else { return Err(not_mine(case)) };
    let mut from = vec![0; PLACES * STEP + bytes];
    fastrand::Rng::with_seed(7).fill(&mut from);
    let to = vec![0; from.len()];
    Ok(Box::new(Through::<P> { ends: P::build(CAPACITY)?, bytes, from, to }))
}

impl<P: Pipe> Through<P> {
    fn chunks(&self) -> usize {
        (BYTES / self.bytes).min(MOST_CHUNKS)
    }
}

impl<P: Pipe> Cell for Through<P> {
    fn check(&mut self) -> Result<(), String> {
        const TOTAL: usize = 20 * CAPACITY;
        let byte = |at: usize| ((at as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8;
        let (writer, reader) = &mut self.ends;
        thread::scope(|scope| {
            scope.spawn(|| {
                let mut random = fastrand::Rng::with_seed(8);
                let mut chunk = [0; LARGEST];
                let mut at = 0;
                while at < TOTAL {
                    let len = random.usize(1..=LARGEST).min(TOTAL - at);
                    (at..).zip(&mut chunk[..len]).for_each(|(at, place)| *place = byte(at));
                    P::write(writer, &chunk[..len]);
                    at += len;
                }
            });
            let mut random = fastrand::Rng::with_seed(9);
            let mut chunk = [0; LARGEST];
            let (mut at, mut wrong) = (0, None);
            while at < TOTAL {
                let len = random.usize(1..=LARGEST).min(TOTAL - at);
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
        let bytes = self.bytes;
        let (writer, reader) = &mut self.ends;
        let (from, to) = (&self.from, &mut self.to);
        let is_read = AtomicBool::new(false);
        let mut reads = || {
            for _ in 0..iterations {
                for index in 0..chunks {
                    let place = index % PLACES * STEP;
                    let bytes = black_box(bytes);
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
                    let bytes = black_box(bytes);
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
        Some((self.chunks() * self.bytes) as u64)
    }
}
