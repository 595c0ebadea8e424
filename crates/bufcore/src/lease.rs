//! The lease: the part of the pool that a buffer keeps.

use core::ptr::NonNull;

use crate::views::Views;

/// The part of a buffer that knows how to return its memory. Dropping it is the release.
///
/// A strategy has one lease type. Users never call it; they drop the [`Buf`](crate::Buf) or the
/// last [`Frozen`](crate::Frozen) view, on any thread, and that drops the lease.
///
/// # Safety
///
/// 1. *Memory.* The memory that a `Buf` was built over stays valid and exclusive to it until its
///    lease has been dropped, whatever happens to the pool or to other buffers.
/// 2. *Copies.* The value may be copied bit by bit, by `bufcore`, and the copies be used through
///    `&self` on several threads at once; exactly one of all copies is dropped, or none. So it owns
///    nothing through a unique pointer such as `Box`.
/// 3. *Count.* What [`views`](Lease::views) returns is the same counter for all copies and for no
///    other memory, and stays valid until the lease has been dropped. It returns `None` only for a
///    lease over zero bytes.
/// 4. *Wipe.* What [`wipe_range`](Lease::wipe_range) returns lies within the memory of 1.
/// 5. *Start.* From what [`start`](Lease::start) returns, which reaches all of the memory of 1, up
///    to the first byte that a `Buf` was built over lie bytes of that memory, and of no other.
/// 6. *Nothing.* What [`another_of_nothing`](Lease::another_of_nothing) returns is a lease over no
///    bytes, whose `views` is `None`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not the lease of a pool",
    label = "this is no lease",
    note = "the parameter of `Buf` and `Frozen` is what a buffer keeps of its pool: `Buf<SlotLease>`, or `SlotBuf` for short; or `P::Lease` for a `P: BufferPool`"
)]
pub unsafe trait Lease: Send + Sync + 'static {
    /// Returns the count of the buffer's views, in place, so that freezing allocates nothing. A
    /// lease that holds no memory needs no count and returns `None`.
    fn views(&self) -> Option<&Views>;

    /// Returns whether the buffer of this lease is counted in `views` already, because it is one of
    /// several that share the memory; see [`SplitLease`]. A lease that wraps another returns what
    /// that one returns.
    #[inline]
    fn is_shared(&self) -> bool {
        false
    }

    /// Returns the memory to zero before the lease is dropped, if its pool was told to wipe. This
    /// is all of it, not only what is filled: the unfilled part was lent out as well.
    fn wipe_range(&self) -> Option<NonNull<[u8]>> {
        None
    }

    /// Returns where the memory starts, for [`Buf::compact`](crate::Buf::compact). A lease that
    /// does not know, or holds no memory, returns `None`.
    fn start(&self) -> Option<NonNull<u8>> {
        None
    }

    /// Returns a lease over no bytes, for a view that has none and so holds no memory.
    ///
    /// It lets such a view become a buffer again, one without capacity. Any lease may be asked.
    /// Where it returns `None`, as by default, a view that holds nothing stays a view.
    ///
    /// It is a value of its own, no copy: its `views` is `None` as well, and it is dropped for
    /// itself.
    fn another_of_nothing(&self) -> Option<Self>
    where
        Self: Sized,
    {
        None
    }
}

/// A lease whose memory several buffers can share, each a part of its own: what
/// [`Buf::split_to`](crate::Buf::split_to) and [`Buf::split_off`](crate::Buf::split_off) need.
///
/// All handles of a split memory, buffers and views, are counted in [`views`](Lease::views), and
/// hold bitwise copies of one lease. The last one drops it. While a handle lives, its part is valid
/// and exclusive to it (rule 1 of [`Lease`], part by part); the memory is wiped as a whole when the
/// last one goes, before anyone else can see it.
///
/// # Safety
///
/// [`is_shared`](Lease::is_shared) is true of what [`into_shared`](Self::into_shared) returns and
/// of its bitwise copies, and false of a lease that it was not called on, and of one over no bytes.
/// `into_shared` does not panic.
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

    /// Returns a lease over no bytes, whose `views` is `None`.
    #[must_use]
    fn nothing() -> Self;
}

/// The lease of a buffer without bytes, from a pool that never hands out any, such as
/// [`Reject`](crate::Reject).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoLease(());

impl NoLease {
    pub(crate) const fn new() -> Self {
        Self(())
    }
}

// SAFETY: it holds no memory, so there is nothing to uphold; `views` is `None`, as for all such
// leases.
unsafe impl Lease for NoLease {
    #[inline]
    fn views(&self) -> Option<&Views> {
        None
    }

    fn another_of_nothing(&self) -> Option<Self> {
        Some(Self::new())
    }
}

// SAFETY: buffers of no bytes are not split into several that hold anything, so the mark is never
// asked for: whoever calls `into_shared` gets a lease over nothing, which is not counted.
unsafe impl SplitLease for NoLease {
    #[inline]
    fn into_shared(self) -> Self {
        self
    }

    #[inline]
    fn nothing() -> Self {
        Self::new()
    }
}
