//! A slot pool: up to N live buffers carved from one region, as in the Stratum V2 reference
//! implementation. Unlike the original it is sound, is not limited to eight slots, and never waits.
//!
//! # What it gives you
//!
//! The pool carves buffers and growing frames from memory that is allocated once. Acquiring takes a
//! few dozen plain instructions, and releasing takes one plain store, on any thread. Neither
//! executes a locked instruction or allocates. The most recently used memory is reused first, while
//! it is in the cache. With more than 64 buffers of different ages an index finds free memory, in a
//! time logarithmic in the number of slots. If the region has no room, the fallback serves the
//! request: the heap, another pool, or [`NoFallback`], which returns an error.
//!
//! # When not to use it
//!
//! - Several threads acquire: a `SlotPool` serves one at a time. Give each thread a pool, for
//!   example with `PerThread` of `bufworks`.
//! - There are many long-lived buffers of very different ages and sizes: they leave gaps between
//!   them, and the fallback serves a request that fits none. (A queue leaves no gaps.)
//! - Requests must wait for memory: a slot pool returns an error instead. In the sharded pool of
//!   `bufshard`, requests can wait for its budget (`max_bytes`).
//!
//! # Modes
//!
//! ```text
//!  slots by address      1 2 3 4 5 6 7 8          region
//!  Back                  [1][2][3][4]........     carve behind the last slot
//!  Front                 [9]...[3][4][5][6][7]    the back is full, the first were released: carve
//!                                                 before a live slot
//!  Fallback              [9][a][3][4][5][6][7]    neither has room: the fallback serves it
//! ```
//!
//! When all buffers have been released, the pool restarts at the front of the region, in `Back`
//! mode.
//!
//! # Invariants
//!
//! - I1: the bytes of two live slots never overlap, and no live slot's bytes are carved.
//! - I2: a slot is live from the acquire to the one store of its release; only the pool makes it
//!   live, only the lease frees it.
//! - I3: the region is freed once, when the pool is dropped and no slot is live; static memory
//!   never is.
//! - I4: all bytes of the region are initialised, from its creation on.
//!
//! # Threads
//!
//! One thread at a time acquires (`&mut self`); the pool may move between threads. Buffers and
//! frozen views may be dropped on any thread, before or after the pool.
//!
//! # Features
//!
//! | feature | adds |
//! | --- | --- |
//! | `std` (default) | `std::io` for buffers; it implies `alloc` |
//! | `alloc` | pools on the heap, and the heap as a fallback |
//! | `bytes`, `embedded-io-0_7` | the traits of these crates for buffers |
//! | `serde` | `Serialize` for buffers and views; settings in a configuration file |
//! | `mmap` | regions of mapped pages; on Linux, pages can be returned to the system |
//! | `wipe` | pools that zero bytes on release |
//! | `stats`, `track` | counters, and a list of the buffers in use, for debugging |
//!
//! Without any of them, pools over static memory need neither an operating system nor an allocator.
//! `portable-atomic` adds no items: it is for processors without compare-and-swap.
//!
//! # Example
//!
//! ```
//! # #[cfg(feature = "alloc")] {
//! use bufslot::{Mode, SlotPool, Writer};
//!
//! let mut pool = SlotPool::new(64 * 1024, 8)?; // bytes, slots
//!
//! // Whole buffers.
//! let mut buf = pool.acquire(1500)?;
//! buf.extend_from_slice(b"packet")?;
//! std::thread::spawn(move || drop(buf)).join().unwrap();
//!
//! // Frames: a header, then as many bytes as it announces, as one buffer that grows in place.
//! let mut writer = Writer::new(&mut pool);
//! writer.extend_from_slice(&[0, 5])?;
//! let body = usize::from(writer.filled()[1]);
//! writer.writable(body)?[..body].copy_from_slice(b"hello");
//! writer.commit(body);
//! let frame = writer.finish();
//! assert_eq!(&frame[2..], b"hello");
//! assert_eq!(pool.mode(), Mode::Back);
//! # }
//! # Ok::<(), bufslot::Error>(())
//! ```
//!
//! # Source
//!
//! The modes and the slots follow `buffer_sv2` of the Stratum V2 reference implementation (2021).
//! The list of slots in address order, with next fit, follows Knuth, *The Art of Computer
//! Programming* volume 1, section 2.5.
#![no_std]
#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(feature = "alloc")]
extern crate alloc;
#[cfg(any(feature = "std", test))]
extern crate std;

// First: documentation lists the methods of a type in the order of the modules that have them.
mod pool;

mod config;
mod crowd;
mod fallback;
mod grow;
mod lease;
mod mode;
mod search;
mod state;
mod table;
#[cfg(all(test, feature = "std"))]
mod tests;
mod trim;

pub use bufcore;
#[cfg(feature = "track")]
#[doc(no_inline)]
pub use bufcore::Outstanding;
#[doc(no_inline)]
pub use bufcore::{
    AcquireError, Buf, BufferPool, BuildInError, ByteSink, ByteSource, ConfigError, Error, Frozen, Lease,
    NoFallback, NoLease, Pieces, PoolStats, Region, RegionError, ReserveError, SharedBytes, SplitLease,
    Writer, copy, copy_up_to,
};
#[cfg(feature = "alloc")]
#[doc(no_inline)]
pub use bufcore::{HeapBuf, HeapLease, HeapPool, HeapView};
#[cfg(feature = "mmap")]
#[doc(no_inline)]
pub use bufcore::{HugePages, MapOptions};
pub use config::Builder;
pub use lease::{SlotBuf, SlotLease, SlotView};
pub use mode::Mode;
pub use pool::SlotPool;

#[cfg(all(doc, feature = "std"))]
#[doc = include_str!("../docs/guide.md")]
pub mod guide {}

#[cfg(all(doc, feature = "std"))]
#[doc = include_str!("../docs/migration.md")]
pub mod migration {}

/// The examples of the README, compiled and run.
#[cfg(all(doctest, feature = "alloc"))]
#[doc = include_str!("../README.md")]
struct Readme;
