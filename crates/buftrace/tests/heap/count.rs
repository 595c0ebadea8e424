//! An allocator that counts what it is asked for, to compare a recording with.

use core::alloc::{GlobalAlloc, Layout};
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::alloc::System;

/// Requests from this size on are counted.
pub(crate) const MIN_BYTES: usize = 512;

pub(crate) static COUNTS: Counts = Counts {
    on: AtomicBool::new(false),
    requests: AtomicU64::new(0),
    bytes: AtomicU64::new(0),
    zeroed: AtomicU64::new(0),
    released: AtomicU64::new(0),
};

pub(crate) struct Counts {
    on: AtomicBool,
    pub(crate) requests: AtomicU64,
    pub(crate) bytes: AtomicU64,
    pub(crate) zeroed: AtomicU64,
    pub(crate) released: AtomicU64,
}

impl Counts {
    pub(crate) fn turn(&self, on: bool) {
        // ORDER: Relaxed: no other thread allocates at that moment.
        self.on.store(on, Ordering::Relaxed);
    }

    fn add(&self, to: &AtomicU64, value: usize, bytes: usize) {
        // ORDER: Relaxed: sums, read when all threads have been joined.
        if bytes >= MIN_BYTES && self.on.load(Ordering::Relaxed) {
            to.fetch_add(value as u64, Ordering::Relaxed);
        }
    }

    /// The sums, for the parent to read.
    pub(crate) fn line(&self) -> String {
        // ORDER: Relaxed: as above.
        let sums = [&self.requests, &self.bytes, &self.zeroed, &self.released]
            .map(|sum| sum.load(Ordering::Relaxed).to_string());
        format!("\nCOUNTS {}\n", sums.join(" "))
    }
}

/// Counts in front of the system's allocator.
pub(crate) struct Counting;

// SAFETY: all calls go to the system's allocator as they came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        COUNTS.add(&COUNTS.requests, 1, layout.size());
        COUNTS.add(&COUNTS.bytes, layout.size(), layout.size());
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        COUNTS.add(&COUNTS.requests, 1, layout.size());
        COUNTS.add(&COUNTS.bytes, layout.size(), layout.size());
        COUNTS.add(&COUNTS.zeroed, 1, layout.size());
        // SAFETY: as the caller promises.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        COUNTS.add(&COUNTS.released, 1, layout.size());
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(memory, layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        // SAFETY: as the caller promises.
        unsafe { System.realloc(memory, layout, bytes) }
    }
}
