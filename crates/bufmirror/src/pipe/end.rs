//! The common part of both ends: a position of its own, and a look at the other's.

use core::ptr::NonNull;

use bufcore::strategy::sync::{AtomicBool, AtomicUsize, Ordering, RELEASE};

/// What both ends see.
pub(super) struct Shared {
    /// P1, the producer's.
    written: AtomicUsize,
    /// P1, the consumer's.
    read: AtomicUsize,
    /// The producer was dropped.
    is_written: AtomicBool,
    /// The consumer was dropped.
    is_read: AtomicBool,
}

impl Shared {
    #[cfg(not(any(loom, shuttle)))]
    pub(super) const fn new() -> Self {
        Self {
            written: AtomicUsize::new(0),
            read: AtomicUsize::new(0),
            is_written: AtomicBool::new(false),
            is_read: AtomicBool::new(false),
        }
    }

    #[cfg(any(loom, shuttle))]
    pub(super) fn new() -> Self {
        Self {
            written: AtomicUsize::new(0),
            read: AtomicUsize::new(0),
            is_written: AtomicBool::new(false),
            is_read: AtomicBool::new(false),
        }
    }

    /// Makes the pipe empty, with both ends there. Nobody else has it.
    pub(super) fn reset(&self) {
        // ORDER: Relaxed, here and below: no other end exists, and whatever hands a new one to
        // another thread orders it.
        self.written.store(0, Ordering::Relaxed);
        self.read.store(0, Ordering::Relaxed);
        self.is_written.store(false, Ordering::Relaxed);
        self.is_read.store(false, Ordering::Relaxed);
    }
}

/// One end: the producer, or the consumer.
pub(super) struct End<'a, const IS_PRODUCER: bool> {
    shared: &'a Shared,
    /// Twice `capacity` bytes are valid and initialised from here.
    base: NonNull<u8>,
    /// Bytes, each with two addresses; not 0.
    capacity: usize,
    /// The position, as an offset: less than the capacity.
    at: usize,
    /// P1.
    position: usize,
    /// How many bytes from here on are known to be this end's (P2).
    known: usize,
}

// SAFETY: an end has its bytes alone (P2), as a `&mut [u8]` would; what it shares is atomic.
unsafe impl<const IS_PRODUCER: bool> Send for End<'_, IS_PRODUCER> {}
// SAFETY: a shared end gives out nothing but numbers.
unsafe impl<const IS_PRODUCER: bool> Sync for End<'_, IS_PRODUCER> {}

impl<'a> End<'a, true> {
    /// Makes the ends of an empty pipe.
    ///
    /// # Safety
    ///
    /// 1. `base` is valid for reads and writes of twice `capacity` initialised bytes for `'a`, and
    ///    `capacity` is not 0.
    /// 2. For `'a`, these two ends are the only ones that use the bytes and `shared`, which was
    ///    reset.
    pub(super) unsafe fn pair(shared: &'a Shared, base: *mut u8, capacity: usize) -> (Self, End<'a, false>) {
        // SAFETY: valid, so not null.
        let base = unsafe { NonNull::new_unchecked(base) };
        let producer = Self { shared, base, capacity, at: 0, position: 0, known: capacity };
        (producer, End { shared, base, capacity, at: 0, position: 0, known: 0 })
    }
}

impl<const IS_PRODUCER: bool> End<'_, IS_PRODUCER> {
    #[inline]
    pub(super) fn capacity(&self) -> usize {
        self.capacity
    }

    /// The `len` bytes from the position on, which are known to be this end's.
    #[inline]
    pub(super) fn window(&self, len: usize) -> NonNull<[u8]> {
        debug_assert!(len <= self.known && self.at < self.capacity);
        // SAFETY: `at` is less than the capacity, of which the memory has twice as much.
        let start = unsafe { self.base.add(self.at) };
        NonNull::slice_from_raw_parts(start, len)
    }

    /// How many bytes are known to be this end's, without a look at the other.
    #[inline]
    pub(super) fn known(&self) -> usize {
        self.known
    }

    /// Whether `n` bytes are this end's; looks at the other only if they are not known to be.
    #[inline]
    pub(super) fn has(&mut self, n: usize) -> bool {
        n <= self.known || n <= self.look()
    }

    /// How many bytes are this end's.
    #[inline]
    pub(super) fn look(&mut self) -> usize {
        self.known = self.count();
        self.known
    }

    /// How many bytes are this end's, for those who only want to know.
    #[inline]
    pub(super) fn count(&self) -> usize {
        let other = if IS_PRODUCER { &self.shared.read } else { &self.shared.written };
        // ORDER: Acquire pairs with the store in `advance`: what the other end did with the bytes
        // happened before (P3).
        let other = other.load(Ordering::Acquire);
        if IS_PRODUCER {
            self.capacity - self.position.wrapping_sub(other)
        } else {
            other.wrapping_sub(self.position)
        }
    }

    /// Gives the next `n` bytes, which are known to be this end's, to the other end.
    #[inline]
    pub(super) fn advance(&mut self, n: usize) {
        debug_assert!(n <= self.known);
        if IS_PRODUCER {
            self.reflect(n);
        }
        self.at += n;
        self.known -= n;
        if self.at >= self.capacity {
            self.at -= self.capacity;
        }
        self.position = self.position.wrapping_add(n);
        let mine = if IS_PRODUCER { &self.shared.written } else { &self.shared.read };
        // ORDER: `RELEASE` pairs with the Acquire in `count`: P3.
        mine.store(self.position, RELEASE);
    }

    /// Makes the `n` bytes from the position on the same at their other addresses (P4).
    fn reflect(&mut self, n: usize) {
        let front = n.min(self.capacity - self.at);
        // SAFETY: `at` is within the first half.
        let here = unsafe { self.base.add(self.at) };
        // SAFETY: and so far into the second one.
        let there = unsafe { here.add(self.capacity) };
        // SAFETY: `front` bytes from `at` on are in the first half, so both are within the memory
        // and apart. They are this end's at both addresses (P2), and nothing of them is lent.
        unsafe { here.copy_to_nonoverlapping(there, front) };
        // SAFETY: the second half starts here.
        let border = unsafe { self.base.add(self.capacity) };
        // SAFETY: what is left of `n` starts at the border and is at most `at`, since `n` is at
        // most the capacity: both are within the memory and apart, and this end's.
        unsafe { border.copy_to_nonoverlapping(self.base, n - front) };
    }

    /// Whether the other end was dropped.
    #[inline]
    pub(super) fn is_closed(&self) -> bool {
        let other = if IS_PRODUCER { &self.shared.is_read } else { &self.shared.is_written };
        // ORDER: Acquire pairs with the Release in `drop`: an end that sees the other gone sees its
        // last position.
        other.load(Ordering::Acquire)
    }
}

impl<const IS_PRODUCER: bool> Drop for End<'_, IS_PRODUCER> {
    fn drop(&mut self) {
        let mine = if IS_PRODUCER { &self.shared.is_written } else { &self.shared.is_read };
        // ORDER: Release pairs with the Acquire in `is_closed`.
        mine.store(true, Ordering::Release);
    }
}
