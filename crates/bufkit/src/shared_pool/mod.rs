//! Pools that threads share.

#[cfg(feature = "std")]
pub(crate) mod dedicated_pages;
#[cfg(feature = "alloc")]
pub(crate) mod handle;
pub(crate) mod ref_counts;
#[cfg(feature = "alloc")]
pub(crate) mod registry;

use core::ptr::{self, NonNull};

use bufcore::author::RefCount;
use bufcore::{Buf, Lease, SplitLease};

/// Returns whether no other buffer or view shares the memory of a buffer with this lease, at this
/// moment.
///
/// ```
/// # #[cfg(feature = "alloc")] {
/// let mut buf = bufcore::HeapPool::new().acquire(100)?;
/// assert!(bufkit::is_alone(buf.lease()));
/// let rest = buf.split_off(10);
/// assert!(!bufkit::is_alone(buf.lease()));
/// drop(rest);
/// assert!(bufkit::is_alone(buf.lease()));
/// # }
/// # Ok::<(), bufcore::AcquireError>(())
/// ```
pub fn is_alone(lease: &impl Lease) -> bool {
    !lease.is_shared() || lease.views().is_none_or(RefCount::is_one)
}

/// Makes a buffer of no bytes, which holds nothing of a pool, and starts at a multiple of
/// `alignment`.
///
/// ```
/// # #[cfg(feature = "alloc")] {
/// let empty: bufcore::HeapBuf = bufkit::empty_buf(4096);
/// assert_eq!((empty.as_ptr().addr(), empty.capacity()), (4096, 0));
/// # }
/// ```
#[must_use]
pub fn empty_buf<L: SplitLease>(alignment: usize) -> Buf<L> {
    let start = NonNull::new(ptr::without_provenance_mut(alignment)).unwrap_or(NonNull::dangling());
    let Some(lease) = L::empty() else { unreachable!("`SplitLease` promises an empty one") };
    // SAFETY: no bytes are claimed.
    unsafe { Buf::from_raw_parts(start, 0, lease) }
}
