//! A global allocator whose large blocks are spans of a page heap.
//!
//! # What it gives you
//!
//! With one line, blocks of 32 KiB and more are spans of pages of one reserved address range:
//!
//! ```
//! #[global_allocator]
//! static ALLOC: bufalloc::Large = bufalloc::Large::new();
//! # drop(vec![0_u8; 1 << 20]);
//! ```
//!
//! - A block grows in place if the pages after it are free. Otherwise its pages are moved to other
//!   addresses (`mremap`, on Linux), which takes less time than copying its bytes.
//! - A freed block is merged with its free neighbours, and serves the next request of any size.
//! - Pages that no request needed for a while are returned to the system: see [`Upkeep`].
//! - `alloc_zeroed` does not write to pages that are known to be zero.
//! - [`Large::max_bytes`] limits the pages of large blocks, touched or not.
//!
//! Smaller blocks are served by the underlying allocator, by default the system's. They cost one
//! additional comparison.
//!
//! # What it does not
//!
//! - Small requests cost what the underlying allocator costs: choose it with [`Large::over`].
//! - If the system reserves no addresses, and under Miri, all blocks are served by the underlying
//!   allocator.
//! - Memory that the program keeps is not affected: the [`guide`] shows how much the buffers of
//!   connections hold, and how to limit them.
//! - AddressSanitizer does not detect overflows of a large block.
//!
//! # As a global allocator
//!
//! It works before `main`, in destructors of thread-locals and at exit, and allocates nothing while
//! its lock is held. A forked child continues with its copy of the heap. The thread that returns
//! memory does not exist in the child, where calls that free large blocks do its work. Signal
//! handlers may not allocate, as with most allocators. They do not run on the crate's thread, which
//! has all signals blocked.
//!
//! During a fork the heap's lock is held while the handlers run that were registered before the
//! first large block (`pthread_atfork`). These handlers may allocate, but must not wait for other
//! threads that do.
//!
//! Allocations of a panicking thread are served by the underlying allocator.
//!
//! All allocators of this type in a program share one heap; its limit is that of the allocator that
//! served the first large block.
//!
//! # Features
//!
//! | feature | adds |
//! | --- | --- |
//! | `keeper` | the thread reads the memory pressure of the system, as `bufkeeper::Keeper` does; a `Keeper` of the program can watch [`Large`] |
#![no_std]
#![cfg_attr(docsrs, feature(doc_cfg))]

extern crate alloc;
extern crate std;

mod fork;
mod heap;
mod large;
mod signals;
mod upkeep;
#[cfg(feature = "keeper")]
mod watch;

pub use bufkit::PageStats;
pub use heap::{stats, trim};
pub use large::Large;
pub use upkeep::Upkeep;

#[cfg(doc)]
#[doc = include_str!("../docs/guide.md")]
pub mod guide {}

/// The example of the README, compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
