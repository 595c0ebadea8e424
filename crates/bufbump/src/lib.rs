//! Bump-pointer shards: each thread carves its buffers, one after the other, from large spans of
//! pages. A shard is reused when all its buffers have been released.
//!
//! # What it gives you
//!
//! A buffer of any size, exact to the alignment, costs one pointer increment. Acquiring and
//! releasing on one thread takes no locked instruction; a release on another thread takes one. The
//! pool is shared by its clones and grows with the bytes in use. Buffers can be frozen, and split
//! into several that share their memory, without an allocation.
//!
//! # When not to use it
//!
//! - A few buffers of each shard live very long: each of them keeps a whole shard
//!   ([`PoolStats::pinned_bytes`](bufcore::PoolStats::pinned_bytes) much larger than `in_use_bytes`
//!   shows it). Copy the survivors with [`BumpPool::evacuate`], or use a pool with size classes.
//! - Memory must be bounded: this pool's memory grows with the peak. `bufslot` and `bufring` return
//!   an error instead.
//! - Without the standard library: the pool uses thread-locals.
//!
//! # Memory
//!
//! ```text
//!  shard     |16|  bytes  |16| bytes |16|   bytes   |  free                     |
//!             ^ header of a block: its shard, its size, count of views and parts
//!                                                     ^ bump: start of the next block
//!  thread    current shard, a list of others with live buffers, up to 4 spares
//!  pool      idle shards and free pages, up to `max_idle_bytes`
//! ```
//!
//! When the newest buffer is released on its thread, the pointer moves back by it. When all buffers
//! were released, the shard restarts at the front.
//!
//! All memory is from one reservation of addresses. A request larger than a shard has whole pages
//! of its own. Free pages are merged with their neighbours, and serve the next request of any size,
//! or a shard.
//!
//! # Bookkeeping
//!
//! In addition to the memory for buffers, a pool needs these bytes on 64-bit systems without the
//! `stats` and `track` features:
//!
//! | for | bytes |
//! | --- | ---: |
//! | a buffer | 16, and the alignment of the next header |
//! | a buffer larger than a shard | 64, or its alignment; none if that is a page |
//! | the start of a shard | 64, or its alignment |
//! | a shard | 256, which the pool reuses for the next one |
//! | a page | 32 |
//! | a thread that uses the pool, without its shards | 144 |
//! | a pool | 3072 |
//!
//! # Invariants
//!
//! - I1: the bytes of two live buffers never overlap.
//! - I2: a shard's memory is freed once, when it has no live buffers; a buffer may outlive its pool
//!   and its thread.
//! - I3: no release and no drop of a pool waits for a buffer or a thread's work, or allocates.
//!   Locks are held for a few instructions, or for system calls that return or move pages.
//! - I4: all bytes of a buffer are initialised, from the creation of the shard on.
//!
//! # Threads
//!
//! Any thread acquires and releases. Each has a cache in each pool that it uses, found through a
//! thread-local. When a thread exits, its shards return to the pool; those with live buffers follow
//! with the last of these. A buffer that is acquired while its thread's thread-locals are being
//! destroyed has a separate page.
//!
//! An allocator or a memory provider must not use the pool that it serves.
//!
//! # Features
//!
//! | feature | adds |
//! | --- | --- |
//! | `bytes`, `embedded-io-0_7` | the traits of these crates for buffers |
//! | `serde` | `Serialize` for buffers and views; settings in a configuration file |
//! | `mmap` | pages with options: huge, faulted in at once, or locked |
//! | `wipe` | pools that zero bytes on release |
//! | `stats` | counters that threads share: a few locked instructions for each buffer |
//! | `track` | a list of the buffers in use, for debugging |
//!
//! No feature disables the standard library, since the pool uses thread-locals.
//!
//! # Example
//!
//! ```
//! use bufbump::BumpPool;
//!
//! let pool = BumpPool::new()?;
//! let mut chunk = pool.acquire(1500)?;
//! chunk.extend_from_slice(b"HEAD body")?;
//!
//! let head = chunk.split_to(4); // two buffers, one memory
//! let other = std::thread::spawn(move || assert_eq!(&head[..], b"HEAD"));
//! chunk.extend_from_slice(b" and more")?;
//! assert_eq!(&chunk[..], b" body and more");
//! other.join().unwrap();
//! # Ok::<(), bufbump::bufcore::Error>(())
//! ```
//!
//! # Source
//!
//! Shards, probes and resets follow jsign/bufpool. Local and remote counts follow mimalloc (Leijen,
//! Zorn, de Moura 2019).
#![no_std]
#![cfg_attr(docsrs, feature(doc_cfg))]

extern crate alloc;
extern crate std;

mod build;
mod bytes;
mod cache;
mod counters;
mod depot;
mod lease;
mod pool;
mod release;
mod request;
mod settings;
mod shard;
mod shared;
mod state;
#[cfg(test)]
mod tests;
mod trim;

pub use bufcore;
#[cfg(feature = "track")]
#[doc(no_inline)]
pub use bufcore::Outstanding;
#[doc(no_inline)]
pub use bufcore::{
    AcquireError, Buf, BufferPool, ByteSink, ByteSource, ConfigError, Error, Frozen, Lease, NoFallback,
    NoLease, Pieces, PoolStats, Region, RegionError, ReserveError, SharedBytes, SplitLease, Writer, copy,
    copy_up_to,
};
#[doc(no_inline)]
pub use bufcore::{HeapBuf, HeapLease, HeapPool, HeapView};
#[cfg(feature = "mmap")]
#[doc(no_inline)]
pub use bufcore::{HugePages, MapOptions};
#[doc(no_inline)]
pub use bufkeeper::{
    Keeper, KeeperHandle, KeeperThread, Pressure, PressureLevel, PressureSource, Trim, Watch,
};
pub use build::Builder;
pub use lease::{BumpBuf, BumpLease, BumpView};
pub use pool::BumpPool;

#[cfg(doc)]
#[doc = include_str!("../docs/guide.md")]
pub mod guide {}

#[cfg(doc)]
#[doc = include_str!("../docs/migration.md")]
pub mod migration {}

/// The examples of the README, compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
