//! An allocator that fails on demand.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::ptr;

thread_local! {
    /// Calls of this thread that still succeed; `None` when all do.
    static ALLOWED: Cell<Option<usize>> = const { Cell::new(None) };
    /// The largest allocation of this thread that succeeds.
    static LARGEST: Cell<usize> = const { Cell::new(usize::MAX) };
    /// Calls of this thread that were refused since it was armed.
    static REFUSED: Cell<usize> = const { Cell::new(0) };
}

/// The system's allocator, which can be told to fail from the n-th call of this thread on, or for
/// large requests.
#[derive(Debug, Default, Clone, Copy)]
pub struct Failing;

impl Failing {
    /// Runs `body` with only its first `allowed` allocations succeeding; returns what it returns
    /// and how many were refused.
    ///
    /// `body` must not panic and must handle failure itself: collections of the standard library
    /// abort.
    pub fn after<R>(allowed: usize, body: impl FnOnce() -> R) -> (R, usize) {
        REFUSED.set(0);
        ALLOWED.set(Some(allowed));
        let result = body();
        ALLOWED.set(None);
        (result, REFUSED.get())
    }

    /// Runs `body` with only allocations of at most `bytes` bytes succeeding; returns what it
    /// returns and how many were refused.
    ///
    /// `body` is as for [`after`](Self::after).
    pub fn above<R>(bytes: usize, body: impl FnOnce() -> R) -> (R, usize) {
        REFUSED.set(0);
        LARGEST.set(bytes);
        let result = body();
        LARGEST.set(usize::MAX);
        (result, REFUSED.get())
    }

    fn refuses(bytes: usize) -> bool {
        if LARGEST.try_with(|largest| bytes > largest.get()).unwrap_or(false) {
            let _ = REFUSED.try_with(|refused| refused.set(refused.get() + 1));
            return true;
        }
        // During a thread's end its variables are gone; what it allocates then is served.
        ALLOWED
            .try_with(|allowed| match allowed.get() {
                None => false,
                Some(0) => {
                    REFUSED.set(REFUSED.get() + 1);
                    true
                }
                Some(n) => {
                    allowed.set(Some(n - 1));
                    false
                }
            })
            .unwrap_or(false)
    }
}

// SAFETY: a call is either refused with null, or goes to the system's allocator as it came.
unsafe impl GlobalAlloc for Failing {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if Self::refuses(layout.size()) {
            return ptr::null_mut();
        }
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if Self::refuses(layout.size()) {
            return ptr::null_mut();
        }
        // SAFETY: the caller's promise.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, ptr: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if Self::refuses(size) {
            return ptr::null_mut();
        }
        // SAFETY: the caller's promise.
        unsafe { System.realloc(ptr, layout, size) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(ptr, layout) }
    }
}
