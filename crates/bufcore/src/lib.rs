//! The vocabulary that every bufworks strategy speaks: one owned buffer, one way to ask for it, one
//! set of errors.
//!
//! # What it gives you
//!
//! - [`Buf`] owns bytes exclusively, like a `Vec<u8>` that cannot reallocate, and is `Send`.
//!   [`Frozen`] is its read-only view, which can be cloned. [`SharedBytes`] is such a view with its
//!   strategy erased, or a program's own bytes.
//! - A [`BufferPool`] hands out whole buffers. A [`Writer`] fills one in steps, and the pool lets
//!   it grow, in place where it can. Bytes stream through a [`ByteSink`] and a [`ByteSource`].
//! - [`AcquireError`], [`ReserveError`], [`ConfigError`] and [`RegionError`] are small, `Copy`, and
//!   have the numbers of the failed call in them.
//! - A [`Region`] is where the bytes come from: the heap, a caller's static memory, or mapped
//!   pages. Several pools have parts of a [`SharedRegion`].
//! - A [`Keeper`] gives the idle memory of pools back without being asked. [`Pressure`] says how
//!   short of memory the system is.
//! - A [`HeapPool`] makes a fresh heap allocation for every acquire. It is the usual fallback, and
//!   the control in every comparison.
//!
//! The crate allocates nothing of its own and decides no strategy: those are `bufslot` and its
//! siblings. [`strategy`] has what a new strategy needs beyond the above.
//!
//! # The rules that every strategy keeps
//!
//! 1. A buffer is exclusive: while it lives, nobody else can read or write its memory.
//! 2. Its memory is always initialised, so safe code can be lent the unfilled part. That part holds
//!    *recycled bytes*: those that an earlier user left, unless the pool wipes. A buffer derefs to
//!    its filled part only.
//! 3. A buffer may outlive its pool, move to another thread, be leaked, or be dropped while a
//!    thread unwinds or ends. Dropping a buffer or a pool never blocks. The memory is freed when
//!    the last buffer has been dropped; [`strategy::orphans`] describes the one case in which that
//!    is a little later.
//! 4. Failure is a value. Exhaustion, absurd sizes and a system that refuses are errors with
//!    numbers in them. The failed call changes nothing.
//!
//! # Features
//!
//! | feature | adds |
//! | --- | --- |
//! | `std` (default) | `std::io` for buffers; [`Keeper`] and [`Pressure`]; it implies `alloc` |
//! | `alloc` | [`HeapPool`], regions from the heap, `Vec` and `String` |
//! | `allocator-api2-0_2`, `allocator-api2-0_4` | [`allocator::PoolAllocator`]: collections whose memory is in a pool; by version of that crate |
//! | `bytes` | the traits of `bytes`, and `Bytes` from buffers |
//! | `embedded-io-0_7`, `embedded-io-async-0_7` | the traits of `embedded_io` and `embedded_io_async` |
//! | `tokio-uring-0_5`, `monoio-0_2` | their `IoBuf` and `IoBufMut`; on Linux, on Unix |
//! | `compio-buf-0_8` | its `IoBuf`, and [`compio::ReadBuf`] for reads; on Unix and Windows |
//! | `serde` | `Serialize` for buffers and views; mapping options in a configuration file |
//! | `mmap` | regions of mapped pages |
//! | `wipe` | pools that zero bytes on release |
//! | `stats`, `track` | counters, and lists of the buffers that are out, for debugging |
//! | `fences` | [`strategy::fences`](strategy), for strategies |
//!
//! Features only add items. Without any of them the crate needs neither an operating system nor an
//! allocator. `portable-atomic` adds none: it takes the atomics from the crate of that name, for
//! processors without compare-and-swap.
//!
//! `stats` and `track` do not keep rule 4 for bookkeeping of their own. With `stats` a [`HeapPool`]
//! allocates its counters when it is made. With `track` every pool allocates a list when it is made
//! and an entry with each buffer. When the allocator refuses these few bytes, the process aborts,
//! as it does for a `Vec`. When it refuses bytes for a buffer, that is an error as always.
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
// With its feature `nightly`, `allocator-api2` 0.2 has the unstable trait in place of its own.
#![cfg_attr(nightly_compiler, feature(allocator_api), allow(unused_features))]

