//! Buffers in the traits of other crates, each behind its feature.

#[cfg(feature = "bytes")]
mod bytes;
#[cfg(feature = "embedded-io")]
mod embedded_io;
#[cfg(feature = "serde")]
mod serde;
mod shared;
#[cfg(feature = "std")]
mod std_io;
