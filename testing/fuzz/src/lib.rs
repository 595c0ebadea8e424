//! What the fuzz targets do with the bytes that libFuzzer makes up: each has a module with `run`.
//!
//! Targets of pools read operations of [`testkit::ops`] and take them in lockstep with its model. The same bytes say what is special
//! to a strategy, and what hostile code of users does. Nothing is random, and nothing is kept from one input to the next, except
//! for the caches of threads.
#![deny(unsafe_code)]

pub mod alloc;
pub mod any;
pub mod builder;
pub mod bump;
mod drive;
pub mod frames;
pub mod header;
mod hostile;
mod keeper;
pub mod messages;
pub mod mirror;
pub mod page_heap;
pub mod ring;
pub mod shard;
mod shared;
pub mod slot;
mod sources;
pub mod trace;
mod wakers;
