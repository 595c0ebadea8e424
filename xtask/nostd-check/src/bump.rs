//! The smallest allocator: memory is taken from a static piece and never used again, but counted.

use core::alloc::{GlobalAlloc, Layout};
use core::cell::UnsafeCell;
use core::ptr;
use core::sync::atomic::{AtomicUsize, Ordering};

const HEAP_BYTES: usize = 1 << 20;

#[repr(align(4096))]
struct Bump {
    heap: UnsafeCell<[u8; HEAP_BYTES]>,
    /// Bytes handed out, from the start.
    used: AtomicUsize,
    /// Allocations that are not freed.
    outstanding: AtomicUsize,
}

// SAFETY: `used` gives each part of the heap to one caller.
unsafe impl Sync for Bump {}

#[global_allocator]
static BUMP: Bump = Bump {
    heap: UnsafeCell::new([0; HEAP_BYTES]),
    used: AtomicUsize::new(0),
    outstanding: AtomicUsize::new(0),
};

/// Allocations that are not freed.
pub(crate) fn outstanding() -> usize {
    // ORDER: Relaxed; the program has one thread.
    BUMP.outstanding.load(Ordering::Relaxed)
}

// SAFETY: every allocation is a part of the heap that no other has, aligned, and never handed out again.
unsafe impl GlobalAlloc for Bump {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let place = |used: usize| {
            let start = used.checked_next_multiple_of(layout.align())?;
            let end = start.checked_add(layout.size())?;
            // The heap's own alignment bounds what can be promised.
            (end <= HEAP_BYTES && layout.align() <= align_of::<Self>()).then_some((start, end))
        };
        let next = |used| place(used).map(|(_, end)| end);
        // ORDER: Relaxed; the numbers publish nothing, and the program has one thread.
        let taken = self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next);
        let Some((start, _)) = taken.ok().and_then(place) else { return ptr::null_mut() };
        // ORDER: Relaxed, as above.
        self.outstanding.fetch_add(1, Ordering::Relaxed);
        self.heap.get().cast::<u8>().wrapping_add(start)
    }

    unsafe fn dealloc(&self, _: *mut u8, _: Layout) {
        // ORDER: Relaxed, as above.
        self.outstanding.fetch_sub(1, Ordering::Relaxed);
    }
}
