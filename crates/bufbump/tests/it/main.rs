//! The tests of the bump pool, in one binary.

#![allow(
    clippy::std_instead_of_alloc,
    clippy::std_instead_of_core,
    reason = "tests have an operating system"
)]

mod conformance;
mod costs;
#[cfg(target_os = "linux")]
mod fences;
mod keeper;
mod large;
#[cfg(target_os = "linux")]
mod mapped;
mod pages;
mod programs;
mod shards;
mod sources;
mod split;
#[cfg(target_os = "linux")]
mod steady;
mod sums;
mod threads;
mod trims;
mod words;
mod zeroed;
