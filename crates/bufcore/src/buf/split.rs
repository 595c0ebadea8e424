//! Buffers that become several, which share their memory.
//!
//! # Invariants
//!
//! - S1: the parts of one memory do not overlap: a split gives each byte of a buffer's capacity to
//!   one of two.
//! - S2: a lease that is marked as shared is counted: `views` is the number of handles, buffers and
//!   views, of its memory.
//! - S3: a lease that is not marked belongs to an exclusive buffer, and `views` is of no meaning,
//!   or to views only, and it is their number. Marking it makes S2 true by a store, while it is
//!   exclusive.

use core::mem::ManuallyDrop;
use core::ptr::{self, NonNull};

use crate::lease::guard::LeaseGuard;
use crate::{Buf, SplitLease};

impl<L: SplitLease> Buf<L> {
    /// Splits the buffer: returns the first `at` filled bytes as a new buffer, and keeps the rest.
    ///
    /// Both are exclusive and writable. The memory is released as a whole, when the last part and
    /// the last view of a part are dropped. The capacity of the returned buffer is `at`. A view of
    /// a part can become a buffer again only if no other part is left.
    ///
    /// Cost: one plain store the first time, then one locked addition; no allocation, no copy.
    ///
    /// # Panics
    ///
    /// Panics if `at` is over [`len`](Self::len), or if one memory has more than two billion parts
    /// and views.
    ///
    /// ```
    /// # #[cfg(feature = "alloc")] {
    /// use bufcore::HeapPool;
    ///
    /// let mut buf = HeapPool::new().acquire(16)?;
    /// buf.extend_from_slice(b"\x02hi\x05hel")?;
    /// let mut message = buf.split_to(3); // owned, and writable
    /// message[1..].make_ascii_uppercase();
    /// assert_eq!((&message[..], &buf[..]), (&b"\x02HI"[..], &b"\x05hel"[..]));
    /// # }
    /// # Ok::<(), bufcore::Error>(())
    /// ```
    #[must_use = "the first part is dropped otherwise; use `consume` to cut the front off"]
    #[track_caller]
    pub fn split_to(&mut self, at: usize) -> Self {
        assert!(at <= self.len(), "split_to({at}) of {} filled bytes", self.len());
        let mut back = self.split_at(at);
        core::mem::swap(self, &mut back);
        back
    }

    /// Splits the buffer: keeps the first `at` bytes of its capacity and returns the rest, filled
    /// or not, as a new buffer.
    ///
    /// Otherwise as [`split_to`](Self::split_to).
    ///
    /// # Panics
    ///
    /// Panics if `at` is over [`capacity`](Self::capacity), or if one memory has more than two
    /// billion parts and views.
    ///
    /// ```
    /// # #[cfg(feature = "alloc")] {
    /// use bufcore::HeapPool;
    ///
    /// let mut head = HeapPool::new().acquire(16)?;
    /// head.extend_from_slice(b"length")?;
    /// let mut body = head.split_off(8); // its capacity is divided too
    /// body.extend_from_slice(b"body")?;
    /// assert_eq!((head.capacity(), body.capacity()), (8, 8));
    /// assert_eq!((&head[..], &body[..]), (&b"length"[..], &b"body"[..]));
    /// # }
    /// # Ok::<(), bufcore::Error>(())
    /// ```
    #[must_use = "the second part is dropped otherwise; use `truncate` to cut the end off"]
    #[track_caller]
    pub fn split_off(&mut self, at: usize) -> Self {
        assert!(at <= self.capacity(), "split_off({at}) of {} bytes", self.capacity());
        self.split_at(at)
    }

