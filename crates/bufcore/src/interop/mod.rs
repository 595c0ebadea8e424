//! Buffers in the traits of other crates, each behind its feature.

#[cfg(any(feature = "allocator-api2-0_2", feature = "allocator-api2-0_4"))]
pub mod allocator;
#[cfg(feature = "bytes")]
mod bytes;
#[cfg(all(feature = "compio-buf-0_8", any(unix, windows)))]
pub mod compio;
#[cfg(feature = "embedded-io-0_7")]
mod embedded_io;
#[cfg(feature = "embedded-io-async-0_7")]
mod embedded_io_async;
#[cfg(all(feature = "monoio-0_2", unix))]
mod monoio;
#[cfg(not(feature = "bytes"))]
mod no_bytes;
mod reading;
#[cfg(feature = "std")]
mod std_io;
#[cfg(all(feature = "tokio-uring-0_5", target_os = "linux"))]
mod tokio_uring;

#[cfg(feature = "std")]
pub use self::std_io::{count_filled, count_read, count_written};
