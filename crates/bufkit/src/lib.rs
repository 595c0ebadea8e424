//! The building blocks of the pools of bufworks, for authors of pools.
//!
//! **No stability promise.** Each version may change all of it. A program that uses pools needs
//! only [`bufcore`].
//!
//! # What it gives you
//!
//! - [`orphan`]: memory that outlived its pool, and is freed with its last buffer.
//! - [`SlotState`]: the state of a slot that is released by a plain store; for pools over one
//!   region that serve one thread. A [`ControlBlock`] is the header of their bookkeeping, and a
//!   [`FreedList`] lists the releases of watched slots.
//! - [`Handle`] and [`WeakHandle`]: handles of a shared pool. A [`Registry`] is an append-only
//!   list, and a [`PoolProvider`] keeps the provider of a program.
//! - [`PageHeap`]: spans of pages under a limit on resident memory, and blocks cut from them.
//! - [`Trim`]: a pool with idle memory, for a keeper (`bufkeeper`) and a monitor.
//! - [`thread_cache`]: the cache of a thread for each pool that it uses.
//! - [`sync`]: atomics and locks that a model checker can replace; asymmetric fences, of which one
//!   side costs nothing; [`Waiter`]; [`GrowthSignal`], which wakes a keeper; [`Coop`], for
//!   cooperative scheduling.
//! - [`settings`] makes the struct of a builder; [`SettingsText`] prints its settings.
//!   [`shared_pool!`]: the pool traits of a shared pool.
//!
//! The parts of leases are in [`bufcore::author`].
//!
//! # What it does not
//!
//! It contains no pool and no strategy.
//!
//! # Features
//!
//! | feature | adds |
//! | --- | --- |
//! | `std` (default) | caches of threads, pages, wake-ups of keepers; it implies `alloc` |
//! | `alloc` | orphans, handles, lists |
//! | `fences` | [`sync::fences`], [`sync::biased`] |
//! | `mmap` | mapped pages |
//! | `page-heap` | [`PageHeap`] |
//! | `tokio` | [`Coop`] takes part in the cooperative scheduling of tokio's runtimes |
//! | `wipe` | pools that zero bytes on release |
//! | `portable-atomic` | atomics for processors without compare-and-swap |
//!
//! # Example
//!
//! ```
//! use bufcore::{AcquireError, Buf, NoLease, PoolStats, NoFallback};
//!
//! /// A shared pool that never has memory.
//! struct Empty {
//!     handle: (),
//! }
//!
//! impl Empty {
//!     fn acquire(&self, capacity: usize) -> Result<Buf<NoLease>, AcquireError> {
//!         NoFallback.acquire(capacity)
//!     }
//! #   fn acquire_zeroed(&self, len: usize) -> Result<Buf<NoLease>, AcquireError> {
//! #       NoFallback.acquire_zeroed(len)
//! #   }
//! #   fn grow(&self, buf: &mut Buf<NoLease>, additional: usize) -> Result<(), AcquireError> {
//! #       BufferPool::grow(&mut NoFallback, buf, additional)
//! #   }
//! #   fn max_capacity(&self) -> usize {
//! #       0
//! #   }
//! #   fn stats(&self) -> PoolStats {
//! #       NoFallback.stats()
//! #   }
//!     // ...
//! }
//! # use bufcore::BufferPool;
//!
//! bufkit::shared_pool!(impl Empty => NoLease);
//! assert!(BufferPool::acquire(&mut &Empty { handle: () }, 1).is_err());
//! ```
#![no_std]
#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(feature = "alloc")]
extern crate alloc;
#[cfg(any(feature = "std", test))]
extern crate std;

mod author;
pub mod orphan;
#[cfg(feature = "page-heap")]
mod page_heap;
mod region_pool;
mod shared_pool;
pub mod sync;
#[cfg(all(test, loom))]
mod tests;
#[cfg(feature = "std")]
pub mod thread_cache;
mod trim;

pub use author::settings_text::SettingsText;
pub use bufcore;
pub use bufcore::author::{empty_buf, is_alone};
#[cfg(feature = "page-heap")]
pub use page_heap::{Cut, Given, HeldHeap, PageError, PageHeap, PageSource, PageStats, SlabShape, Span};
pub use region_pool::control_block::{ControlBlock, CountMissed};
pub use region_pool::freed_list::FreedList;
pub use region_pool::slot_state::SlotState;
pub use region_pool::stagger::{STAGGER_FROM_BYTES, staggered};
#[cfg(feature = "alloc")]
pub use shared_pool::handle::{CoreRef, Handle, PoolCore, WeakHandle};
#[cfg(feature = "page-heap")]
pub use shared_pool::provider::PoolProvider;
pub use shared_pool::ref_counts::RefCounts;
#[cfg(feature = "alloc")]
pub use shared_pool::registry::{Link, Registry, RegistryEntry};
#[cfg(feature = "std")]
pub use sync::coop::Coop;
#[cfg(feature = "std")]
pub use sync::growth_signal::GrowthSignal;
#[cfg(feature = "alloc")]
pub use sync::waiter::{TaskWaker, Waiter};
pub use trim::Trim;
