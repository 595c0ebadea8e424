//! Rings in the I/O traits of others.

#[cfg(feature = "bytes")]
mod bytes;
#[cfg(feature = "embedded-io-0_7")]
mod embedded_io;
#[cfg(feature = "std")]
pub(crate) mod std_io;
#[cfg(feature = "tokio")]
mod tokio;
