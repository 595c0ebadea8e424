//! A ring allocator: buffers carved from one region in turn, as in the crate `ringal`. Unlike the
//! original it is sound, is not blocked by a long-lived buffer, and never waits.
//!
//! # What it gives you
//!
//! The ring carves fixed buffers, growing buffers and typed vectors from memory that is allocated
//! once. Acquiring takes a few dozen plain instructions if sizes recur, and releasing takes one
//! plain store, on any thread. Neither executes a locked instruction or allocates. The bookkeeping
//! is between the buffers, and shares their cache lines. If the ring has no room, it returns
//! [`AcquireError::Exhausted`].
//!
//! # When not to use it
//!
//! - Several threads acquire: a [`RingPool`] serves one at a time. Give each thread its own, for
//!   example with a `LocalRing`.
//! - Requests must never fail: there is no fallback here. The slot pool of `bufslot` has one. In
//!   the sharded pool of `bufshard`, requests can wait for its budget (`max_bytes`).
//! - There are many long-lived buffers of very different ages. A search from block to block finds
//!   the gaps between them. With more than 256 of them, free memory may be found some requests
//!   late.
//!
//! # The ring
//!
//! ```text
//!  front | guard | block | guard | block | guard | block | guard | free ................. | end
//!                                          ^ newest        ^ head: the next request starts here
//! ```
//!
//! A guard stores whether its block is free, its length, and the distance to the previous guard. A
//! request takes the block at the head. It takes the whole block if it fits, its front if it is
//! longer, and also the free blocks after it if it is shorter. When the newest block is free again,
//! the head moves back to it, because that memory is in the cache. At the end the head restarts at
//! the front, and it skips blocks in use.
//!
//! The end of a new ring is after its first 16 KiB. The end moves up if a request finds no room
//! before it, and down when the ring is trimmed. A large ring with few live buffers therefore stays
//! in the processor's caches, and does not touch the pages that it does not need.
//!
//! # Invariants
//!
//! - I1: the bytes of two live blocks never overlap, and no live block is merged or acquired.
//! - I2: a block is live from the acquire to the one store of its release; only the ring makes it
//!   live, only the lease frees it.
//! - I3: the region is freed once, when the ring is dropped and no block is live; static memory
//!   never is.
//! - I4: all bytes of the region are initialised, from its creation on, except those of a
//!   [`RingVec`]'s values, while it lives.
//!
//! # Threads
//!
//! One thread at a time acquires (`&mut self`); the ring may move between threads. Buffers and
//! frozen views may be dropped on any thread, before or after the ring.
//!
//! # Features
//!
//! | feature | adds |
//! | --- | --- |
//! | `std` (default) | `std::io` for buffers; `LocalRing`; it implies `alloc` |
//! | `alloc` | rings on the heap |
//! | `bytes`, `embedded-io-0_7` | the traits of these crates for buffers |
//! | `serde` | `Serialize` for buffers and views; settings in a configuration file |
//! | `mmap` | regions of mapped pages; on Linux, pages can be returned to the system |
//! | `wipe` | rings that zero bytes on release |
//! | `stats`, `track` | counters, and a list of the buffers in use, for debugging |
//!
//! Without any of them, rings over static memory need neither an operating system nor an allocator.
//! `portable-atomic` adds no items: it is for processors without compare-and-swap.
//!
//! # Example
//!
//! ```
//! # #[cfg(feature = "alloc")] {
//! use bufring::{RingPool, Writer};
//!
//! let mut ring = RingPool::new(64 * 1024)?; // bytes
//!
//! // A fixed buffer.
//! let mut buf = ring.acquire(1500)?;
//! buf.extend_from_slice(b"packet")?;
//! std::thread::spawn(move || drop(buf)).join().unwrap();
//!
//! // One that grows.
//! let mut message = Writer::new(&mut ring);
//! message.extend_from_slice(b"a longer ")?;
//! message.extend_from_slice(b"message than was expected")?;
//! let message = message.finish().freeze();
//!
//! // Typed values.
//! let mut numbers = ring.acquire_vec::<u128>(10)?;
//! numbers.push(1 << 100)?;
//! assert_eq!((&message[..8], numbers.len()), (&b"a longer"[..], 1));
//! # }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Source
//!
//! The guards in sequence follow `ringal` (2024). Merging neighbours by tags at both ends of a
//! block, and next fit, follow Knuth, *The Art of Computer Programming* volume 1, section 2.5.
#![no_std]
#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(feature = "alloc")]
extern crate alloc;
#[cfg(any(feature = "std", test))]
extern crate std;

// First: documentation lists the methods of a type in the order of the modules that have them.
mod pool;

mod config;
mod grow;
#[cfg(feature = "std")]
mod local;
mod ring;
mod search;
mod state;
#[cfg(all(test, feature = "std"))]
mod tests;
mod trim;
mod vec;

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
#[cfg(feature = "std")]
pub use local::{LocalAcquire, LocalError, LocalRing};
pub use pool::RingPool;
pub use ring::{RingBuf, RingLease, RingView};
pub use vec::{IntoIter, PushError, RingVec};

#[cfg(all(doc, feature = "std"))]
#[doc = include_str!("../docs/guide.md")]
pub mod guide {}

#[cfg(all(doc, feature = "std"))]
#[doc = include_str!("../docs/migration.md")]
pub mod migration {}

/// The examples of the README, compiled and run.
#[cfg(all(doctest, feature = "std"))]
#[doc = include_str!("../README.md")]
struct Readme;
