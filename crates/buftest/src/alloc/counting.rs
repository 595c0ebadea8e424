//! An allocator that counts.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// The system's allocator; every call that takes memory is counted.
#[derive(Debug, Default)]
pub struct Counting {
    calls: AtomicUsize,
    bytes: AtomicUsize,
}

impl Counting {
    /// Makes an allocator that has counted nothing yet.
    pub const fn new() -> Self {
        Self { calls: AtomicUsize::new(0), bytes: AtomicUsize::new(0) }
    }

    /// Calls that took memory, and bytes asked for by them, since the start.
    pub fn counts(&self) -> (usize, usize) {
        // ORDER: Relaxed, for both: they are only counted.
        (self.calls.load(Relaxed), self.bytes.load(Relaxed))
    }

    fn count(&self, bytes: usize) {
        // ORDER: Relaxed, for both: they publish nothing.
        self.calls.fetch_add(1, Relaxed);
        self.bytes.fetch_add(bytes, Relaxed);
    }
}

// SAFETY: every call goes to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        self.count(layout.size());
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        self.count(layout.size());
        // SAFETY: the caller's promise.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, ptr: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        self.count(size);
        // SAFETY: the caller's promise.
        unsafe { System.realloc(ptr, layout, size) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(ptr, layout) }
    }
}
