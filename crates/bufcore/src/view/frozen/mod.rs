//! Read-only, cloneable views of a buffer.

use core::mem::ManuallyDrop;
use core::ptr::{self, NonNull};

use crate::lease::guard::LeaseGuard;
use crate::lease::ref_count::RefCount;
use crate::lease::track::TrackId;
use crate::{Buf, Lease};

mod traits;

/// Shows the bytes of a buffer, read-only. A view is cheap to clone, slice and send; the memory is
/// released with its last view.
///
/// The count of views is in the pool's own memory, so freezing, cloning and slicing allocate
/// nothing.
///
/// A view without bytes holds no memory: it keeps no buffer in use, and does not prevent another
/// view's [`try_into_mut`](Self::try_into_mut). A view therefore releases its share of the memory
/// when it is consumed to its end, truncated to nothing, or [taken](Self::split_to) whole. There is
/// one exception: the view of a buffer that was empty when frozen keeps it, so that `try_into_mut`
/// returns it.
///
/// A view can be read as `std::io::BufRead` and as `bytes::Buf`, even with both in scope: its own
/// methods `consume` and [`take`](Self::take) take precedence. Both traits have a method `chain`.
/// With both in scope, name the trait in the call.
///
/// ```
/// # #[cfg(feature = "alloc")] {
/// use bufcore::HeapPool;
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
    /// Start of the view; `capacity` bytes from here are initialised, and shared by views only
    /// while any other exists.
    ptr: NonNull<u8>,
    /// Bytes of the view, in `0 ..= capacity`.
    len: usize,
    /// Bytes up to the end of what this view may fill again once it is the only one.
    capacity: usize,
    /// The lease. Of the views of one buffer, all hold a bitwise copy and the last one drops its
    /// own (`Lease`, rules 2 and 3). Where the lease has no count, each view, all of zero bytes,
    /// has a lease of its own. `None`, as of views that let go of the memory, where the pool has no
    /// leases of nothing.
    guard: ManuallyDrop<Option<LeaseGuard<L>>>,
}

// SAFETY: views only read; the count is atomic, and whoever drops the lease last has seen all other
// views' reads end (see `Drop`). The lease itself is `Send`.
unsafe impl<L: Lease> Send for Frozen<L> {}
// SAFETY: a shared view gives out shared bytes, clones through the atomic count; the lease is
// `Sync`.
unsafe impl<L: Lease> Sync for Frozen<L> {}

/// A view is `Unpin`, whatever its lease is.
impl<L: Lease> Unpin for Frozen<L> {}

super::methods::view_methods!(impl[L: Lease] Frozen<L>, empty);

impl<L: Lease> Frozen<L> {
    #[inline]
    pub(crate) fn new(buf: Buf<L>) -> Self {
        let (ptr, len, capacity, guard) = buf.into_guard();
        // A part of a buffer that was split is counted already.
        if !guard.lease.is_shared()
            && let Some(views) = guard.lease.views()
        {
            views.init(1);
        }
        Self { ptr, len, capacity, guard: ManuallyDrop::new(Some(guard)) }
    }

    /// Takes the view apart: its bytes, and the lease with its place in the count.
    #[inline]
    pub(crate) fn into_parts(self) -> (NonNull<u8>, usize, Option<LeaseGuard<L>>) {
        let mut view = ManuallyDrop::new(self);
        (view.ptr, view.len, view.guard.take())
    }

    /// Puts a view together again, over its bytes alone.
    ///
    /// # Safety
    ///
    /// The arguments are those that [`into_parts`](Self::into_parts) returned, or a part of the
    /// bytes.
    pub(crate) unsafe fn from_parts(ptr: NonNull<u8>, len: usize, guard: LeaseGuard<L>) -> Self {
        Self { ptr, len, capacity: len, guard: ManuallyDrop::new(Some(guard)) }
    }

    fn views(&self) -> Option<&RefCount> {
        self.guard.as_ref().and_then(|guard| guard.lease.views())
    }

    /// Returns whether this is the only view of the buffer, at this moment. Views without bytes do
    /// not count.
    ///
    /// A view that holds no memory is unique. For a lease of another author, this is so only if it
    /// has [empty leases](Lease::empty).
    ///
    /// ```
    /// # #[cfg(feature = "alloc")] {
    /// use bufcore::HeapPool;
    ///
    /// let mut buf = HeapPool::new().acquire(8)?;
    /// buf.extend_from_slice(b"shared")?;
    /// let view = buf.freeze();
    /// let other = view.clone();
    /// assert!(!view.is_unique());
    /// drop(other);
    /// assert!(view.is_unique());
    /// # }
    /// # Ok::<(), bufcore::Error>(())
    /// ```
    pub fn is_unique(&self) -> bool {
        match &*self.guard {
            Some(guard) => guard.lease.views().is_none_or(RefCount::is_one),
            None => false,
        }
    }

