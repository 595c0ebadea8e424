//! `stream`: bytes through a ring, by one thread: write a message, read it, as the benchmark of the
//! "black magic" circular buffer does.
//!
//! That benchmark has a constant length, so that its copies are a few instructions, and so has the
//! row that says so. In the others nobody knows lengths when compiling. Where the message comes
//! from and goes to moves through memory, because at 4 KiB the placement of two buffers against
//! each other alone is worth a third of a copy. In the rows with bytes left the ring is never
//! empty, so that what is written goes all the way round it. In the others one that starts over
//! when it is empty stays where its memory is hot, as it does in a program that reads all there is.

use core::hint::black_box;
use std::time::{Duration, Instant};

use super::not_mine;
use crate::harness::case::Case;
use crate::harness::cell::Cell;
use crate::harness::plan::Unsupported;
use crate::harness::serve::Stream;

/// Bytes of the ring.
const CAPACITY: usize = 64 << 10;
/// The longest message.
const LARGEST: usize = 4 << 10;
/// The length that the compiler knows.
const CONSTANT: usize = 32;
/// Lengths in one iteration where they are random.
const LENGTHS: usize = 1 << 16;
/// Bytes that stay in the ring, where some do. No multiple of anything.
const LEFT: usize = 501;
/// Messages start at this number of places, a cache line and 16 bytes apart.
const PLACES: usize = 64;
const STEP: usize = 80;

pub(super) fn cases() -> Vec<Case> {
    let row = |bytes, left| Case::Stream { bytes, left, constant: false };
    vec![
        Case::Stream { bytes: Some(CONSTANT), left: 0, constant: true },
        row(Some(32), 0),
        row(Some(256), 0),
        row(Some(LARGEST), 0),
        row(None, 0),
        row(Some(256), LEFT),
        row(None, LEFT),
    ]
}

struct Through<S> {
    ring: S,
    lengths: Vec<usize>,
    left: usize,
    constant: bool,
    from: Vec<u8>,
    to: Vec<u8>,
}

pub(crate) fn cell<S: Stream>(case: &Case) -> Result<Box<dyn Cell>, Unsupported> {
    let &Case::Stream { bytes, left, constant } = case else { return Err(not_mine(case)) };
    let mut random = fastrand::Rng::with_seed(7);
    let lengths = match bytes {
        Some(bytes) => vec![bytes; LENGTHS],
        None => (0..LENGTHS).map(|_| random.usize(1..=LARGEST)).collect(),
    };
    let mut from = vec![0; PLACES * STEP + LARGEST];
    random.fill(&mut from);
    let to = vec![0; from.len()];
    Ok(Box::new(Through { ring: S::build(CAPACITY)?, lengths, left, constant, from, to }))
}

impl<S: Stream> Cell for Through<S> {
    fn check(&mut self) -> Result<(), String> {
        if !S::KEEPS_BOOKS {
            self.ring.write(&self.from[..LARGEST]);
            self.ring.read(&mut self.to[..LARGEST]);
            return if self.to[..LARGEST] == self.from[..LARGEST] {
                Ok(())
            } else {
                Err("another message".into())
            };
        }
        // Over every border a few times, with nothing in the ring, something, and all that it
        // holds.
        const ROUNDS: usize = 5;
        let mut random = fastrand::Rng::with_seed(8);
        let (mut written, mut read) = (0_u64, 0_u64);
        let mut chunk = [0_u8; LARGEST];
        let byte = |at: u64| (at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8;
        while read < (ROUNDS * CAPACITY) as u64 {
            let most = [1, LARGEST, CAPACITY][random.usize(..3)];
            while written - read < most as u64 {
                let free = CAPACITY - (written - read) as usize;
                let len = random.usize(1..=LARGEST.min(free));
                (written..).zip(&mut chunk[..len]).for_each(|(at, place)| *place = byte(at));
                self.ring.write(&chunk[..len]);
                written += len as u64;
            }
            let keep = random.u64(..=written - read);
            while written - read > keep {
                let len = random.usize(1..=LARGEST.min((written - read) as usize));
                self.ring.read(&mut chunk[..len]);
                if let Some((at, found)) = (read..).zip(&chunk[..len]).find(|&(at, found)| *found != byte(at))
                {
                    return Err(format!("byte {at} is {found:#04x}, not {:#04x}", byte(at)));
                }
                read += len as u64;
            }
        }
        while written > read {
            let len = LARGEST.min((written - read) as usize);
            self.ring.read(&mut chunk[..len]);
            read += len as u64;
        }
        // Bytes that the rows ask for are there from now on.
        self.ring.write(&self.from[..self.left]);
        Ok(())
    }

    fn run(&mut self, iterations: u64) -> Duration {
        if self.constant { self.pass::<CONSTANT>(iterations) } else { self.pass::<0>(iterations) }
    }

    fn operations(&self) -> u64 {
        LENGTHS as u64
    }

    fn bytes(&self) -> Option<u64> {
        Some(self.lengths.iter().sum::<usize>() as u64)
    }
}

impl<S: Stream> Through<S> {
    /// Messages of `LENGTH` bytes; of the lengths that are there if that is 0.
    fn pass<const LENGTH: usize>(&mut self, iterations: u64) -> Duration {
        let start = Instant::now();
        for iteration in 0..iterations {
            for (index, &length) in self.lengths.iter().enumerate() {
                let length = if LENGTH == 0 { black_box(length) } else { LENGTH };
                let place = index % PLACES * STEP;
                // The two drift against each other.
                let other = (index + iteration as usize) % PLACES * STEP;
                self.ring.write(&self.from[place..place + length]);
                self.ring.read(&mut self.to[other..other + length]);
            }
            black_box(&mut self.to);
        }
        start.elapsed()
    }
}
