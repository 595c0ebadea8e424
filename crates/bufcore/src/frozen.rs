//! Read-only, cloneable views of a buffer.

use core::borrow::Borrow;
use core::cmp::Ordering as Order;
use core::fmt;
use core::hash::{Hash, Hasher};
use core::mem::ManuallyDrop;
use core::ops::{Bound, Deref, RangeBounds};
use core::ptr::{self, NonNull};
use core::slice;

use crate::held::Held;
use crate::track::Ticket;
use crate::views::Views;
use crate::{Buf, Lease};

/// A read-only view of a buffer, cheap to clone, slice and send; the memory is released when the last view of it goes.
///
/// The count of views stands in the pool's own memory, so freezing, cloning and slicing allocate nothing.
///
/// ```
/// # #[cfg(feature = "alloc")] {
/// use bufcore::{BufferPool, HeapPool};
///
/// let mut buf = HeapPool::new().acquire(16).unwrap();
/// buf.extend_from_slice(b"header body").unwrap();
/// let mut body = buf.freeze();
/// let header = body.split_to(7);
/// assert_eq!((&header[..], &body[..]), (&b"header "[..], &b"body"[..]));
///
/// let body = body.try_into_mut().unwrap_err(); // `header` still shares the memory
/// drop(header);
/// let mut body = body.try_into_mut().unwrap(); // now this view is the only one
/// body.extend_from_slice(b"!").unwrap();
/// assert_eq!(&body[..], b"body!");
/// # }
/// ```
pub struct Frozen<L: Lease> {
    /// Start of the view; `capacity` bytes from here are initialised, and shared by views only while any other exists.
    ptr: NonNull<u8>,
    /// Bytes of the view, in `0 ..= capacity`.
    len: usize,
    /// Bytes up to the end of what this view may fill again once it is the only one.
    capacity: usize,
    /// The lease. Of the views of one buffer, all hold a bitwise copy and the last one drops its own (`Lease`, rules 2 and 3).
    /// Where the lease has no count, each view, all of zero bytes, has a lease of its own, or `None` where there is no other.
    held: ManuallyDrop<Option<Held<L>>>,
}

// SAFETY: views only read; the count is atomic, and whoever drops the lease last has seen all other views' reads end (see
// `Drop`). The lease itself is `Send`.
unsafe impl<L: Lease> Send for Frozen<L> {}
// SAFETY: a shared view gives out shared bytes, clones through the atomic count; the lease is `Sync`.
unsafe impl<L: Lease> Sync for Frozen<L> {}

impl<L: Lease> Frozen<L> {
    #[inline]
    pub(crate) fn new(buf: Buf<L>) -> Self {
        let (ptr, len, capacity, held) = buf.into_held();
        // A part of a buffer that was split is counted already.
        if !held.lease.is_shared()
            && let Some(views) = held.lease.views()
        {
            views.start(1);
        }
        Self { ptr, len, capacity, held: ManuallyDrop::new(Some(held)) }
    }

    fn views(&self) -> Option<&Views> {
        self.held.as_ref().and_then(|held| held.lease.views())
    }

    /// Bytes of this view.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the view has no bytes.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The bytes.
    #[inline]
    pub fn as_slice(&self) -> &[u8] {
        // SAFETY: `len` bytes from `ptr` are valid and initialised while a view of the buffer lives, and no writer exists.
        unsafe { slice::from_raw_parts(self.ptr.as_ptr(), self.len) }
    }

    /// Whether this is the only view of the buffer, at this moment.
    ///
    /// Views of a buffer of no bytes share no memory. Most pools do not count them, and then each of them is the only one.
    pub fn is_unique(&self) -> bool {
        match &*self.held {
            Some(held) => held.lease.views().is_none_or(Views::is_one),
            None => false,
        }
    }

    /// A view of part of this one; both share the memory.
    ///
    /// # Panics
    ///
    /// When `range` is out of bounds or ends before it starts.
    #[must_use]
    #[track_caller]
    pub fn slice(&self, range: impl RangeBounds<usize>) -> Self {
        let start = match range.start_bound() {
            Bound::Included(&at) => at,
            Bound::Excluded(&at) => at.saturating_add(1),
            Bound::Unbounded => 0,
        };
        let end = match range.end_bound() {
            Bound::Included(&at) => at.saturating_add(1),
            Bound::Excluded(&at) => at,
            Bound::Unbounded => self.len,
        };
        assert!(start <= end && end <= self.len, "slice {start}..{end} of {} bytes", self.len);
        let mut view = self.clone();
        view.skip(start);
        view.len = end - start;
        view
    }

    /// Splits the view: returns the first `at` bytes and keeps the rest. Both share the memory.
    ///
    /// # Panics
    ///
    /// When `at` is over [`len`](Self::len).
    #[must_use = "the first part is dropped otherwise; use `slice` to cut the front off"]
    #[track_caller]
    pub fn split_to(&mut self, at: usize) -> Self {
        let front = self.slice(..at);
        self.skip(at);
        front
    }

