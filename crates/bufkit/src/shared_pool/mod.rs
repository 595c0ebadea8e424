//! Pools that threads share.

#[cfg(feature = "alloc")]
pub(crate) mod handle;
#[cfg(feature = "page-heap")]
pub(crate) mod provider;
pub(crate) mod ref_counts;
#[cfg(feature = "alloc")]
pub(crate) mod registry;
