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
//! use bufkeeper::{Keeper, Trim};
//!
//! /// A program's own free list: vectors, each with the time at which it was released.
//! #[derive(Default)]
//! struct Vectors(Mutex<Vec<(Instant, Vec<u8>)>>);
//!
//! impl Trim for Vectors {
//!     fn trim(&self) {
//!         self.0.lock().unwrap().clear();
//!     }
//!
//!     fn trim_idle(&self, age: Duration) {
//!         self.0.lock().unwrap().retain(|(since, _)| since.elapsed() < age);
//!     }
//!
//!     fn reserved_bytes(&self) -> usize {
//!         self.idle_bytes() // it does not know what is in use
//!     }
//!
//!     fn idle_bytes(&self) -> usize {
//!         self.0.lock().unwrap().iter().map(|(_, vector)| vector.capacity()).sum()
//!     }
//! }
//!
//! let vectors = Arc::new(Vectors::default());
//! let _keeper = Keeper::new().watch(&vectors).spawn()?;
//! vectors.0.lock().unwrap().push((Instant::now(), Vec::with_capacity(1500)));
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
pub use calls::KeeperHandle;
pub use keeper::Keeper;
pub use pool::watched;
pub use pressure::{MemoryUse, Pressure, PressureLevel, PressureSource, Stall};
pub use thread::KeeperThread;
pub use trim::{Trim, Watch, WeakPool};

/// The example of the README, compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