    /// Splits the view: keeps the first `at` bytes and returns the rest. Both share the memory.
    ///
    /// # Panics
    ///
    /// When `at` is over [`len`](Self::len).
    #[must_use = "the second part is dropped otherwise; use `slice` to cut the end off"]
    #[track_caller]
    pub fn split_off(&mut self, at: usize) -> Self {
        let back = self.slice(at..);
        self.len = at;
        back
    }

    /// Back to a writable buffer, when this is the only view: its bytes filled, and what follows them to fill again.
    ///
    /// # Errors
    ///
    /// Returns the view unchanged while other views share the memory.
    pub fn try_into_mut(self) -> Result<Buf<L>, Self> {
        if !self.is_unique() {
            return Err(self);
        }
        let mut view = ManuallyDrop::new(self);
        let Some(held) = view.held.take() else {
            return Err(ManuallyDrop::into_inner(view));
        };
        // SAFETY: this was the only view, and `view` is not dropped, so the lease moves into the buffer and the memory from
        // `ptr` on is ours alone. No other buffer can hold a part of it: buffers come out of views only here.
        Ok(unsafe { Buf::from_held(view.ptr, view.len, view.capacity, held) })
    }

    /// Drops the first `bytes` bytes from this view.
    ///
    /// Cost: nothing is copied.
    ///
    /// # Panics
    ///
    /// When `bytes` is over [`len`](Self::len).
    #[inline]
    #[track_caller]
    pub fn consume(&mut self, bytes: usize) {
        assert!(bytes <= self.len, "consume({bytes}) of {} bytes", self.len);
        self.skip(bytes);
    }

    /// Moves the start of the view. `bytes` is at most `len`, checked by the callers.
    #[inline]
    fn skip(&mut self, bytes: usize) {
        debug_assert!(bytes <= self.len, "skip {bytes} of {}", self.len);
        // SAFETY: `bytes <= len <= capacity`, so this stays within the memory or one past its end.
        self.ptr = unsafe { self.ptr.add(bytes) };
        self.len -= bytes;
        self.capacity -= bytes;
    }
}

impl<L: Lease> Clone for Frozen<L> {
    /// # Panics
    ///
    /// With more than two thousand million views of one buffer.
    #[inline]
    fn clone(&self) -> Self {
        let held = match self.views() {
            Some(views) => {
                views.join();
                // SAFETY: `held` is valid for reads; it may be copied bit by bit (`Lease`, rule 2), and `Drop` drops one copy
                // only. The ticket beside the lease follows the same rule.
                unsafe { ptr::read(&raw const *self.held) }
            }
            None => {
                let another = self.held.as_ref().and_then(|held| held.lease.another_of_nothing());
                another.map(|lease| Held::new(lease, Ticket::none()))
            }
        };
        Self { ptr: self.ptr, len: self.len, capacity: self.capacity, held: ManuallyDrop::new(held) }
    }
}

impl<L: Lease> Drop for Frozen<L> {
    #[inline]
    fn drop(&mut self) {
        if self.views().is_some_and(|views| !views.leave()) {
            return;
        }
        if let Some(held) = &mut *self.held {
            // SAFETY: we are the last view (the count said so, or there is no count and the lease is this view's own), so this is
            // the one copy that is released; `held` is not used again.
            unsafe { held.release() }
        }
    }
}

impl<L: Lease> Deref for Frozen<L> {
    type Target = [u8];
    #[inline]
    fn deref(&self) -> &[u8] {
        self.as_slice()
    }
}

impl<L: Lease> AsRef<[u8]> for Frozen<L> {
    #[inline]
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl<L: Lease> Borrow<[u8]> for Frozen<L> {
    fn borrow(&self) -> &[u8] {
        self
    }
}

impl<L: Lease> From<Buf<L>> for Frozen<L> {
    fn from(buf: Buf<L>) -> Self {
        buf.freeze()
    }
}

impl<L: Lease> fmt::Debug for Frozen<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Frozen").field("len", &self.len).finish_non_exhaustive()
    }
}

impl<L: Lease, T: AsRef<[u8]> + ?Sized> PartialEq<T> for Frozen<L> {
    fn eq(&self, other: &T) -> bool {
        self.as_slice() == other.as_ref()
    }
}

impl<L: Lease> Eq for Frozen<L> {}

impl<L: Lease> PartialOrd for Frozen<L> {
    fn partial_cmp(&self, other: &Self) -> Option<Order> {
        Some(self.cmp(other))
    }
}

impl<L: Lease> Ord for Frozen<L> {
    fn cmp(&self, other: &Self) -> Order {
        self.as_slice().cmp(other.as_slice())
    }
}

impl<L: Lease> Hash for Frozen<L> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_slice().hash(state);
    }
}

impl<'a, L: Lease> IntoIterator for &'a Frozen<L> {
    type Item = &'a u8;
    type IntoIter = slice::Iter<'a, u8>;
    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}
