//! What a buffer keeps of the pool it came from.

use core::ptr::NonNull;

use crate::sync::AtomicU32;

/// The part of a buffer that knows how to return its memory. Dropping it is the release.
///
/// A strategy has one lease type. Users never call it; they drop the [`Buf`](crate::Buf) or the last
/// [`Frozen`](crate::Frozen) view, on any thread, and that drops the lease.
///
/// # Safety
///
/// 1. *Memory.* The memory that a `Buf` was built over stays valid and exclusive to it until its lease has been dropped,
///    whatever happens to the pool or to other buffers.
/// 2. *Copies.* The value may be copied bit by bit, by `bufcore`, and the copies be used through `&self` on several threads
///    at once; exactly one of all copies is dropped, or none. So it owns nothing through a unique pointer such as `Box`.
/// 3. *Count.* What [`views`](Lease::views) returns is the same counter for all copies, is used by nobody else, and stays
///    valid until the lease has been dropped. It returns `None` only for a lease over zero bytes.
/// 4. *Wipe.* What [`wipe_range`](Lease::wipe_range) returns lies within the memory of 1.
pub unsafe trait Lease: Send + Sync + 'static {
    /// Where views of the buffer are counted, in place, so that freezing allocates nothing. `None` for a lease that holds no
    /// memory and so needs no count.
    fn views(&self) -> Option<&AtomicU32>;

    /// The memory to zero before the lease is dropped, if its pool was told to wipe. All of it, not only what is filled:
    /// the unfilled part was lent out as well.
    fn wipe_range(&self) -> Option<NonNull<[u8]>> {
        None
    }
}

/// The lease of a pool that never hands out anything, such as [`Reject`](crate::Reject). It has no values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoLease {}

// SAFETY: there is no value of this type, so there is nothing to uphold.
unsafe impl Lease for NoLease {
    fn views(&self) -> Option<&AtomicU32> {
        match *self {}
    }
}
