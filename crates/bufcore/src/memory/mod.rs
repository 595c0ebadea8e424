//! Memory: where the bytes of pools come from, and how they are copied.

pub(crate) mod aliasing;
pub(crate) mod build_in_error;
#[cfg(feature = "mmap")]
pub(crate) mod map_options;
pub(crate) mod pages;
#[cfg(feature = "alloc")]
pub(crate) mod provider;
#[allow(clippy::disallowed_methods, reason = "this is where raw memory is taken and given back")]
pub(crate) mod region;
#[cfg(feature = "std")]
pub(crate) mod shared_region;
pub mod size;
#[cfg(feature = "alloc")]
pub(crate) mod try_box;
