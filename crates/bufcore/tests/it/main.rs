//! The tests of the vocabulary and of the heap pool, in one binary.

#![allow(
    clippy::std_instead_of_alloc,
    clippy::std_instead_of_core,
    reason = "tests have an operating system"
)]

#[cfg(feature = "allocator-api2-0_2")]
mod allocator;
mod bufs;
mod conformance;
mod heap;
mod hostile;
mod pages;
mod providers;
mod regions;
#[cfg(feature = "bytes")]
mod scopes;
mod shared;
mod shared_region;
mod streams;
mod traps;
mod words;
