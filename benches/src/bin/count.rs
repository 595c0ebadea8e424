//! `bufbench-count`: one row of the matrix under an allocator that counts, with pools that count
//! their fallbacks if the feature `count` is on. Nothing is timed here.
#![allow(
    clippy::std_instead_of_alloc,
    clippy::std_instead_of_core,
    reason = "a program of the standard library's: nothing here is built without it"
)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context, Result};
use bufbench::harness::child::{self, Job};
use bufbench::select;
use buftrials::run::told;

static CALLS: AtomicU64 = AtomicU64::new(0);

struct Counting;

fn counted() {
    // ORDER: Relaxed: a count; it is read after the threads that add to it have been joined.
    CALLS.fetch_add(1, Ordering::Relaxed);
}

// SAFETY: each call is passed on to the system's allocator as it is.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        counted();
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        counted();
        // SAFETY: the caller's promise.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, start: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        counted();
        // SAFETY: the caller's promise.
        unsafe { System.realloc(start, layout, bytes) }
    }

    unsafe fn dealloc(&self, start: *mut u8, layout: Layout) {
        counted();
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(start, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn main() -> Result<()> {
    let word = std::env::args().nth(2).context("a job is told")?;
    let job: Job = told(&word)?;
    // ORDER: Relaxed, as in `counted`.
    child::perform(&job, &select::named(&job.engines), || CALLS.load(Ordering::Relaxed))
}
