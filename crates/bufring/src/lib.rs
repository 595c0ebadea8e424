//! A ring allocator.
#![no_std]
#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(feature = "alloc")]
extern crate alloc;
#[cfg(any(feature = "std", test))]
extern crate std;

mod config;
mod extendable;
mod frame;
mod guard;
mod lease;
mod pool;
mod ring;
mod vec;
#[cfg(all(test, feature = "std"))]
mod tests;

pub use bufcore;
pub use config::{Builder, Refused};
pub use extendable::Extendable;
pub use lease::RingLease;
pub use pool::RingAllocator;
pub use vec::{IntoIter, PushError, RingVec};
