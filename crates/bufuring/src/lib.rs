//! An arena for `io_uring`: pools share registered memory, and operations own their buffers while
//! the kernel may write them. Linux only.
//!
//! # What it gives you
//!
//! - An [`Arena`] is one mapped region: of huge pages, populated, locked. Slot pools, rings, and
//!   growing pools use parts of it.
//! - A [`Driver`] is one `io_uring`. It registers the arena with the kernel, so a read into it pins
//!   no pages. Reads and writes of other memory work too.
//! - An [`Operation`] owns its buffer until the kernel has completed it. It can be waited for
//!   ([`Driver::wait`]) or awaited, and returns the buffer with the result.
//! - A [`Group`] lends buffers of a pool to the kernel, which fills one whenever bytes arrive for a
//!   [`Receiver`]. It takes more buffers from the pool within a budget.
//!
//! # What the system may refuse
//!
//! None of this fails because of the system. A value reports each refusal:
//!
//! | refused | what happens instead | said by |
//! | --- | --- | --- |
//! | locked memory, reserved huge pages | ordinary memory | [`Arena::refused`] |
//! | the registration: a memory limit | each operation pins its pages | [`Driver::mode`] |
//! | `io_uring`: an old kernel, a filter, `sysctl`, too many open files | blocking calls, made at once | [`Driver::mode`] |
//! | provided buffers: an old kernel | one read at a time | [`Group::refused`] |
//!
//! # Why no byte is freed or shared too early
//!
//! - **U1** From the submission of an operation to its last completion, only the driver can access
//!   its buffer. Dropping a handle discards the result, not the memory.
//! - **U2** Dropping a driver cancels the operations in flight, and waits for them. Buffers that
//!   are not completed within ten seconds are leaked.
//! - **U3** A forgotten driver keeps all buffers forever. A buffer keeps its arena in the same way.
//! - **U4** The kernel gets only addresses within a buffer. The arena remains mapped while it is
//!   registered with a driver.
//!
//! # Threads
//!
//! A driver serves one thread at a time, and may move to another. Operations and receivers may be
//! dropped on any thread. When a thread exits, the kernel may cancel the operations that it
//! submitted.
//!
//! # When not to use it
//!
//! A runtime such as `tokio-uring` has its own ring, and tasks. This crate has no tasks, no timers,
//! and does not connect sockets. For reads of a few KiB from the page cache, a plain read costs
//! less than an operation.
//!
//! # Example
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use std::fs::File;
//!
//! use bufcore::MapOptions;
//! use bufslot::SlotPool;
//! use bufuring::{Arena, Descriptor, Driver};
//!
//! let arena = Arena::mapped(1 << 20, MapOptions::new().populate(true))?;
//! let region = arena.part(512 << 10, 4096)?;
//! let mut pool = SlotPool::builder().alignment(4096).build_in(region, bufcore::NoFallback)?;
//!
//! let driver = Driver::new(&arena);
//! println!("{}", driver.mode()); // "registered", or what the system refused
//!
//! let file = Descriptor::new(File::open("Cargo.toml")?);
//! let mut head = driver.read_at(&file, pool.acquire(64)?, 64, 0);
//! let mut next = driver.read_at(&file, pool.acquire(64)?, 64, 64);
//! let (head, next) = (driver.wait(&mut head)?.into_result()?, driver.wait(&mut next)?.into_result()?);
//! assert!(head.starts_with(b"[package]") && next.len() == 64);
//! # Ok(())
//! # }
//! ```
#![cfg(all(
    target_os = "linux",
    any(
        target_arch = "aarch64",
        target_arch = "loongarch64",
        target_arch = "powerpc64",
        target_arch = "riscv64",
        target_arch = "x86_64"
    )
))]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![allow(
    clippy::alloc_instead_of_core,
    clippy::std_instead_of_alloc,
    clippy::std_instead_of_core,
    reason = "there is always an operating system"
)]

mod arena;
mod descriptor;
mod driver;
mod driver_id;
mod error;
mod in_flight;
mod mode;
mod operation;
mod provided;
mod ring;
mod setup;
mod sleeper;

pub use arena::Arena;
pub use bufcore;
pub use descriptor::Descriptor;
pub use driver::Driver;
pub use error::ShortWrite;
pub use mode::{Mode, Refused};
pub use operation::{Completion, Operation};
pub use provided::{Group, Receiver};
pub use setup::Builder;

/// The example of the README, compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
