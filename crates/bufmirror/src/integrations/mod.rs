//! Rings in the I/O traits of others.

#[cfg(feature = "bytes")]
mod bytes;
#[cfg(feature = "embedded-io")]
mod embedded_io;
#[cfg(feature = "embedded-io-async")]
mod embedded_io_async;
#[cfg(feature = "std")]
pub(crate) mod std_io;
#[cfg(feature = "tokio")]
mod tokio;
