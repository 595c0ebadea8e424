//! The lease: the part of the pool that a buffer keeps.
//!
//! # What unsafe code of this workspace keeps
//!
//! Whatever safe code does with handles (moves them, drops them in any order, on any thread, after
//! their pool, while unwinding, or forgets them), memory is:
//!
//! - *exclusive*: while a buffer lives, nobody else reads or writes its bytes; while views live,
//!   nobody writes them;
//! - *valid*: it stays allocated until the buffer, or its last view, was dropped;
//! - *initialised*: every byte that safe code is lent was written before;
//! - *released once*, when no handle of it is left.
//!
//! Two rules follow for the source. No unsafe code relies on the implementor of a safe trait
//! (`BufferPool`, `AsRef`, `io::Read`, wakers): what such code returns is compared or measured
//! before it is used. Every function that safe code can reach is sound for every argument at every
//! moment; otherwise it is an `unsafe fn` with numbered duties.
//!
//! Code of users (fallbacks, providers, wakers, readers, iterators, drops of values) may panic, or
//! use and end any pool. So it is called with no lock held, no list borrowed, and with all that it
//! may meet complete; counts change before it or after it returned.
//!
//! A global allocator that uses what it serves is not supported. A shared region, a tracker, a
//! keeper or a monitor may ask it for memory under a lock, and a call that comes back to the same
//! one waits for that lock for ever. No memory becomes invalid by it.

pub(crate) mod guard;
pub(crate) mod ref_count;
pub(crate) mod tagged;
pub(crate) mod tagged_ptr;
pub(crate) mod track;
#[cfg(feature = "wipe")]
pub(crate) mod wipe;

use core::ptr::NonNull;

use crate::lease::ref_count::RefCount;

/// Returns a buffer's memory to its pool: dropping the lease is the release.
///
/// A lease is the part of the pool that a buffer keeps; each strategy has one lease type. Users
/// never call it. They drop the [`Buf`](crate::Buf) or the last [`Frozen`](crate::Frozen) view, on
/// any thread, which drops the lease.
///
/// # Safety
///
/// 1. *Memory.* The memory of a `Buf` stays valid and exclusive to it until its lease is dropped,
///    whatever happens to the pool or to other buffers.
/// 2. *Copies.* `bufcore` may copy the value bit by bit, and use the copies through `&self` on
///    several threads at once. At most one of the copies is dropped. The value therefore owns
///    nothing through a unique pointer such as `Box`.
/// 3. *Count.* [`views`](Lease::views) returns the same counter for all copies, and for no other
///    memory. The counter stays valid until the lease is dropped. `views` returns `None` only for a
///    lease over zero bytes.
/// 4. *Wipe.* The range that [`wipe_range`](Lease::wipe_range) returns lies within the memory of
///    rule 1.
/// 5. *Start.* The pointer that [`start`](Lease::start) returns may access all of the memory of
///    rule 1. All bytes between it and the first byte of the original `Buf` belong to that memory.
/// 6. *Empty.* The lease that [`empty`](Lease::empty) returns is over no bytes, and its `views` is
///    `None`.
///
/// ```
/// # #[cfg(feature = "alloc")] {
/// use std::ptr::NonNull;
///
/// use bufcore::author::RefCount;
/// use bufcore::{Buf, Lease};
///
/// /// The lease of memory that is never given back: its release does nothing.
/// struct Leaked {
///     views: &'static RefCount,
/// }
///
/// // SAFETY:
/// // - memory: valid for ever, and given to one buffer.
/// // - copies: a shared reference.
/// // - count: each memory has a count of its own.
/// unsafe impl Lease for Leaked {
///     fn views(&self) -> Option<&RefCount> {
///         Some(self.views)
///     }
/// }
///
/// fn acquire(capacity: usize) -> Buf<Leaked> {
///     let bytes = Box::leak(vec![0; capacity].into_boxed_slice());
///     let lease = Leaked { views: Box::leak(Box::new(RefCount::new())) };
///     // SAFETY: the bytes are initialised and valid for ever, and nobody else has them.
///     unsafe { Buf::from_raw_parts(NonNull::from(bytes).cast(), capacity, lease) }
/// }
///
/// let mut buf = acquire(16);
/// buf.extend_from_slice(b"header body")?;
/// let mut header = buf.freeze();
/// let body = header.split_off(7);
/// assert_eq!((&header[..], &body[..]), (&b"header "[..], &b"body"[..]));
/// # }
/// # Ok::<(), bufcore::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not the lease of a pool",
    label = "this is no lease",
    note = "the parameter of `Buf` and `Frozen` is what a buffer keeps of its pool: `Buf<SlotLease>`, or `SlotBuf` for short; or `P::Lease` for a `P: BufferPool`"
)]
pub unsafe trait Lease: Send + Sync + 'static {
    /// Returns the count of the memory's views. The count is in place, so freezing allocates
    /// nothing.
    ///
    /// A lease that holds no memory needs no count and returns `None`.
    fn views(&self) -> Option<&RefCount>;

    /// Returns whether the buffer of this lease is already counted in `views`, because it is one of
    /// several that share the memory. See [`SplitLease`].
    ///
    /// A lease that wraps another returns that lease's value.
    #[inline]
    fn is_shared(&self) -> bool {
        false
    }

    /// Returns the memory to zero before the lease is dropped, if its pool wipes.
    ///
    /// This is all of the memory, not only the filled part: callers could write the unfilled part
    /// too.
    ///
    /// ```
    /// # #[cfg(feature = "alloc")] {
    /// use bufcore::{HeapPool, Lease};
    ///
    /// let buf = HeapPool::new().acquire(32)?;
    /// assert!(buf.lease().wipe_range().is_none()); // this pool does not wipe
    /// # #[cfg(feature = "wipe")] {
    /// let buf = HeapPool::new().with_wipe(true).acquire(32)?;
    /// let range = buf.lease().wipe_range().expect("this one does");
    /// assert_eq!(range.len(), 32);
    /// # }
    /// # }
    /// # Ok::<(), bufcore::Error>(())
    /// ```
    fn wipe_range(&self) -> Option<NonNull<[u8]>> {
        None
    }

    /// Returns where the memory starts, for [`Buf::compact`](crate::Buf::compact). A lease that
    /// does not know this, or holds no memory, returns `None`.
    ///
    /// ```
    /// # #[cfg(feature = "alloc")] {
    /// use bufcore::{HeapPool, Lease};
    ///
    /// let mut buf = HeapPool::new().acquire_zeroed(8)?;
    /// buf.consume(5);
    /// let start = buf.lease().start().expect("a heap pool knows it");
    /// assert_eq!(buf.as_ptr().addr() - start.addr().get(), 5);
    /// # }
    /// # Ok::<(), bufcore::Error>(())
    /// ```
    fn start(&self) -> Option<NonNull<u8>> {
        None
    }

    /// Makes a lease over no bytes, for a view or part without bytes, which holds no memory.
    ///
    /// Such a view can then become a buffer again, without capacity. If this returns `None`, the
    /// default, a view of no bytes cannot become a buffer.
    ///
    /// ```
    /// # #[cfg(feature = "alloc")] {
    /// use bufcore::{HeapLease, Lease};
    ///
    /// let empty = HeapLease::empty().expect("a heap pool has them");
    /// assert!(empty.views().is_none());
    /// # }
    /// ```
    #[must_use]
    fn empty() -> Option<Self>
    where
        Self: Sized,
    {
        None
    }
}

