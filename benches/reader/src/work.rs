//! What a thread of a cell does: reads, and looks at what was read.

use std::collections::VecDeque;
use std::os::unix::fs::FileExt;
use std::sync::Barrier;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use bufcore::BufferPool;
use bufmirror::MirrorRing;
use buftrials::words::{sum, word};
use bufuring::{Descriptor, Driver, Operation};

use crate::cell::{Row, Work};
use crate::file::{TENSORS, Tensors};

/// The bytes between two words that are looked at in what came from the page cache, so that each page
/// of a memory map is read.
const STEP: usize = 4096;

/// A piece of the file, from the first tensor on.
#[derive(Debug, Clone, Copy)]
pub struct Piece {
    offset: u64,
    len: usize,
    tensor: usize,
}

/// What a thread of a cell has to do.
#[derive(Debug)]
pub struct Job<'a> {
    /// The file.
    pub tensors: &'a Tensors,
    /// The cell's row.
    pub row: Row,
    /// Which thread it is.
    pub thread: usize,
    /// How long it reads, if it does so for a time.
    pub time: Duration,
    /// All threads meet here before they are measured.
    pub start: &'a Barrier,
}

/// What a thread did.
#[derive(Debug, Clone, Copy, Default)]
pub struct Did {
    /// Bytes that were read.
    pub bytes: u64,
    /// The number of reads.
    pub reads: u64,
}

/// The state of a thread: what is next, and the sums.
struct Course<'a> {
    job: &'a Job<'a>,
    next: u64,
    tensor: usize,
    sums: Vec<u64>,
    did: Did,
    started: Option<Instant>,
}

impl<'a> Course<'a> {
    fn new(job: &'a Job<'a>) -> Self {
        let mut course = Self {
            job,
            next: 0,
            tensor: job.thread,
            sums: vec![0; TENSORS],
            did: Did::default(),
            started: None,
        };
        // Threads read different parts of the file.
        let part = job.tensors.bytes / job.row.threads as u64 * job.thread as u64;
        course.next = match job.row.work {
            Work::Read => part - part % job.row.bytes as u64,
            Work::Tensors => job.tensors.start(job.thread),
        };
        course
    }

    /// What is read next; `None` when it is over.
    fn piece(&mut self) -> Option<Piece> {
        let bytes = self.job.row.bytes;
        match self.job.row.work {
            Work::Read => {
                if self.started.is_some_and(|started| started.elapsed() > self.job.time) {
                    return None;
                }
                if self.next + bytes as u64 > self.job.tensors.bytes {
                    self.next = 0;
                }
                let piece = Piece { offset: self.next, len: bytes, tensor: 0 };
                self.next += bytes as u64;
                Some(piece)
            }
            Work::Tensors => {
                if self.tensor >= TENSORS {
                    return None;
                }
                let end = self.job.tensors.start(self.tensor + 1);
                let len = bytes.min((end - self.next) as usize);
                let piece = Piece { offset: self.next, len, tensor: self.tensor };
                self.next += len as u64;
                if self.next == end {
                    self.tensor += self.job.row.threads;
                    self.next = self.job.tensors.start(self.tensor);
                }
                Some(piece)
            }
        }
    }

    /// Looks at what was read, and counts it.
    fn take(&mut self, piece: Piece, bytes: &[u8]) -> Result<()> {
        ensure!(bytes.len() == piece.len, "{} bytes of {}: a short read", bytes.len(), piece.len);
        match self.job.row.work {
            Work::Tensors => {
                let sum = sum(bytes);
                self.sums[piece.tensor] = self.sums[piece.tensor].wrapping_add(sum);
            }
            Work::Read => {
                let step = if self.job.row.direct { bytes.len() } else { STEP };
                let is_right = bytes.chunks(step).enumerate().all(|(at, chunk)| {
                    chunk.starts_with(&word(piece.offset + (at * step) as u64).to_le_bytes())
                });
                ensure!(is_right, "wrong bytes at {}", piece.offset);
            }
        }
        self.did.bytes += bytes.len() as u64;
        self.did.reads += 1;
        Ok(())
    }

