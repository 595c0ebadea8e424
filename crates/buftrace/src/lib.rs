//! Traces of a real program's requests to its buffer pool: recorded, kept in a compact file, read
//! back.
//!
//! # What it gives you
//!
//! - [`Recorder`]: wraps any pool and is a pool. Every buffer of it, and its release, becomes an
//!   event of a [`Recording`], which any number of pools and threads share, and which
//!   [saves](Recording::save) itself.
//! - [`Trace`]: the events of a finished recording, checked and in order; [`Trace::encode`] and
//!   [`Trace::decode`] for the compact [format](mod@format), [`Trace::summary`] for a readable
//!   summary.
//!
//! - `RecordingAlloc`, with the feature `heap` on Linux: an allocator that wraps another, for
//!   programs that use no pool. It records samples of the program's requests, with their call
//!   stacks, into a separate file; `BUFTRACE=app.heap` starts it.
//! - [`Profile`]: such a recording, read back: the requests of each call stack, and traces of them.
//!
//! A trace holds sizes, threads and times. It contains none of the buffers' bytes.
//!
//! # When not to use it
//!
//! To measure speed: recording an acquire or release reads the clock, under a lock that all threads
//! share. Record once, then replay the trace in the measurement.
//!
//! # Invariants of a trace
//!
//! - T1: times never decrease.
//! - T2: an id is acquired before it is released, and acquired again only after that; some may be
//!   in use at the end.
//! - T3: ids and threads are dense: each new one is the smallest unused number. A reader may
//!   therefore store both in plain tables of [`Trace::ids`] and [`Trace::threads`] entries.
//! - T4: no buffer is larger than [`MAX_BYTES`], and no time later than [`MAX_TIME_NS`].
//!
//! # Threads
//!
//! A [`Recording`] may be used by any thread at any time. Buffers may be released on any thread,
//! before or after their pool, its recorder, the other handles of the recording, and
//! [`Recording::finish`].
//!
//! # Example
//!
//! ```
//! use bufcore::{BufferPool, HeapPool};
//! use buftrace::{EventKind, Meta, Recorder, Recording, Trace};
//!
//! let recording = Recording::new();
//! let mut pool = Recorder::new(HeapPool::new(), &recording);
//! let buf = pool.acquire(1500)?;
//! std::thread::spawn(move || drop(buf)).join().unwrap();
//! let _in_use = pool.acquire(64)?;
//!
//! let trace = recording.finish(Meta::new("two buffers"));
//! let kinds: Vec<_> = trace.events().iter().map(|event| event.kind).collect();
//! assert_eq!(kinds, [
//!     EventKind::Acquire { id: 0, bytes: 1500 },
//!     EventKind::Release { id: 0 },
//!     EventKind::Acquire { id: 0, bytes: 64 },
//! ]);
//! assert_eq!(trace.summary().cross_thread_releases, 1);
//! assert_eq!(trace.out_at_end(), [0]);
//!
//! let file = trace.encode();
//! assert_eq!(Trace::decode(&file)?, trace);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![cfg_attr(docsrs, feature(doc_cfg))]

extern crate alloc;

mod error;
#[cfg(all(feature = "heap", target_os = "linux"))]
mod heap;
mod recorder;
mod recording;
mod summary;
mod thread_number;
mod trace;

pub mod format;
#[doc(hidden)]
pub mod heap_settings;
pub mod profile;

pub use error::{DecodeError, Fault, TraceError};
#[cfg(all(feature = "heap", target_os = "linux"))]
pub use heap::{HeapError, RecordingAlloc, hooks, start_heap_recording, stop_heap_recording};
pub use profile::{Ending, Info, Module, Object, Profile, Resize, Site, Usage, Whole};
pub use recorder::{RecordedLease, Recorder};
pub use recording::{DEFAULT_MAX_EVENTS, Recording};
pub use summary::{Lifetimes, SizeClass, Summary};
pub use trace::{Event, EventKind, MAX_BYTES, MAX_TIME_NS, Meta, Trace};

/// Compiles and runs the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
