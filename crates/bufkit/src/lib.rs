//! What the pools of bufworks are built with, for authors of pools.
//!
//! **No promise of stability.** Each version may change all of it. A program that uses pools needs
//! [`bufcore`] alone, which is the vocabulary.
//!
//! # What it gives you
//!
//! - [`orphan`]: memory that outlived its pool, and is freed with its last buffer.
//! - [`SlotState`]: the state of a slot that is released by a plain store; for pools over one
//!   region that serve one thread. A [`ControlBlock`] heads their bookkeeping, and a [`FreedList`]
//!   has the releases of watched slots.
//! - [`Handle`] and [`WeakHandle`]: handles of a pool that threads share. A [`Registry`] is a list
//!   that only grows, and a [`PoolProvider`] keeps the provider that a program supplies.
//! - [`PageHeap`]: spans of pages under a limit on what the process has, and blocks cut from them.
//! - [`Trim`]: a pool with idle memory, as a keeper (`bufkeeper`) and a monitor see it.
//! - [`thread_cache`]: what a thread has in each pool that it uses.
//! - [`sync`]: atomics and locks that a model checker can take the place of; fences of which one
//!   side costs nothing, and values that one side uses so; [`Waiter`], what waits;
//!   [`GrowthSignal`], which wakes a keeper; [`Coop`], a future's part in cooperative scheduling.
//! - [`settings`] makes the struct of a builder; [`SettingsText`] prints its settings.
//!   [`shared_pool!`]: the pool traits of a pool that threads share.
//!
//! What a lease needs is in [`bufcore::author`].
//!
//! # What it does not
//!
//! It is no pool, decides no strategy, and takes no memory for buffers: that is for
//! [`Region`](bufcore::Region).
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
//! /// A pool that threads share, of which there is never anything.
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
