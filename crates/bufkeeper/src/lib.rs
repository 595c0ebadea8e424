//! The keeper: it gives the idle memory of pools back without being asked. And how short of memory
//! the system is.
//!
//! # What it gives you
//!
//! - A [`Keeper`] looks at pools from time to time, and has them free what they did not use for a
//!   while: as a thread, as a task, or as a tick of a program's own loop.
//! - A [`Pressure`] says how short of memory the system is. The keeper hurries then.
//! - A [`Trim`] is a pool with idle memory. Pools of bufworks that threads share implement it, and
//!   a program's own pool can.
//!
//! # When not to use it
//!
//! A pool of one thread needs no keeper: its thread calls the pool's own `trim`.
//!
//! # Example
//!
//! ```
//! use std::sync::{Arc, Mutex};
//! use std::time::{Duration, Instant};
//!
//! use bufcore::PoolStats;
//! use bufkeeper::{Keeper, Trim};
//!
//! /// A program's own free list: vectors, each with the time at which it was released.
//! #[derive(Default)]
//! struct Vectors(Vec<(Instant, Vec<u8>)>);
//!
//! impl Trim for Vectors {
//!     fn trim(&mut self) {
//!         self.0.clear();
//!     }
//!
//!     fn trim_idle(&mut self, age: Duration) {
//!         self.0.retain(|(since, _)| since.elapsed() < age);
//!     }
//!
//!     fn stats(&self) -> Option<PoolStats> {
//!         let mut stats = PoolStats::default();
//!         stats.idle_bytes = self.0.iter().map(|(_, vector)| vector.capacity()).sum();
//!         stats.reserved_bytes = stats.idle_bytes; // it does not know what is in use
//!         Some(stats)
//!     }
//! }
//!
//! let vectors = Arc::new(Mutex::new(Vectors::default()));
//! let _keeper = Keeper::new().watch(&vectors).spawn()?;
//! vectors.lock().unwrap().0.push((Instant::now(), Vec::with_capacity(1500)));
//! # Ok::<(), std::io::Error>(())
//! ```
#![no_std]
#![cfg_attr(docsrs, feature(doc_cfg))]

extern crate alloc;
extern crate std;

mod calls;
mod keeper;
mod pool;
mod pressure;
mod task;
mod thread;
mod trim;
mod watched;

pub use bufcore;
pub use bufkit::Trim;
pub use calls::KeeperHandle;
pub use keeper::Keeper;
pub use pool::watched;
pub use pressure::{MemoryUse, Pressure, PressureLevel, PressureSource, Stall};
pub use thread::KeeperThread;
pub use trim::{Watch, WeakPool};

/// The example of the README, compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
