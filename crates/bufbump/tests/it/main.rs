//! The tests of the bump pool, in one binary.

#![allow(
    clippy::std_instead_of_alloc,
    clippy::std_instead_of_core,
    reason = "tests have an operating system"
)]

mod conformance;
mod costs;
mod programs;
mod shards;
mod split;
mod steady;
mod sums;
mod threads;
mod words;
