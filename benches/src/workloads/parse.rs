//! `parse`: records of different lengths, which come in chunks that have nothing to do with them,
//! as from a socket. Each is looked at as a whole: in place by those whose ring lends it in one
//! piece, else copied out first.
//!
//! Looking at a record is summing its bytes, a word at a time, which costs about as much as copying
//! it.

use core::hint::black_box;
use std::time::{Duration, Instant};

use super::not_mine;
use crate::harness::block::sum;
use crate::harness::case::Case;
use crate::harness::cell::Cell;
use crate::harness::plan::Unsupported;
use crate::harness::serve::Stream;

/// Bytes of the ring.
const CAPACITY: usize = 64 << 10;
/// Bytes that come at once.
const CHUNK: usize = 4 << 10;
/// Bytes of all records together, about.
const TOTAL: usize = 1 << 20;
/// Bytes of the length in front of a record.
const PREFIX: usize = 2;

pub(super) fn cases() -> Vec<Case> {
    [64, 1 << 10, 16 << 10].into_iter().map(|bytes| Case::Parse { bytes }).collect()
}

struct Records<S> {
    ring: S,
    /// Record after record, each with its length in front.
    stream: Vec<u8>,
    records: usize,
    /// The sum of all records' sums.
    total: u64,
    scratch: Vec<u8>,
}

pub(crate) fn cell<S: Stream>(case: &Case) -> Result<Box<dyn Cell>, Unsupported> {
    let &Case::Parse { bytes } = case else { return Err(not_mine(case)) };
    let mut random = fastrand::Rng::with_seed(7);
    let (mut stream, mut records, mut total) = (Vec::new(), 0, 0_u64);
    while stream.len() < TOTAL {
        let mut record = vec![0; random.usize(1..=bytes)];
        random.fill(&mut record);
        total = total.wrapping_add(sum(&record));
        stream.extend((record.len() as u16).to_ne_bytes());
        stream.extend(record);
        records += 1;
    }
    let scratch = vec![0; bytes];
    Ok(Box::new(Records { ring: S::build(CAPACITY)?, stream, records, total, scratch }))
}

impl<S: Stream> Records<S> {
    /// All records through the ring; returns the sum of their sums.
    fn pass(&mut self) -> u64 {
        let (mut total, mut held) = (0_u64, 0);
        // The record's length, once it was read.
        let mut wanted = None;
        for chunk in self.stream.chunks(CHUNK) {
            self.ring.write(chunk);
            held += chunk.len();
            loop {
                let length = match wanted {
                    Some(length) => length,
                    None if held < PREFIX => break,
                    None => {
                        let mut prefix = [0; PREFIX];
                        self.ring.read(&mut prefix);
                        held -= PREFIX;
                        usize::from(u16::from_ne_bytes(prefix))
                    }
                };
                if held < length {
                    wanted = Some(length);
                    break;
                }
                wanted = None;
                total = total.wrapping_add(self.ring.look(length, &mut self.scratch, sum));
                held -= length;
            }
        }
        total
    }
}

impl<S: Stream> Cell for Records<S> {
    fn check(&mut self) -> Result<(), String> {
        for _ in 0..3 {
            let found = self.pass();
            if found != self.total {
                return Err(format!("the records add up to {found:#x}, not {:#x}", self.total));
            }
        }
        Ok(())
    }

    fn run(&mut self, iterations: u64) -> Duration {
        let start = Instant::now();
        for _ in 0..iterations {
            black_box(self.pass());
        }
        start.elapsed()
    }

    fn operations(&self) -> u64 {
        self.records as u64
    }

    fn bytes(&self) -> Option<u64> {
        Some(self.stream.len() as u64)
    }
}