#[cfg(feature = "alloc")]
extern crate alloc;
#[cfg(any(feature = "std", test))]
extern crate std;

// The texts of `pool_methods` say `bufcore::BufferPool`, here and elsewhere.
#[cfg(doc)]
extern crate self as bufcore;

// First: documentation lists the methods of a type in the order of the modules that have them.
mod buf;

mod append;
mod compare;
#[cfg(feature = "std")]
mod coop;
mod copying;
mod error;
#[cfg(feature = "fences")]
mod fences;
mod format;
mod frozen;
mod growth;
#[cfg(feature = "alloc")]
mod handle;
#[cfg(feature = "alloc")]
#[allow(clippy::disallowed_methods, reason = "this is where raw memory is taken and given back")]
mod heap;
mod integrations;

#[cfg(feature = "std")]
mod keeper;
mod lease;
mod lease_guard;
#[cfg(feature = "mmap")]
mod map_options;
mod methods;
mod one_word;
mod orphans;
#[cfg(feature = "std")]
mod own_pages;
mod pages;
mod pieces;
mod pool;
#[cfg(feature = "std")]
mod pressure;
mod ref_counts;
#[allow(clippy::disallowed_methods, reason = "this is where raw memory is taken and given back")]
mod region;
mod release_state;
#[cfg(feature = "alloc")]
mod roll;
mod settings;
mod shared;
#[cfg(feature = "std")]
mod shared_region;
#[cfg(feature = "alloc")]
mod sinks;
#[cfg(feature = "alloc")]
mod sleeper;
#[cfg(feature = "alloc")]
mod source;
mod split;
mod stats;
mod stream;
mod sync;
mod tagged_ptr;
#[cfg(all(test, loom))]
mod tests;
#[cfg(feature = "std")]
mod threads;
mod track;
mod unwind;
mod views;
mod writer;

#[cfg(any(feature = "allocator-api2-0_2", feature = "allocator-api2-0_4"))]
pub mod allocator;
pub mod size;
pub mod strategy;

pub use buf::Buf;
pub use error::{AcquireError, ConfigError, Error, RegionError, ReserveError};
pub use frozen::Frozen;
#[cfg(feature = "alloc")]
pub use heap::{HeapBuf, HeapLease, HeapPool, HeapView};
#[cfg(all(feature = "compio-buf-0_8", any(unix, windows)))]
pub use integrations::compio;
#[cfg(feature = "std")]
pub use keeper::{Keeper, KeeperHandle, KeeperThread, Trim, Watch, WeakPool};
pub use lease::{Lease, NoLease, SplitLease};
#[cfg(feature = "mmap")]
pub use map_options::{HugePages, MapOptions};
pub use pieces::{Pieces, PiecesIter};
pub use pool::{BufferPool, Reject};
#[cfg(feature = "std")]
pub use pressure::{MemoryUse, Pressure, PressureLevel, PressureSource, Stall};
pub use region::Region;
pub use shared::SharedBytes;
#[cfg(feature = "std")]
pub use shared_region::SharedRegion;
#[cfg(feature = "alloc")]
pub use sinks::VecSink;
#[cfg(feature = "alloc")]
pub use source::{Source, Supplied};
pub use stats::PoolStats;
pub use stream::{ByteSink, ByteSource, copy, copy_up_to};
#[cfg(feature = "track")]
pub use track::Outstanding;
pub use writer::Writer;

/// The examples of the README, compiled and run.
#[cfg(all(doctest, feature = "alloc"))]
#[doc = include_str!("../README.md")]
struct Readme;
