//! The umbrella crate of a family of byte-buffer allocators: one crate for each strategy, with
//! common types.
//!
//! # Which strategy for which traffic
//!
//! | traffic | strategy | feature |
//! | --- | --- | --- |
//! | one thread acquires buffers or frames, any thread drops them; bounded memory, and a fallback | [slot pool](slot) | `slot` |
//! | one thread acquires short-lived buffers, also growing and typed ones; bounded memory, an error when it is full | [guard-sequence ring](ring) | `ring` |
//! | any thread acquires and drops buffers of any size and age; memory can be limited, and is freed when idle | [sharded pool](shard) | `shard` |
//! | many buffers that are released together, or are split, on any thread | [bump-pointer shards](bump) | `bump` |
//! | bytes that stream, or messages, within a thread, between threads, between processes | [mirrored ring](mirror) | `mirror` |
//! | none of them, or a baseline for a comparison | [`HeapPool`] | `alloc` |
//!
//! The guide has more: settings, costs, and where each strategy loses.
//!
//! # Features
//!
//! Each strategy is a separate crate, and a module here, behind a feature. All five are on by
//! default, as are `std` and `bytes`. With `default-features = false` and one strategy, no code of
//! the others is built. The slot pool, the ring and the mirrored ring then need no standard library
//! and, over static memory, no allocator. `bump` and `shard` enable `std`.
//!
//! | feature | adds |
//! | --- | --- |
//! | `slot`, `ring`, `shard`, `bump`, `mirror` (default) | the strategies |
//! | `bytes` (default) | `bytes::Bytes` from buffers and views ([`into_bytes`](Buf::into_bytes)); its traits |
//! | `std`, `alloc`, `allocator-api2-0_2`, `allocator-api2-0_4`, `embedded-io-0_7`, `embedded-io-async-0_7`, `mmap`, `wipe`, `serde` | the same features of the enabled strategies |
//! | `stats`, `track` | counters, and lists of the buffers in use; both have a cost on every buffer |
//! | `std` (default) | `frames`: messages of a stream, by length or delimiter |
//! | `alloc-large` | [`bufalloc`]: a global allocator whose large blocks are spans of pages |
//! | `http` | `http`: bodies for hyper, axum and tonic, and uploads that are collected under a budget |
//! | `tokio` | `net`: sockets whose buffers are acquired when there are bytes to read; `frames` of them |
//! | `futures-core-0_3` | with `tokio`: `frames` of sockets as a `Stream` |
//! | `tokio-util-0_7` | `frames`: a codec for `Framed` |
//! | `tokio-uring-0_5`, `monoio-0_2`, `compio-buf-0_8` | these runtimes read into buffers, and write from buffers and views |
//! | `prometheus`, `metrics`, `tracing` | `monitor`: live statistics of pools |
//! | `per-thread` | [`PerThread`]: a pool of a single-thread strategy for each acquiring thread |
//! | `portable-atomic` | no items: it is for processors without compare-and-swap |
//! | `full` | all of these, except `stats`, `track`, `portable-atomic` and the three runtimes |
//!
//! # Example
//!
//! ```
//! # #[cfg(all(feature = "slot", feature = "bytes"))] {
//! use bufworks::slot::SlotPool;
//!
//! let mut pool = SlotPool::new(64 * 1024, 8)?; // bytes, slots
//! let mut buf = pool.acquire(1500)?; // owned, exclusive, `Send`; starts empty
//! buf.extend_from_slice(b"packet")?;
//! let view = buf.freeze(); // read-only, cloneable, no allocation
//! let bytes = view.clone().into_bytes(); // `bytes::Bytes`, for hyper, axum, tonic; no copy
//! assert_eq!((&view[..], bytes), (&b"packet"[..], "packet".into()));
//! # }
//! # Ok::<(), bufworks::Error>(())
//! ```
//!
//! Or with the strategy chosen at run time: see [`AnyPool`].
#![no_std]
#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(feature = "alloc")]
extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

#[macro_use]
#[cfg_attr(not(feature = "alloc"), allow(unused_macros, reason = "what chooses a pool at run time needs it"))]
mod strategies;

#[cfg(feature = "alloc")]
pub mod any;
#[cfg(feature = "std")]
pub mod frames;
#[cfg(feature = "http")]
pub mod http;
#[cfg(any(feature = "metrics", feature = "prometheus", feature = "tracing"))]
pub mod monitor;
#[cfg(feature = "tokio")]
pub mod net;
#[cfg(feature = "per-thread")]
mod per_thread;

#[cfg(feature = "alloc-large")]
#[doc(inline)]
pub use bufalloc;
#[doc(inline)]
pub use bufcore;
#[cfg(feature = "track")]
#[doc(inline)]
pub use bufcore::Outstanding;
#[doc(inline)]
pub use bufcore::{
    AcquireError, Buf, BufferPool, ByteSink, ByteSource, ConfigError, Error, Frozen, Lease, NoFallback,
    NoLease, Pieces, PoolStats, Region, RegionError, ReserveError, SharedBytes, SplitLease, Writer, copy,
    copy_up_to,
};
#[cfg(feature = "alloc")]
#[doc(inline)]
pub use bufcore::{HeapBuf, HeapLease, HeapPool, HeapView};
#[cfg(feature = "mmap")]
#[doc(inline)]
pub use bufcore::{HugePages, MapOptions};
#[cfg(feature = "std")]
#[doc(inline)]
pub use bufkeeper::{
    Keeper, KeeperHandle, KeeperThread, MemoryUse, Pressure, PressureLevel, PressureSource, Stall, Trim,
    Watch, WeakPool,
};

#[cfg(feature = "per-thread")]
pub use per_thread::PerThread;

#[cfg(feature = "alloc")]
#[doc(inline)]
pub use any::{AnyBuf, AnyPool, AnyView};

/// Each strategy's crate, as a module.
macro_rules! modules {
    ({} $($module:ident $feature:literal $package:ident;)*) => {
        $(
            #[cfg(feature = $feature)]
            #[doc(inline)]
            pub use $package as $module;
        )*
    };
}
crates!(modules! {});

/// Targets of conversions: rustdoc shows `From` impls for a foreign type only if it is inlined.
#[cfg(all(doc, feature = "full"))]
mod conversions {
    #[doc(inline)]
    pub use {bytes::Bytes, core::fmt::Error as FmtError, std::io::Error as IoError};
}

#[cfg(all(doc, feature = "full"))]
#[doc = include_str!("../docs/guide.md")]
pub mod guide {}

#[cfg(all(doc, feature = "full"))]
#[doc = include_str!("../docs/migration.md")]
pub mod migration {}

/// The examples of the README, compiled and run.
#[cfg(all(doctest, feature = "full"))]
#[doc = include_str!("../README.md")]
struct Readme;
