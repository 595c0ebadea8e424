//! T22: writers of recordings that fail at their n-th call, for every n. Events that were written
//! before can be read, and the program continues.

use core::hint::black_box;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use bufcore::{BufferPool, HeapPool};
use buftrace::{Ending, Meta, Recorder, Recording, Trace, start_heap_recording};

use crate::{Temporary, run as run_scenario};

/// Blocks that are written before the one that fails.
const BLOCKS: usize = 6;
const LEAST_BYTES: usize = 4096;
const SIZES: usize = 100;

/// Requests whose sizes say how many there were before.
fn buffers(before: &mut usize, count: usize) {
    for _ in 0..count {
        drop(black_box(Vec::<u8>::with_capacity(black_box(LEAST_BYTES + *before % SIZES))));
        *before += 1;
    }
}

/// The longest file that this process may write, until it is set anew.
fn limit(bytes: Option<u64>) {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the limit is writable.
    assert_eq!(unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, &raw mut limit) }, 0);
    limit.rlim_cur = bytes.map_or(limit.rlim_max, |bytes| bytes as libc::rlim_t);
    // SAFETY: the limit is readable.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_FSIZE, &raw const limit) }, 0);
}

fn numbered(file: &Path, number: usize) -> PathBuf {
    file.with_extension(format!("{number}.heap"))
}

/// One recording after another, whose files may not become longer once they have some blocks.
pub(crate) fn heap(file: &Path) {
    for blocks in 0..BLOCKS {
        let file = numbered(file, blocks);
        let part = file.with_extension("heap.part");
        let length = || fs::metadata(&part).or_else(|_| fs::metadata(&file)).expect("it is there").len();
        start_heap_recording(&file, "exact").expect("the one before has ended");
        let (mut before, mut written, mut grown) = (0, length(), 0);
        while grown < blocks {
            buffers(&mut before, 50);
            let now = length();
            grown += usize::from(now > written);
            written = now;
        }
        limit(Some(written + 100));
        buffers(&mut before, 10_000);
        buftrace::stop_heap_recording();
        limit(None);
        assert_eq!(length(), written, "nothing but whole blocks");
    }
    println!("\nDONE");
}

#[test]
fn t22_a_block_that_cannot_be_written() {
    let file = Temporary::new("failing");
    let output = run_scenario("failing", &file.0);
    assert!(String::from_utf8_lossy(&output.stdout).contains("\nDONE"), "{output:?}");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(said.matches("recording stops").count(), BLOCKS, "{said}");
    let mut counts = Vec::new();
    for blocks in 0..BLOCKS {
        let profile = Temporary(numbered(&file.0, blocks)).profile();
        assert_eq!(profile.ending(), Ending::Open, "whole blocks alone");
        let is_ours = |bytes: &u64| (LEAST_BYTES..LEAST_BYTES + SIZES).contains(&(*bytes as usize));
        let sizes: Vec<_> = profile.objects().iter().map(|object| object.bytes).filter(is_ours).collect();
        let first: Vec<_> = (0..sizes.len()).map(|at| (LEAST_BYTES + at % SIZES) as u64).collect();
        assert_eq!(sizes, first, "what was requested first, with {blocks} blocks");
        counts.push(sizes.len());
    }
    // How many a block has depends on the time: it is written after a while, full or not.
    assert!(counts[1..].iter().all(|count| *count > 0), "{counts:?}");
}

/// A trace whose file may have one byte more each time: an error, until all of it fits. The
/// recording stays, and so does its pool.
pub(crate) fn trace(file: &Path) {
    // Or else the first byte too many ends the process.
    // SAFETY: no handler is installed.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
    let recording = Recording::new();
    let mut pool = Recorder::new(HeapPool::new(), &recording);
    let held = pool.acquire(300).expect("room");
    (1..20).for_each(|bytes| drop(pool.acquire(bytes)));
    let name = file.file_stem().expect("it has a name").to_string_lossy().into_owned();
    let whole = recording.finish(Meta::new(name)).encode();
    for bytes in 0..whole.len() as u64 {
        limit(Some(bytes));
        let saved = recording.save(file);
        limit(None);
        assert_eq!(saved.map_err(|error| error.kind()), Err(ErrorKind::FileTooLarge), "{bytes} bytes");
        let error = Trace::load(file).expect_err("not all of it");
        assert_eq!(error.kind(), ErrorKind::InvalidData);
        assert!(whole.starts_with(&fs::read(file).expect("a part of it")));
        assert_eq!(pool.acquire(5).map(|buf| buf.capacity()), Ok(5), "the pool continues");
    }
    recording.save(file).expect("there is room again");
    assert_eq!(Trace::load(file).expect("all of it").encode(), whole);
    drop(held);
    println!("\nDONE");
}

#[test]
fn t22_a_trace_that_cannot_be_saved() {
    let file = Temporary::new("saving");
    let output = run_scenario("saving", &file.0);
    assert!(String::from_utf8_lossy(&output.stdout).contains("\nDONE"), "{output:?}");
}