    /// Joins `other` to the end of this buffer, if `other` is the next part of the same memory.
    ///
    /// This is the reverse of [`split_to`](Self::split_to) and [`split_off`](Self::split_off).
    ///
    /// The filled bytes must be contiguous: this buffer is full, or `other` is empty. If this
    /// buffer has no capacity, it becomes `other`; an `other` without capacity is always joined.
    /// Nothing is ever copied.
    ///
    /// Cost: one locked subtraction. The buffer keeps the slower release of a part, even if it is
    /// the only handle again.
    ///
    /// # Errors
    ///
    /// Returns `other` if the two are not adjacent in this sense. Both are unchanged then.
    ///
    /// ```
    /// # #[cfg(feature = "alloc")] {
    /// # use bufcore::{BufferPool, HeapPool};
    /// let mut front = HeapPool::new().acquire(10).unwrap();
    /// front.extend_from_slice(b"hello!").unwrap();
    /// let back = front.split_off(5);
    /// front.unsplit(back).unwrap();
    /// assert_eq!((&front[..], front.capacity()), (&b"hello!"[..], 10));
    /// # }
    /// ```
    pub fn unsplit(&mut self, other: Self) -> Result<(), Self> {
        if other.capacity() == 0 {
            return Ok(());
        }
        if self.capacity() == 0 {
            *self = other;
            return Ok(());
        }
        if !self.is_before(&other) || (self.spare_capacity() > 0 && !other.is_empty()) {
            return Err(other);
        }
        let (_, len, capacity, guard) = other.into_guard();
        // Before the handle of the other part goes, which is not the last: this one is there.
        // SAFETY: the other part's bytes come right behind this one's, in the same memory, and were
        // the other part's alone (S1); what is filled is without a gap. This handle keeps the
        // memory (S2).
        unsafe { self.append_part(len, capacity) };
        drop(guard);
        Ok(())
    }

    /// Returns whether `other` is the next part of the same memory.
    fn is_before(&self, other: &Self) -> bool {
        let (Some(views), Some(others)) = (self.lease().views(), other.lease().views()) else { return false };
        // One counter is that of one memory (`Lease`, rule 3). That the one ends where the other
        // starts is not enough: two memories may be neighbours.
        ptr::eq(views, others) && self.memory().end == other.memory().start
    }

    /// Keeps the first `at` bytes of the capacity and returns the rest. `at` is at most the
    /// capacity.
    fn split_at(&mut self, at: usize) -> Self {
        debug_assert!(at <= self.capacity(), "split at {at} of {}", self.capacity());
        let (start, len, capacity, guard) = core::mem::replace(self, empty_buf(1)).into_guard();
        // SAFETY: `at <= capacity`, so this is within the memory or one past its end.
        let middle = unsafe { start.add(at) };
        let (front_guard, back_guard) = match at {
            // A part of no bytes holds nothing.
            0 => (LeaseGuard::empty(), guard),
            _ if at == capacity => (guard, LeaseGuard::empty()),
            _ => share(guard),
        };
        let front_len = len.min(at);
        // SAFETY: the first `at` bytes were this buffer's and are now this part's alone (S1); they
        // are released with the last handle (S2).
        *self = unsafe { Self::from_guard(start, front_len, at, front_guard) };
        // SAFETY: likewise for the rest. `front_len` is `len`, or all of the front.
        unsafe { Self::from_guard(middle, len - front_len, capacity - at, back_guard) }
    }
}

/// Makes a buffer of no bytes, which holds no memory of a pool and starts at a multiple of
/// `alignment`.
///
/// ```
/// # #[cfg(feature = "alloc")] {
/// let empty: bufcore::HeapBuf = bufcore::author::empty_buf(4096);
/// assert_eq!((empty.as_ptr().addr(), empty.capacity()), (4096, 0));
/// # }
/// ```
#[inline]
#[must_use]
pub fn empty_buf<L: SplitLease>(alignment: usize) -> Buf<L> {
    let start = NonNull::new(ptr::without_provenance_mut(alignment)).unwrap_or(NonNull::dangling());
    // SAFETY: no bytes are claimed.
    unsafe { Buf::from_guard(start, 0, 0, LeaseGuard::empty()) }
}

/// Makes two counted handles of one.
fn share<L: SplitLease>(guard: LeaseGuard<L>) -> (LeaseGuard<L>, LeaseGuard<L>) {
    // Counted before anything is copied, so that a panic leaves one handle and a right count.
    let was_shared = guard.lease.is_shared();
    if let Some(views) = guard.lease.views() {
        if was_shared {
            views.retain();
        } else {
            views.init(2);
        }
    }
    let (lease, track_id) = guard.into_parts();
    let first = ManuallyDrop::new(LeaseGuard::new(lease.into_shared(), track_id));
    // SAFETY: valid for reads, and never dropped; the copy follows the rule of bitwise copies
    // (`Lease`, rule 2): of all of them, the last handle drops one. The tracker's id beside the
    // lease follows the same rule.
    let second = unsafe { ptr::read(&raw const *first) };
    (ManuallyDrop::into_inner(first), second)
}
