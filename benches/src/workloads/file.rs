//! `file`: reads a large file through buffers of one size, each taken for one chunk and dropped
//! after its sum is formed.
//!
//! The file is made at run time and stays in the page cache, so this is about the buffers, and
//! about what fresh memory costs the kernel. Every chunk's sum is compared with what the file's
//! generator says.

use core::hint::black_box;
use core::mem::MaybeUninit;
use core::slice;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use buftrials::words;

use super::not_mine;
use crate::harness::block::{Block, read, sum};
use crate::harness::case::Case;
use crate::harness::cell::Cell;
use crate::harness::measure::Scale;
use crate::harness::plan::{Plan, Settings, Unsupported};
use crate::harness::serve::Pool;

const SIZES: [usize; 3] = [64 << 10, 1 << 20, 16 << 20];
const FULL_BYTES: u64 = 500 << 20;
const QUICK_BYTES: u64 = 64 << 20;

pub(super) fn cases(scale: Scale) -> Vec<Case> {
    let file_bytes = if scale == Scale::Full { FULL_BYTES } else { QUICK_BYTES };
    SIZES.into_iter().map(|bytes| Case::File { bytes, file_bytes }).collect()
}

fn path(file_bytes: u64) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join(format!("../target/bench-data/words-{}M.bin", file_bytes >> 20))
}

struct Reader<P> {
    pool: P,
    file: File,
    bytes: usize,
    /// The right sum of each chunk.
    sums: Vec<u64>,
}

pub(super) fn cell<P: Pool>(case: &Case, settings: Settings) -> Result<Box<dyn Cell>, Unsupported> {
    let &Case::File { bytes, file_bytes } = case else { return Err(not_mine(case)) };
    let (file, sums) = open(bytes, file_bytes)?;
    Ok(Box::new(Reader { pool: P::build(&Plan::equal(1, bytes).with(settings))?, file, bytes, sums }))
}

/// The file, made if it is not there, and the sum of each chunk.
fn open(bytes: usize, file_bytes: u64) -> Result<(File, Vec<u64>), Unsupported> {
    let path = path(file_bytes);
    words::prepare(&path, file_bytes).map_err(|error| format!("cannot make the file: {error}"))?;
    let file = File::open(path).map_err(|error| format!("cannot open the file: {error}"))?;
    let bytes = bytes as u64;
    let sums = (0..file_bytes / bytes).map(|chunk| words::sum_of(chunk * bytes..(chunk + 1) * bytes));
    Ok((file, sums.collect()))
}

/// Fills a buffer from the file. The system call writes to memory that need not be initialised, so that
/// no engine has to zero first.
fn read_at<B: Block>(file: &File, block: &mut B, bytes: usize, offset: u64) -> io::Result<()> {
    let start: *mut MaybeUninit<u8> = block.start().cast();
    // SAFETY: the buffer has as many bytes, which are its holder's alone (`Block`).
    let room = unsafe { slice::from_raw_parts_mut(start, bytes) };
    let mut done = 0;
    while done < bytes {
        match rustix::io::pread(file, &mut room[done..], offset + done as u64)?.0.len() {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            count => done += count,
        }
    }
    Ok(())
}

impl<P: Pool> Reader<P> {
    #[inline]
    fn chunk(&mut self, chunk: usize) -> Result<(), String> {
        let bytes = black_box(self.bytes);
        let mut buf = self.pool.acquire(bytes);
        read_at(&self.file, &mut buf, bytes, chunk as u64 * bytes as u64)
            .map_err(|error| format!("cannot read: {error}"))?;
        // SAFETY: all of it was read.
        let found = sum(unsafe { read(&mut buf, bytes) });
        if found == self.sums[chunk] {
            return Ok(());
        }
        Err(format!("chunk {chunk} sums up to {found:#x}, not {:#x}", self.sums[chunk]))
    }
}

impl<P: Pool> Cell for Reader<P> {
    fn check(&mut self) -> Result<(), String> {
        (0..self.sums.len()).try_for_each(|chunk| self.chunk(chunk))
    }

    fn run(&mut self, iterations: u64) -> Duration {
        let chunks = self.sums.len();
        let start = Instant::now();
        for iteration in 0..iterations {
            let outcome = self.chunk(iteration as usize % chunks);
            assert_eq!(outcome, Ok(()), "while being timed");
        }
        start.elapsed()
    }

    fn operations(&self) -> u64 {
        1
    }

    fn bytes(&self) -> Option<u64> {
        Some(self.bytes as u64)
    }

    /// The whole file, once.
    fn fixed_iterations(&self) -> Option<u64> {
        Some(self.sums.len() as u64)
    }

    fn fallbacks(&self) -> Option<u64> {
        self.pool.fallbacks()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adapters::vec::VecPool;

    #[test]
    fn a_wrong_byte_is_found() {
        const BYTES: u64 = 2 << 20;
        words::prepare(&path(BYTES), BYTES).unwrap();
        let mut right =
            cell::<VecPool>(&Case::File { bytes: 1 << 20, file_bytes: BYTES }, Settings::Planned).unwrap();
        assert_eq!(right.check(), Ok(()));
        let mut wrong = Reader {
            pool: VecPool,
            file: File::open(path(BYTES)).unwrap(),
            bytes: 1 << 20,
            sums: vec![1, 2],
        };
        assert!(wrong.check().is_err());
    }
}
