//! A global allocator whose large blocks are spans of a page heap.
//!
//! # What it gives you
//!
//! One line, and blocks of 32 KiB and more are runs of pages of one reserved address range:
//!
//! ```
//! #[global_allocator]
//! static ALLOC: bufalloc::Large = bufalloc::Large::new();
//! # drop(vec![0_u8; 1 << 20]);
//! ```
//!
//! - A block grows in place where the pages behind it are free. Otherwise its pages are moved to
//!   other addresses (`mremap`, on Linux), which takes less time than copying its bytes.
//! - A freed block joins its free neighbours, and serves the next request of any size.
//! - Pages that no request needed for a while go back to the system: see [`Upkeep`].
//! - `alloc_zeroed` writes nothing to pages that are known to be zero.
//! - [`Large::max_bytes`] bounds the pages that the process has for large blocks.
//!
//! Smaller blocks are the business of the allocator below, by default the system's. They cost a
//! comparison more.
//!
//! # What it does not
//!
//! - It makes small requests neither faster nor slower: put it over the allocator of your choice
//!   with [`Large::over`].
//! - Where the system reserves no addresses, and under Miri, all blocks are those of the allocator
//!   below.
//! - What the program keeps stays: the
//!   [`guide`] shows what buffers of connections hold,
//!   and what bounds them.
//! - Overflows of a large block are not seen by AddressSanitizer.
//!
//! # As a global allocator
//!
//! It works before `main`, in destructors of thread-locals and at exit, and allocates nothing while
//! its lock is held. A forked child goes on with the heap that it has of its parent; the thread
//! that gives memory back is not in the child, where calls that free large blocks do its work.
//! Signal handlers may not allocate, as with most allocators. They do not run on that thread, which
//! has all signals blocked.
//!
//! A fork has the heap's lock while those handlers run that were registered before the first large
//! block (`pthread_atfork`). They may allocate, and must not wait for other threads that do.
//!
//! What a thread allocates while it panics is of the allocator below.
//!
//! All allocators of this type in a program share one heap, whose limit is that of the first that
//! was asked for a large block.
//!
//! # Features
//!
//! | feature | adds |
//! | --- | --- |
//! | `keeper` | the thread reads how short of memory the system is, as `bufkeeper::Keeper` does; a `Keeper` of the program can watch [`Large`] |
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
