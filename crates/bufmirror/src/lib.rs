//! A ring of bytes in memory that is mapped twice, back to back. The filled part and the free part
//! are always one contiguous slice each.
//!
//! # What it gives you
//!
//! Bytes are written to a [`MirrorRing`] through one slice, of exactly the requested room. They are
//! read through one slice, of all bytes in the ring. One read of a socket can therefore fill the
//! whole ring, and a parser sees every record whole, in place, even across the end of the ring.
//!
//! # When not to use it
//!
//! - Small rings, or many of them: a mapped ring has whole pages, and making and dropping it takes
//!   several system calls.
//! - Buffers that are passed on: slices borrow the ring. The pools, such as `bufslot`, serve owned
//!   buffers.
//!
//! # Threads and processes
//!
//! A [`MirrorRing`] is used by one thread at a time. The ends of a [`StaticChannel`] are used by
//! two contexts, such as an interrupt handler and the main program; it needs neither an operating
//! system nor an allocator. `channel` returns two ends for two threads, and `SharedRing` for two
//! processes (with `std`; processes on Linux only). `messages` carries framed messages between any
//! number of threads, each contiguous (with `std`).
//!
//! # The memory
//!
//! ```text
//!  physical            | a b c d e f g h |
//!                        │             └───────────────┐
//!  addresses    base → | a b c d e f g h | a b c d e f g h |
//!                                ^ head    ^ tail  ^ head + capacity
//!  filled                        e f g h   a b                        peek: one slice
//!  free                                    . . c d                    reserve: one slice
//! ```
//!
//! `head` is always in the first mapping; `tail` is up to one capacity after it, possibly in the
//! second. When `head` reaches the second mapping, both move back by one capacity, and the same
//! bytes are read from the first. An empty ring restarts at the front.
//!
//! # Where memory cannot be mapped twice
//!
//! Linux and Android map a `memfd_create` file. macOS, the BSDs, illumos and Solaris map POSIX
//! shared memory (`shm_open`), whose name is removed at once. That code is type-checked, not
//! tested.
//!
//! On Windows the ring reserves addresses, releases them, and maps a section there twice. If
//! another thread takes them in between, it retries, up to 100 times. Our tests run in Wine. On
//! Windows, capacities are multiples of 64 KiB.
//!
//! On other systems, without the feature `std`, and over a given region, the ring has the same
//! interface over ordinary memory of *twice* its capacity. When `head` reaches the second half, the
//! bytes in the ring are copied to the first. Both slices are still contiguous, and the whole
//! capacity is available, which a bip buffer would not provide. The price is twice the memory, and
//! that each byte may be copied once more. One `consume` per capacity of bytes takes as long as
//! that copy. A ring that is empty from time to time rarely copies.
//!
//! # Invariants
//!
//! - I1: the filled and the free window together contain each byte of the ring once.
//! - I2: a byte is accessed through one of its addresses at a time. Between two addresses is a
//!   compiler fence, since the compiler may assume that different addresses are different bytes.
//! - I3: all bytes are initialised, from the ring's creation on.
//! - I4: the ring returns all memory to the system when it is dropped, and at once if its creation
//!   fails.
//!
//! # Secrets
//!
//! No ring, channel or queue wipes its bytes. Consumed and received bytes remain in memory until
//! later bytes overwrite them. When a ring is dropped, mapped pages are unmapped; memory of the
//! heap is freed without zeroing, and a caller's region keeps the bytes. For bytes that must not
//! remain, use a pool that wipes.
//!
//! # Forks
//!
//! A mapped ring's pages are shared with forked processes. Between `fork` and `exec` a child
//! process must not use or drop a ring, a queue or an end.
//!
//! # Features
//!
//! | feature | adds |
//! | --- | --- |
//! | `std` (default) | mapped rings, channels, message queues, `std::io`; it implies `alloc` |
//! | `alloc` | rings on the heap |
//! | `bytes` | `Buf` and `BufMut` for rings |
//! | `embedded-io-0_7` | `Read`, `BufRead` and `Write` for rings |
//! | `embedded-io-async-0_7` | the same as futures for `bufcore`'s buffers |
//! | `tokio` | `AsyncRead`, `AsyncBufRead` and `AsyncWrite` for the ends of a channel; all futures take part in tokio's cooperative scheduling |
//!
//! Without any of them, rings over a caller's memory need neither an operating system nor an
//! allocator. `portable-atomic` adds no items: it is for processors without compare-and-swap.
//!
//! # Example
//!
//! ```
//! # #[cfg(feature = "std")] {
//! use bufmirror::MirrorRing;
//!
//! let mut ring = MirrorRing::new(64 * 1024)?; // bytes
//! let mut socket = &b"\x05hello\x05world"[..];
//! ring.read_from(&mut socket)?;
//!
//! // Records with their length in front, each read in place.
//! let mut words = Vec::new();
//! while let [length, rest @ ..] = ring.peek() {
//!     let length = usize::from(*length);
//!     let Some(word) = rest.get(..length) else { break }; // incomplete
//!     words.push(String::from_utf8_lossy(word).into_owned());
//!     ring.consume(1 + length);
//! }
//! assert_eq!(words, ["hello", "world"]);
//! # }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Source
//!
//! Memory that is mapped twice, back to back, is an old technique: Philip Howard's `libvrb`, the
//! virtual ring buffer, uses it. Fabian Giesen described it as *The magic ring buffer* (2012).
#![no_std]
#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(feature = "alloc")]
extern crate alloc;
#[cfg(any(feature = "std", test))]
extern crate std;

// First: documentation lists the methods of a type in the order of the modules that have them.
mod ring;

mod channel;
mod config;
mod copy;
mod error;
mod integrations;
#[cfg(feature = "std")]
mod lock;
mod map;
#[cfg(feature = "std")]
pub mod messages;
#[cfg(all(feature = "std", not(all(test, any(loom, shuttle)))))]
mod parking;
#[cfg(all(feature = "std", target_os = "linux", target_pointer_width = "64", not(any(miri, loom, shuttle))))]
mod shared;
mod sync;
#[cfg(all(test, any(loom, shuttle)))]
mod tests;

#[cfg(all(test, any(loom, shuttle)))]
use tests::parking;

pub use bufcore;
#[doc(no_inline)]
pub use bufcore::{
    AcquireError, Buf, BufferPool, BuildInError, ByteSink, ByteSource, ConfigError, Error, Frozen, Lease,
    NoFallback, NoLease, Pieces, PoolStats, Region, RegionError, ReserveError, SharedBytes, SplitLease,
    Writer, copy, copy_up_to,
};
#[cfg(feature = "alloc")]
#[doc(no_inline)]
pub use bufcore::{HeapBuf, HeapLease, HeapPool, HeapView};
#[cfg(feature = "std")]
pub use channel::{Consumer, Producer, WaitError, channel};
pub use channel::{End, StaticChannel, StaticConsumer, StaticProducer};
pub use config::Builder;
pub use error::GetError;
pub use ring::MirrorRing;
#[cfg(all(
    feature = "std",
    target_os = "linux",
    target_pointer_width = "64",
    not(any(miri, loom, shuttle))
))]
pub use shared::{ShareError, SharedConsumer, SharedProducer, SharedRing};

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
