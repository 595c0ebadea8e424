//! Buffers in completion-based runtimes, over loopback sockets and files.
//!
//! Each test says that it shows nothing where the system refuses io_uring.
#![cfg(target_os = "linux")]
#![cfg(any(feature = "compio", feature = "monoio", feature = "tokio-uring"))]
#![allow(
    clippy::std_instead_of_alloc,
    clippy::std_instead_of_core,
    reason = "tests have an operating system"
)]

#[cfg(feature = "compio")]
mod compio;
mod dropped;
mod echo;
#[cfg(feature = "monoio")]
mod monoio;
mod system;
#[cfg(feature = "tokio-uring")]
mod tokio_uring;
