//! The keeper: it returns the idle memory of pools to the system automatically. It also reads the
//! memory pressure of the system.
//!
//! # What it gives you
//!
//! - A [`Keeper`] visits pools periodically and makes them free memory that was idle for a while:
//!   as a thread, as a task, or as a tick of a program's own loop.
//! - A [`Pressure`] is the memory pressure of the system. Under pressure the keeper frees memory
//!   sooner.
//! - A [`Trim`] is a pool with idle memory. The shared pools of bufworks implement it, and a
//!   program's own pool can.
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
