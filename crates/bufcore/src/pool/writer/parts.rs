//! A writer's buffer, in parts.
//!
//! # Invariants
//!
//! - W1: `start`, `next` and `room` are those of a buffer whose guard is `guard`: `next - start`
//!   bytes are filled, and `room` is its spare capacity. Without a guard there are no bytes.

use core::mem::ManuallyDrop;
use core::ptr::NonNull;

use crate::lease::guard::LeaseGuard;
use crate::{Buf, SplitLease};

/// The parts of a buffer: apart, so that a loop of small writes has them in registers.
pub(super) struct Parts<L: SplitLease> {
    /// The first filled byte.
    pub(super) start: NonNull<u8>,
    /// Behind the last one.
    pub(super) next: NonNull<u8>,
    /// Bytes from there on that can be filled.
    pub(super) room: usize,
    /// None between frames. So where the compiler sees that one was finished, nothing is left of
    /// this to be dropped.
    guard: Option<LeaseGuard<L>>,
}

impl<L: SplitLease> Parts<L> {
    #[inline(always)]
    pub(super) fn empty() -> Self {
        Self { start: NonNull::dangling(), next: NonNull::dangling(), room: 0, guard: None }
    }

    #[inline(always)]
    pub(super) fn of(buf: Buf<L>) -> Self {
        let (start, len, capacity, guard) = buf.into_guard();
        // SAFETY: at most `capacity` bytes are filled, so this is in the memory or one past its
        // end.
        let next = unsafe { start.add(len) };
        Self { start, next, room: capacity - len, guard: Some(guard) }
    }

    #[inline(always)]
    pub(super) fn len(&self) -> usize {
        self.next.addr().get() - self.start.addr().get()
    }

    /// Returns the buffer, if there is one, and has nothing in its place.
    #[inline(always)]
    pub(super) fn take(&mut self) -> Option<Buf<L>> {
        let mut parts = core::mem::replace(self, Self::empty());
        let guard = parts.guard.take()?;
        // SAFETY: the parts of a buffer (W1), which is put together again.
        Some(unsafe { Buf::from_guard(parts.start, parts.len(), parts.len() + parts.room, guard) })
    }
}

impl<L: SplitLease> Drop for Parts<L> {
    /// In a call and by value, so that a writer that is dropped need not be in memory.
    #[inline(always)]
    fn drop(&mut self) {
        if let Some(guard) = self.guard.take() {
            release(guard);
        }
    }
}

#[cold]
#[inline(never)]
fn release<L: SplitLease>(guard: LeaseGuard<L>) {
    drop(guard);
}

/// Gives a writer its buffer back, also when the pool's code panics.
pub(super) struct PutBack<'a, L: SplitLease> {
    pub(super) parts: &'a mut Parts<L>,
    /// Read once, when this is dropped.
    pub(super) buf: NonNull<ManuallyDrop<Buf<L>>>,
}

impl<L: SplitLease> Drop for PutBack<'_, L> {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: `buf` is a valid value in the frame of `Writer::widen`, which never drops it and
        // does not use it again.
        let buf = unsafe { self.buf.read() };
        *self.parts = Parts::of(ManuallyDrop::into_inner(buf));
    }
}
