//! Pools that threads share.

#[cfg(feature = "std")]
pub(crate) mod dedicated_pages;
#[cfg(feature = "alloc")]
pub(crate) mod handle;
pub(crate) mod ref_counts;
#[cfg(feature = "alloc")]
pub(crate) mod registry;