    /// Waits for the other threads, and counts from here on.
    fn begin(&mut self) {
        // All are ready; then whoever measures is.
        self.job.start.wait();
        self.job.start.wait();
        let fresh = Self::new(self.job);
        (self.next, self.tensor, self.did, self.sums) = (fresh.next, fresh.tensor, fresh.did, fresh.sums);
        self.started = Some(Instant::now());
    }

    /// Compares the sums.
    fn end(self) -> Result<Did> {
        if self.job.row.work == Work::Tensors {
            let own = (self.job.thread..self.sums.len()).step_by(self.job.row.threads);
            for tensor in own {
                let is_right = self.sums[tensor] == self.job.tensors.sum(tensor);
                ensure!(is_right, "the checksum of tensor {tensor} is wrong");
            }
        }
        Ok(self.did)
    }
}

/// Reads by a driver, `depth` at once, into buffers of `pool`.
///
/// # Errors
///
/// When a read fails, is short, or brings wrong bytes; when the pool has no buffer.
pub fn by_driver<P: BufferPool>(job: &Job<'_>, driver: &Driver, pool: &mut P) -> Result<Did> {
    let file = Descriptor::new(job.tensors.file(job.row.direct)?);
    let mut course = Course::new(job);
    // Everything has been used once, and each pool has its memory.
    read(&mut course, driver, pool, &file, 2 * job.row.depth as u64)?;
    course.begin();
    read(&mut course, driver, pool, &file, u64::MAX)?;
    course.end()
}

fn read<P: BufferPool>(
    course: &mut Course<'_>,
    driver: &Driver,
    pool: &mut P,
    file: &Descriptor,
    most: u64,
) -> Result<()> {
    let depth = course.job.row.depth;
    let mut reads: VecDeque<(Piece, Operation<P::Lease>)> = VecDeque::with_capacity(depth);
    let mut begun = 0;
    loop {
        while reads.len() < depth && begun < most {
            let Some(piece) = course.piece() else { break };
            let buf = pool.acquire(course.job.row.bytes)?;
            reads.push_back((piece, driver.read_at(file, buf, piece.len, piece.offset)));
            begun += 1;
        }
        let Some((piece, mut read)) = reads.pop_front() else { return Ok(()) };
        let done = driver.wait(&mut read)?;
        let buf = done.into_result().context("a read failed")?;
        course.take(piece, &buf)?;
    }
}

/// Reads by plain calls into a mirrored ring of bytes.
///
/// # Errors
///
/// As [`by_driver`].
pub fn by_ring(job: &Job<'_>, ring: &mut MirrorRing) -> Result<Did> {
    let file = job.tensors.file(job.row.direct)?;
    let mut course = Course::new(job);
    let mut step = |course: &mut Course<'_>| -> Result<bool> {
        let Some(piece) = course.piece() else { return Ok(false) };
        let room = ring.reserve(piece.len)?;
        file.read_exact_at(&mut room[..piece.len], piece.offset)?;
        ring.commit(piece.len);
        course.take(piece, ring.peek())?;
        ring.consume(piece.len);
        Ok(true)
    };
    step(&mut course)?;
    course.begin();
    while step(&mut course)? {}
    course.end()
}

/// Looks at a memory map.
///
/// # Errors
///
/// When it has wrong bytes.
pub fn by_map(job: &Job<'_>) -> Result<Did> {
    let file = job.tensors.file(false)?;
    let mut course = Course::new(job);
    course.begin();
    // SAFETY: a file of this program's own folder, which nobody writes meanwhile.
    let map = unsafe { memmap2::Mmap::map(&file)? };
    while let Some(piece) = course.piece() {
        let from = piece.offset as usize;
        course.take(piece, &map[from..from + piece.len])?;
    }
    course.end()
}
