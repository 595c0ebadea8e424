//! The allocator.

use core::alloc::{GlobalAlloc, Layout};
use core::ptr::{self, NonNull};
use core::time::Duration;
use std::alloc::System;

use bufkit::{PageError, PageHeap, Span};

use crate::upkeep::{self, Upkeep};
use crate::{fork, heap};

/// The size from which a block is a span, unless set. Below, blocks of other allocators have less
/// waste, and their pages are few.
const FROM_BYTES: usize = 32 << 10;
/// The smallest that can be set: a page.
const SMALLEST_FROM: usize = 4 << 10;
/// As `bufkeeper::Keeper` has it, unless set.
const AGE: Duration = Duration::from_millis(400);
/// The smallest that can be set. What a look costs would matter below.
const SMALLEST_AGE_MILLIS: u32 = 10;

/// An allocator whose large blocks are spans of the page heap, over another allocator.
///
/// ```
/// use std::alloc::System;
/// use std::time::Duration;
/// use bufalloc::Large;
///
/// #[global_allocator]
/// static ALLOC: Large<System> = Large::over(System) // `Large<MiMalloc>` over `MiMalloc`, …
///     .threshold(64 << 10)
///     .max_bytes(1 << 30)
///     .age(Duration::from_secs(1));
///
/// let mut bytes = vec![0_u8; 64 << 10];
/// bytes.resize(1 << 20, 1); // in place, or by moving the pages
/// assert_eq!(bytes[..64 << 10], [0; 64 << 10]);
/// ```
///
/// Cost: for a block below the threshold, a comparison in addition to the underlying allocator. For
/// a large one, a short lock, and system calls and page faults if no free pages are available.
#[derive(Debug, Clone, Copy)]
pub struct Large<A = System> {
    below: A,
    threshold: usize,
    max_bytes: usize,
    age: Duration,
    upkeep: Upkeep,
}

impl Default for Large {
    fn default() -> Self {
        Self::new()
    }
}

impl Large {
    /// Makes an allocator over the system's.
    #[must_use]
    pub const fn new() -> Self {
        Self::over(System)
    }
}

impl<A> Large<A> {
    /// Makes an allocator over another one, which serves the small blocks.
    #[must_use]
    pub const fn over(below: A) -> Self {
        Self { below, threshold: FROM_BYTES, max_bytes: usize::MAX, age: AGE, upkeep: Upkeep::Thread }
    }

    /// Sets the size from which a block is served by the heap: 32 KiB by default, and at least 4
    /// KiB.
    #[must_use]
    pub const fn threshold(mut self, bytes: usize) -> Self {
        self.threshold = if bytes > SMALLEST_FROM { bytes } else { SMALLEST_FROM };
        self
    }

    /// Sets the most bytes of pages that large blocks have, free pages included, and without the
    /// heap's own tables. By default there is no limit. A page counts from the allocation of its
    /// block, before the program touches it.
    ///
    /// A block over the limit fails as if memory were exhausted. Most programs abort then: only
    /// `try_reserve` and similar calls return an error. The limit is therefore a last line of
    /// defence for the process, not a budget for its traffic. A collection that grows needs room
    /// for both its old and its new block, unless the block grows in place.
    #[must_use]
    pub const fn max_bytes(mut self, bytes: usize) -> Self {
        self.max_bytes = bytes;
        self
    }

    /// Sets how long pages must be unused before they are returned to the system: 400 ms by
    /// default. The thread returns them after one to two times as long. With [`Upkeep::Calls`] and
    /// [`Upkeep::Ticks`], one call records the idle pages, and a call at least this much later
    /// returns them.
    #[must_use]
    pub const fn age(mut self, age: Duration) -> Self {
        let smallest = Duration::from_millis(SMALLEST_AGE_MILLIS as u64);
        self.age = if age.as_nanos() > smallest.as_nanos() { age } else { smallest };
        self
    }

    /// Sets who returns idle pages to the system: by default a [thread](Upkeep::Thread).
    #[must_use]
    pub const fn upkeep(mut self, upkeep: Upkeep) -> Self {
        self.upkeep = upkeep;
        self
    }

    /// Returns idle pages to the system: those that no request needed since the last call that did
    /// so. A call earlier than the age after that one does nothing. It is for a program's own loop,
    /// with [`Upkeep::Ticks`].
    ///
    /// ```
    /// use bufalloc::{Large, Upkeep};
    ///
    /// #[global_allocator]
    /// static ALLOC: Large = Large::new().upkeep(Upkeep::Ticks);
    ///
    /// for _event in 0..3 {
    ///     ALLOC.tick();
    /// }
    /// ```
    pub fn tick(&self) {
        if let Some(heap) = heap::get() {
            upkeep::look_if_due(heap, self.age);
        }
    }
}

