//! The common types of every bufworks strategy: one owned buffer, one way to acquire it, one set of
//! errors.
//!
//! # What it gives you
//!
//! - [`Buf`] owns bytes exclusively, like a `Vec<u8>` that cannot reallocate, and is `Send`.
//!   [`Frozen`] is its read-only view, which can be cloned. [`SharedBytes`] is such a view with its
//!   strategy erased, or a program's own bytes.
//! - A [`BufferPool`] serves whole buffers. A [`Writer`] fills one in steps; the pool grows it, in
//!   place if possible. Bytes stream through a [`ByteSink`] and a [`ByteSource`].
//! - [`AcquireError`], [`ReserveError`], [`ConfigError`] and [`RegionError`] are small, `Copy`, and
//!   contain the numbers of the failed call.
//! - A [`Region`] is the memory of a pool: the heap, a caller's static memory, or mapped pages.
//!   Several pools can share a [`SharedRegion`].
//! - A [`HeapPool`] makes a fresh heap allocation for every acquire. It is the usual fallback.
//!
//! The strategies are separate crates, such as `bufslot`. [`author`] and the crate `bufkit` have
//! the other parts of a new strategy.
//!
//! # The rules that every strategy keeps
//!
//! 1. A buffer is exclusive: while it lives, no other code can read or write its memory.
//! 2. Its memory is always initialised, so safe code can write the unfilled part. That part holds
//!    *recycled bytes* of an earlier use, unless the pool wipes. A buffer derefs to its filled part
//!    only.
//! 3. A buffer may outlive its pool, move to another thread, be leaked, or be dropped while a
//!    thread unwinds or exits. Dropping a buffer or a pool waits at most for a short lock. The
//!    memory is freed with the last buffer; the module `orphan` of `bufkit` describes the one case
//!    in which it is freed slightly later.
//! 4. Failure is a value. Exhaustion, impossible sizes and system failures are errors with the
//!    numbers of the request. The failed call leaves the pool and the filled bytes unchanged.
//!
//! # Features
//!
//! | feature | adds |
//! | --- | --- |
//! | `std` (default) | `std::io` for buffers; it implies `alloc` |
//! | `alloc` | [`HeapPool`], regions from the heap, `Vec` and `String` |
//! | `allocator-api2-0_2`, `allocator-api2-0_4` | `allocator::PoolAllocator`: collections whose memory is in a pool; for each version of that crate |
//! | `bytes` | the traits of `bytes`, and `Bytes` from buffers |
//! | `embedded-io-0_7`, `embedded-io-async-0_7` | the traits of `embedded_io` and `embedded_io_async` |
//! | `tokio-uring-0_5`, `monoio-0_2` | their `IoBuf` and `IoBufMut`; on Linux, on Unix |
//! | `compio-buf-0_8` | its `IoBuf`, and `compio::ReadBuf` for reads; on Unix and Windows |
//! | `serde` | `Serialize` for buffers and views; mapping options in a configuration file |
//! | `mmap` | regions of mapped pages |
//! | `wipe` | pools that zero bytes on release |
//! | `stats`, `track` | counters, and lists of the buffers in use, for debugging |
//! | `pages` | on Linux, pages of regions can be returned to the system |
//!
//! Features only add items. Without any of them the crate needs neither an operating system nor an
//! allocator. `portable-atomic` adds no items: it uses the atomics of the crate of that name, for
//! processors without compare-and-swap.
//!
//! `stats` and `track` break rule 4 for their own bookkeeping. With `stats` a [`HeapPool`]
//! allocates its counters when it is made. With `track` every pool allocates a list when it is made
//! and an entry with each buffer. If the allocator fails for these few bytes, the process aborts,
//! as for a `Vec`. If it fails for a buffer, that is an error as usual.
//!
//! A global allocator must not use a pool, a region or a keeper that it serves: such a call may
//! wait for a lock that its own thread holds.
//!
//! # Example
//!
//! ```
//! # #[cfg(feature = "alloc")] {
//! use bufcore::HeapPool;
//!
//! let mut pool = HeapPool::new();
//! let mut buf = pool.acquire(64)?;
//! assert!(buf.is_empty() && buf.capacity() >= 64);
//! buf.extend_from_slice(b"hello")?;
//!
//! let view = buf.freeze();
//! let copy = view.clone(); // no bytes are copied
//! std::thread::spawn(move || assert_eq!(&copy[..], b"hello")).join().unwrap();
//! # }
//! # Ok::<(), bufcore::Error>(())
//! ```
#![no_std]
#![cfg_attr(docsrs, feature(doc_cfg))]
// With its feature `nightly`, `allocator-api2` 0.2 has the unstable trait in place of its own. A
// build script that looks at the compiler would take a tenth of the time to build a strategy.
#![cfg_attr(bufcore_nightly, feature(allocator_api), allow(unused_features))]

// What macros of this crate document has links that hold in every crate.
#[cfg(feature = "alloc")]
extern crate alloc;
extern crate self as bufcore;
#[cfg(any(feature = "std", test))]
extern crate std;

// First: documentation lists the methods of a type in the order of the modules that have them.
mod buf;

mod error;
mod interop;
mod lease;
mod memory;
mod pool;
mod stream;
mod sync;
#[cfg(all(test, loom))]
mod tests;
mod unwind;
mod view;

pub mod author;

pub use buf::Buf;
pub use error::{AcquireError, ConfigError, Error, RegionError, ReserveError};
#[cfg(any(feature = "allocator-api2-0_2", feature = "allocator-api2-0_4"))]
pub use interop::allocator;
#[cfg(all(feature = "compio-buf-0_8", any(unix, windows)))]
pub use interop::compio;
#[cfg(feature = "track")]
pub use lease::track::Outstanding;
pub use lease::{Lease, NoLease, SplitLease};
pub use memory::build_in_error::BuildInError;
#[cfg(feature = "mmap")]
pub use memory::map_options::{HugePages, MapOptions};
#[cfg(feature = "alloc")]
pub use memory::provider::{MemoryProvider, Provided};
pub use memory::region::Region;
#[cfg(feature = "std")]
pub use memory::shared_region::SharedRegion;
pub use memory::size;
#[cfg(feature = "alloc")]
pub use pool::heap::{HeapBuf, HeapLease, HeapPool, HeapView};
pub use pool::shared_pool::SharedPool;
pub use pool::stats::PoolStats;
pub use pool::writer::Writer;
pub use pool::{BufferPool, NoFallback};
pub use stream::pieces::{Pieces, PiecesIter};
pub use stream::{ByteSink, ByteSource, copy, copy_up_to};
pub use view::frozen::Frozen;
pub use view::shared::SharedBytes;

/// The examples of the README, compiled and run.
#[cfg(all(doctest, feature = "alloc"))]
#[doc = include_str!("../README.md")]
struct Readme;
