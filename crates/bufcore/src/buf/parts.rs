//! The parts of a buffer, for the rest of this crate.

use core::ptr::NonNull;

use super::Buf;
use crate::Lease;
use crate::lease::guard::LeaseGuard;
use crate::lease::track::Tracker;

impl<L: Lease> Buf<L> {
    /// Puts a filled, unshared buffer together again.
    ///
    /// # Safety
    ///
    /// 1. `ptr`, `capacity` and the lease of `guard` are as for
    ///    [`from_raw_parts`](Self::from_raw_parts).
    /// 2. `len` is at most `capacity`.
    #[inline]
    pub(crate) unsafe fn from_guard(
        ptr: NonNull<u8>,
        len: usize,
        capacity: usize,
        guard: LeaseGuard<L>,
    ) -> Self {
        debug_assert!(len <= capacity, "{len} filled of {capacity}");
        Self { ptr, len, capacity, guard }
    }

    #[inline]
    pub(crate) fn into_guard(self) -> (NonNull<u8>, usize, usize, LeaseGuard<L>) {
        (self.ptr, self.len, self.capacity, self.guard)
    }

    /// Returns where its memory starts, from where all `capacity` bytes can be reached.
    #[cfg(any(feature = "compio-buf-0_8", feature = "monoio-0_2", feature = "tokio-uring-0_5"))]
    #[allow(dead_code, reason = "not every system has the runtimes")]
    pub(crate) fn memory_ptr(&self) -> NonNull<u8> {
        self.ptr
    }

    /// Returns the addresses of its bytes, filled or not.
    pub(crate) fn memory(&self) -> core::ops::Range<usize> {
        let start = self.ptr.addr().get();
        start..start + self.capacity
    }

    /// Takes over `capacity` bytes that follow its own, of which the first `len` are filled.
    ///
    /// # Safety
    ///
    /// They belong to the same memory, and to no other handle from here on. `len` is at most
    /// `capacity`, and 0 unless this buffer is full.
    pub(crate) unsafe fn append_part(&mut self, len: usize, capacity: usize) {
        debug_assert!(len == 0 || self.len == self.capacity, "a gap between the filled bytes");
        self.len += len;
        self.capacity += capacity;
    }
}

impl Tracker {
    /// Records `buf` as acquired by the caller of this function's caller.
    ///
    /// A part of a split buffer is not recorded. Its memory is listed by the pool that it was
    /// acquired from, until the last part is dropped.
    ///
    /// An earlier record of the buffer is replaced.
    #[inline]
    #[cfg_attr(feature = "track", track_caller)]
    #[cfg_attr(not(feature = "track"), allow(unused_mut, reason = "nothing is noted"))]
    pub fn attach<L: Lease>(&self, mut buf: Buf<L>) -> Buf<L> {
        // No part can appear meanwhile: that takes this buffer.
        #[cfg(feature = "track")]
        if crate::author::is_alone(buf.lease()) {
            *buf.guard.track_id = self.note(buf.capacity);
        }
        buf
    }
}