    /// Joins `other` to the end of this view, if `other` shows the following bytes of the same
    /// memory.
    ///
    /// This is the reverse of [`split_to`](Self::split_to) and [`split_off`](Self::split_off). If
    /// this view has no bytes, it becomes `other`; an `other` without bytes is always joined.
    ///
    /// Cost: one locked subtraction; nothing is copied.
    ///
    /// # Errors
    ///
    /// Returns `other` if its bytes do not follow this view's in the same buffer. Both are
    /// unchanged then.
    ///
    /// ```
    /// # #[cfg(feature = "alloc")] {
    /// # use bufcore::{BufferPool, HeapPool};
    /// let mut buf = HeapPool::new().acquire(10).unwrap();
    /// buf.extend_from_slice(b"head body").unwrap();
    /// let mut head = buf.freeze();
    /// let body = head.split_off(5);
    /// head.unsplit(body).unwrap();
    /// assert_eq!(&head[..], b"head body");
    /// # }
    /// ```
    pub fn unsplit(&mut self, other: Self) -> Result<(), Self> {
        if other.is_empty() {
            return Ok(());
        }
        if self.is_empty() {
            *self = other;
            return Ok(());
        }
        let is_one_memory = match (self.views(), other.views()) {
            // One counter is that of one memory (`Lease`, rule 3).
            (Some(views), Some(others)) => ptr::eq(views, others),
            _ => false,
        };
        if !is_one_memory || self.ptr.addr().get() + self.len != other.ptr.addr().get() {
            return Err(other);
        }
        // Of the two ends up to which a view may fill again, when it is the only handle, the
        // farther.
        self.capacity = self.capacity.max(self.len + other.capacity);
        self.len += other.len;
        Ok(())
    }

    /// Returns the first `bytes` bytes of the view, or all of it if it has fewer. The result is a
    /// reader with a limit.
    ///
    /// It implements `std::io::Read` and `bytes::Buf`. Both have a `take`; this method takes
    /// precedence.
    ///
    /// ```
    /// # #[cfg(feature = "alloc")] {
    /// # use bufcore::{BufferPool, HeapPool};
    /// let mut buf = HeapPool::new().acquire(9).unwrap();
    /// buf.extend_from_slice(b"head body").unwrap();
    /// let view = buf.freeze();
    /// assert_eq!(view.clone().take(4), "head");
    /// assert_eq!(view.take(99), "head body");
    /// # }
    /// ```
    #[inline]
    #[must_use = "the whole view is dropped otherwise"]
    pub fn take(mut self, bytes: usize) -> Self {
        self.truncate(bytes);
        self
    }

    /// Makes a view without bytes, which holds nothing.
    #[cold]
    fn empty() -> Self {
        let guard = L::empty().map(|lease| LeaseGuard::new(lease, TrackId::none()));
        Self { ptr: NonNull::dangling(), len: 0, capacity: 0, guard: ManuallyDrop::new(guard) }
    }

    /// Returns whether its pool was told to wipe.
    pub(crate) fn is_wiped(&self) -> bool {
        self.guard.as_ref().is_some_and(|guard| guard.lease.wipe_range().is_some())
    }

    /// Turns the view back into a writable buffer, if it is the only view.
    ///
    /// The bytes of the view are filled; the bytes after them are spare capacity again. A view that
    /// holds no memory becomes a buffer without capacity.
    ///
    /// # Errors
    ///
    /// Returns the view unchanged if other views share the memory.
    ///
    /// ```
    /// # #[cfg(feature = "alloc")] {
    /// use bufcore::HeapPool;
    ///
    /// let mut buf = HeapPool::new().acquire(8)?;
    /// buf.extend_from_slice(b"abc")?;
    /// let view = buf.freeze();
    /// let other = view.clone();
    /// let view = view.try_into_mut().unwrap_err(); // `other` shares the memory
    /// drop(other);
    /// let mut buf = view.try_into_mut().unwrap();
    /// buf.push(b'd')?;
    /// assert_eq!(&buf[..], b"abcd");
    /// # }
    /// # Ok::<(), bufcore::Error>(())
    /// ```
    pub fn try_into_mut(self) -> Result<Buf<L>, Self> {
        if !self.is_unique() {
            return Err(self);
        }
        let mut view = ManuallyDrop::new(self);
        let Some(guard) = view.guard.take() else {
            return Err(ManuallyDrop::into_inner(view));
        };
        // SAFETY: this was the only view, and `view` is not dropped, so the lease moves into the
        // buffer and the memory from `ptr` on is ours alone. No other buffer can hold a part of it:
        // buffers come out of views only here.
        Ok(unsafe { Buf::from_guard(view.ptr, view.len, view.capacity, guard) })
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

impl<L: Lease> Drop for Frozen<L> {
    #[inline]
    fn drop(&mut self) {
        if self.views().is_some_and(|views| !views.release()) {
            return;
        }
        if let Some(guard) = &mut *self.guard {
            // SAFETY: we are the last view (the count said so, or there is no count and the lease
            // is this view's own), so this is the one copy that is released; `guard` is not used
            // again.
            unsafe { guard.release() }
        }
    }
}
