//! The allocator that records what goes through it.

use core::alloc::{GlobalAlloc, Layout};

use super::recorder;

/// An allocator that records the requests that go through it, and otherwise is the one that it
/// wraps.
///
/// It is made for `#[global_allocator]`. It records when the environment variable `BUFTRACE` names
/// a file, or from a call of [`HeapOptions::start`](crate::HeapOptions::start) on. Until then a
/// request costs two comparisons more.
///
/// A recording has samples: a byte is drawn every 1 MiB on average, and the request that it
/// belongs to is tracked to its release. A sample costs a walk through the call stack, by far the
/// most of it all. `docs/decisions.md` in the repository has figures.
///
/// All allocators of this type in a program write into one recording.
///
/// ```
/// use std::alloc::System;
/// use buftrace::RecordingAlloc;
///
/// #[global_allocator]
/// static ALLOC: RecordingAlloc<System> = RecordingAlloc::new(System);
///
/// // BUFTRACE=app.heap cargo run --release
/// # drop(vec![0_u8; 1 << 20]);
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct RecordingAlloc<A> {
    inner: A,
}

impl<A> RecordingAlloc<A> {
    /// Wraps `inner`.
    ///
    /// ```
    /// use std::alloc::System;
    /// use buftrace::RecordingAlloc;
    ///
    /// static ALLOC: RecordingAlloc<System> = RecordingAlloc::new(System);
    /// ```
    pub const fn new(inner: A) -> Self {
        Self { inner }
    }
}

/// Stops to record the heap: the file is complete then. It does nothing when nothing is recorded.
///
/// The end of the program does this by itself.
///
/// ```
/// buftrace::stop_heap_recording();
/// ```
pub fn stop_heap_recording() {
    recorder::stop(None);
}

// SAFETY: every call goes to the inner allocator as it came, and its answer back as it is. The
// recorder notes addresses as numbers, and follows none of them. It does not unwind: its code has
// no panics, takes no memory from an allocator, and does not enter itself.
unsafe impl<A: GlobalAlloc> GlobalAlloc for RecordingAlloc<A> {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller promises.
        let memory = unsafe { self.inner.alloc(layout) };
        recorder::allocated(memory.addr(), layout.size(), false);
        memory
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller promises.
        let memory = unsafe { self.inner.alloc_zeroed(layout) };
        recorder::allocated(memory.addr(), layout.size(), true);
        memory
    }

    #[inline]
    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        recorder::freed_of(memory.addr(), layout.size());
        // SAFETY: as the caller promises.
        unsafe { self.inner.dealloc(memory, layout) };
    }

    #[inline]
    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        let entry = recorder::reallocating(memory.addr());
        // SAFETY: as the caller promises.
        let new = unsafe { self.inner.realloc(memory, layout, bytes) };
        if !new.is_null() {
            recorder::reallocated(entry, new.addr(), layout.size(), bytes);
        } else if let Some(entry) = entry {
            recorder::not_reallocated(entry);
        }
        new
    }
}