/// A lease whose memory several buffers can share, each with a part of its own.
///
/// [`Buf::split_to`](crate::Buf::split_to) and [`Buf::split_off`](crate::Buf::split_off) need it.
///
/// All handles of a split memory, buffers and views, are counted in [`views`](Lease::views), and
/// hold bitwise copies of one lease. The last handle drops it. While a handle lives, its part is
/// valid and exclusive to it: rule 1 of [`Lease`] applies to each part. The memory is wiped as a
/// whole when the last handle is dropped, before it is reused.
///
/// # Safety
///
/// [`is_shared`](Lease::is_shared) is true for a lease that [`into_shared`](Self::into_shared)
/// returned, and for its bitwise copies. It is false for a lease without a call of `into_shared`,
/// and for one over no bytes. `into_shared` does not panic. [`Lease::empty`] returns a lease.
///
/// ```
/// # #[cfg(feature = "alloc")] {
/// use bufcore::{Buf, HeapPool, SplitLease};
///
/// /// Cuts messages of `len` bytes off a buffer: for the pools whose leases allow it.
/// fn messages<L: SplitLease>(buf: &mut Buf<L>, len: usize) -> Vec<Buf<L>> {
///     let mut found = Vec::new();
///     while buf.len() >= len {
///         found.push(buf.split_to(len));
///     }
///     found
/// }
///
/// let mut buf = HeapPool::new().acquire(16)?;
/// buf.extend_from_slice(b"onetwothr")?;
/// buf.truncate(8);
/// assert_eq!(messages(&mut buf, 3), [&b"one"[..], b"two"]);
/// assert_eq!(buf, "th");
/// # }
/// # Ok::<(), bufcore::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "buffers with the lease `{Self}` cannot be split",
    label = "several buffers cannot share this lease's memory",
    note = "code that is generic over the pool asks for it with `where P::Lease: SplitLease`",
    note = "a frozen view of any pool can be split: `buf.freeze().split_to(n)`"
)]
pub unsafe trait SplitLease: Lease + Sized {
    /// Returns the same lease, marked as one of several.
    #[must_use]
    fn into_shared(self) -> Self;
}

/// Leases no bytes: the lease of a pool that serves no request, such as
/// [`NoFallback`](crate::NoFallback).
///
/// ```
/// use bufcore::{AcquireError, Buf, BufferPool, NoLease, NoFallback};
///
/// /// A fallback may be none at all.
/// fn fallback() -> impl BufferPool<Lease = NoLease> {
///     NoFallback
/// }
///
/// let nothing: Result<Buf<NoLease>, AcquireError> = fallback().acquire(0);
/// assert!(nothing.is_ok_and(|buf| buf.capacity() == 0));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoLease(());

// SAFETY: it holds no memory, so there is nothing to uphold; `views` is `None`, as for all such
// leases.
unsafe impl Lease for NoLease {
    #[inline]
    fn views(&self) -> Option<&RefCount> {
        None
    }

    #[inline]
    fn empty() -> Option<Self> {
        Some(Self(()))
    }
}

// SAFETY: buffers of no bytes are not split into several that hold anything, so the mark is never
// asked for: whoever calls `into_shared` gets a lease over nothing, which is not counted.
unsafe impl SplitLease for NoLease {
    #[inline]
    fn into_shared(self) -> Self {
        self
    }
}
