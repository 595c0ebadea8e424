//! Pools that threads share.

#[cfg(feature = "std")]
pub(crate) mod dedicated_pages;
#[cfg(feature = "alloc")]
pub(crate) mod handle;
pub(crate) mod ref_counts;
#[cfg(feature = "alloc")]
pub(crate) mod registry;

use bufcore::Lease;
use bufcore::author::RefCount;

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
