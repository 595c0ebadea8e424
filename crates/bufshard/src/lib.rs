//! A sharded thread-local buffer pool: owned buffers in size classes, from a cache of each thread
//! backed by shards that all threads share.
//!
//! # What it gives you
//!
//! Any thread acquires owned buffers of any size, at the cost of a thread-local access and a pop.
//! Acquiring and releasing execute no locked instruction while the thread's cache can serve them,
//! whatever the size. Buffers released on another thread return through the shards in batches.
//! Memory is freed, even from the caches of idle threads, without stopping them: by a [`Keeper`]
//! while the program runs, or on request.
//!
//! # When not to use it
//!
//! - One thread, or one size: `bufslot` and `bufring` take less memory, and limit it.
//! - Many small buffers that are released together, or that are split: `bufbump` carves them one
//!   after the other, without size classes.
//! - Without the standard library: the pool uses thread-locals.
//!
//! # Memory
//!
//! ```text
//!  slab      | head | header, 16 bytes | bytes of the class | header | bytes | …
//!  span      | colour | header | bytes of the class |    larger than 28 KiB
//!  thread    for each class a magazine of up to 1024 blocks, and 4 MiB,
//!            of as many as its traffic needs
//!  shard     for each class a bin of 1 MiB, but 16 to 128 blocks;
//!            from 256 KiB on a thread keeps one block of a class, and shards none
//! ```
//!
//! A request is served from the thread's magazine. If that is empty, up to 32 blocks or 64 KiB are
//! taken from a bin, and if all bins are empty, from the page heap. A released block is pushed to
//! the magazine of the releasing thread. If that is full, a batch of its blocks is moved to bins,
//! and blocks for which the bins have no room are freed.
//!
//! Size classes are four to a doubling (64, 80, 96, 112, 128, 160, …), so that a block is less than
//! a quarter larger than its request. From the class of 256 bytes on, blocks are aligned to a cache
//! line, 64, and to 16 below that. The header is directly in front. If buffers are aligned to a
//! page or more, the header is in the tables of the page heap.
//!
//! Pages without blocks serve the next request of any size. They are returned to the system by age,
//! by `trim`, or when the budget is needed for other pages. [`max_bytes`](Builder::max_bytes)
//! limits the resident pages of the pool; see [`PageStats`].
//!
//! # Invariants
//!
//! - I1: a block belongs to one buffer, one thread's cache, one bin of a shard, or one thread that
//!   moves it.
//! - I2: its memory is freed once; a buffer may outlive its pool and its thread.
//! - I3: no release and no drop of a pool allocates, or waits for more than a short lock.
//! - I4: all bytes of a buffer are initialised, from the allocation on.
//!
//! # Threads
//!
//! Any thread acquires and releases. Each has a cache in each pool that it uses, found through a
//! thread-local. When a thread exits, its blocks are moved to the shards. While a thread's
//! thread-locals are being destroyed, its requests and releases use the shards, too.
//!
//! The standard library allocates a few bytes for a thread's first cache, and aborts the process on
//! failure.
//!
//! An allocator or a memory provider must not use the pool that it serves.
//!
//! # Features
//!
//! | feature | adds |
//! | --- | --- |
//! | `bytes`, `embedded-io-0_7` | the traits of these crates for buffers |
//! | `serde` | `Serialize` for buffers and views; settings in a configuration file |
//! | `mmap` | memory of huge pages, or locked |
//! | `wipe` | pools that zero bytes on release |
//! | `stats` | counters by tier and size class, of each thread: a few plain stores for each buffer |
//! | `track` | a list of the buffers in use, for debugging |
//!
//! No feature disables the standard library, since the pool uses thread-locals.
//!
//! # Example
//!
//! ```
//! use bufshard::ShardPool;
//!
//! let pool = ShardPool::new()?; // clones share it
//! let mut chunk = pool.acquire(64 << 10)?;
//! chunk.extend_from_slice(b"read from a file")?;
//! let other = std::thread::spawn(move || assert_eq!(&chunk[..4], b"read"));
//! other.join().unwrap();
//! pool.trim();
//! # Ok::<(), bufshard::bufcore::Error>(())
//! ```
//!
//! # Source
//!
//! - Thread caches over shards: ZeroPool. They exchange blocks as magazines and their depot do
//!   (Bonwick and Adams 2001).
//! - The page heap: tcmalloc and jemalloc; coalescing by moving pages is this project's.
//! - Size classes, and releases on other threads: mimalloc (Leijen, Zorn, de Moura 2019).
//! - The asymmetric fence, over `membarrier(2)`: folly, and P1202 for C++.
#![no_std]
#![cfg_attr(docsrs, feature(doc_cfg))]

extern crate alloc;
extern crate std;

mod block;
mod build;
mod cache;
mod chain;
mod class;
mod counts;
mod depot;
mod each;
mod grow;
mod lease;
mod pool;
mod release;
mod request;
mod settings;
mod shared;
mod stats;
mod sync;
#[cfg(test)]
mod tests;
mod trim;
mod trim_impl;
mod wait_queue;
mod waiting;

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
pub use bufkit::PageStats;
pub use build::Builder;
pub use each::AcquireEach;
pub use lease::{ShardBuf, ShardLease, ShardView};
pub use pool::ShardPool;
pub use stats::ClassStats;
pub use waiting::Acquire;

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