impl<A: GlobalAlloc> Large<A> {
    /// Allocates a large block.
    ///
    /// # Safety
    ///
    /// The size is not 0.
    // The path of small blocks is the straight one; likewise below.
    #[cold]
    #[inline(never)]
    unsafe fn take(&self, layout: Layout, is_zeroed: bool) -> *mut u8 {
        if let Some(heap) = heap::get_or_make(self.max_bytes) {
            let taken = match is_zeroed {
                true => heap.take_zeroed(layout.size(), layout.align()),
                false => heap.take(layout.size(), layout.align()),
            };
            match taken {
                // SAFETY: just taken.
                Ok(span) => return unsafe { span.start() }.as_ptr(),
                Err(PageError::Exhausted { .. }) => return ptr::null_mut(),
                // No addresses, or no memory: the allocator below may have some.
                Err(_) => {}
            }
        }
        if is_zeroed {
            // SAFETY: the caller's promise.
            unsafe { self.below.alloc_zeroed(layout) }
        } else {
            // SAFETY: likewise.
            unsafe { self.below.alloc(layout) }
        }
    }

    /// Frees a block of a large layout.
    ///
    /// # Safety
    ///
    /// As for `GlobalAlloc::dealloc`.
    #[cold]
    #[inline(never)]
    unsafe fn give(&self, start: *mut u8, layout: Layout) {
        match NonNull::new(start).and_then(heap::span_at) {
            Some((heap, span)) => {
                // SAFETY: the span that starts there is the block, which the caller gives up.
                unsafe { heap::give(heap, span) };
                self.after_release(heap);
            }
            // SAFETY: the caller's promise; the block is not the heap's.
            None => unsafe { self.below.dealloc(start, layout) },
        }
    }

    fn after_release(&self, heap: &'static PageHeap) {
        if !fork::is_here() {
            upkeep::after_release(heap, self.upkeep, self.age);
        }
    }

    /// Changes the size of a block, of which the old or the new one is large.
    ///
    /// # Safety
    ///
    /// As for `GlobalAlloc::realloc`.
    #[cold]
    #[inline(never)]
    unsafe fn resize(&self, start: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        let is_large = layout.size() >= self.threshold;
        match NonNull::new(start).filter(|_| is_large).and_then(heap::span_at) {
            Some((heap, span)) if new_size >= self.threshold && !fork::is_here() => {
                // SAFETY: the span that starts there is the block.
                if let Some(span) = unsafe { self.resize_span(heap, span, layout.align(), new_size) } {
                    // SAFETY: the caller's from now on.
                    return unsafe { span.start() }.as_ptr();
                }
            }
            Some(_) => {}
            // A block of the allocator below stays there, unless it becomes large.
            None if is_large || heap::get_or_make(self.max_bytes).is_none() => {
                // SAFETY: the caller's promise; the block is not the heap's.
                return unsafe { self.below.realloc(start, layout, new_size) };
            }
            None => {}
        }
        // SAFETY: the caller's promise: with this alignment the size does not overflow.
        let new_layout = unsafe { Layout::from_size_align_unchecked(new_size, layout.align()) };
        // SAFETY: the caller's promise: the size is not 0.
        let new = unsafe { self.alloc(new_layout) };
        if !new.is_null() {
            // SAFETY: both blocks have as many bytes, and do not overlap.
            unsafe { ptr::copy_nonoverlapping(start, new, layout.size().min(new_size)) };
            // SAFETY: the caller's promise.
            unsafe { self.dealloc(start, layout) };
        }
        new
    }

    /// Makes a span of a block that stays large longer or shorter, if that is cheap.
    ///
    /// # Safety
    ///
    /// The span is the caller's, from the heap.
    unsafe fn resize_span(
        &self,
        heap: &'static PageHeap,
        span: Span,
        alignment: usize,
        size: usize,
    ) -> Option<Span> {
        // SAFETY: the caller's promise.
        let its = unsafe { span.len() };
        if size > its {
            // SAFETY: likewise; the old one is not used again.
            return unsafe { heap.grow(span, size, alignment) };
        }
        if its - size >= heap.page_bytes() {
            // SAFETY: likewise; what is behind is not the block's any more.
            unsafe { heap.shrink(span, size) };
            self.after_release(heap);
        }
        Some(span)
    }
}

// SAFETY: a block is of the allocator below, whose promises hold, or a span of the heap: of at
// least as many bytes, aligned, and nobody else's until it is given back. Its address says which of
// both it is. Blocks of sizes below the border are of the allocator below, and the caller gives the
// size again. Nothing unwinds.
unsafe impl<A: GlobalAlloc> GlobalAlloc for Large<A> {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if layout.size() < self.threshold {
            // SAFETY: the caller's promise.
            unsafe { self.below.alloc(layout) }
        } else {
            // SAFETY: likewise.
            unsafe { self.take(layout, false) }
        }
    }

    #[inline]
    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        if layout.size() < self.threshold {
            // SAFETY: the caller's promise: a block of this size is of the allocator below.
            unsafe { self.below.dealloc(ptr, layout) };
        } else {
            // SAFETY: the caller's promise.
            unsafe { self.give(ptr, layout) };
        }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if layout.size() < self.threshold {
            // SAFETY: the caller's promise.
            unsafe { self.below.alloc_zeroed(layout) }
        } else {
            // SAFETY: likewise.
            unsafe { self.take(layout, true) }
        }
    }

    #[inline]
    unsafe fn realloc(&self, ptr: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        if layout.size() < self.threshold && new_size < self.threshold {
            // SAFETY: the caller's promise: a block of this size is of the allocator below.
            unsafe { self.below.realloc(ptr, layout, new_size) }
        } else {
            // SAFETY: the caller's promise.
            unsafe { self.resize(ptr, layout, new_size) }
        }
    }
}
