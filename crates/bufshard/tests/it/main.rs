//! The tests of the sharded pool, in one binary.

#![allow(
    clippy::std_instead_of_alloc,
    clippy::std_instead_of_core,
    reason = "tests have an operating system"
)]

mod budget;
mod conformance;
mod costs;
#[cfg(feature = "stats")]
mod counted;
#[cfg(target_os = "linux")]
mod handoff;
mod keeper;
mod magazines;
#[cfg(target_os = "linux")]
mod room;
#[cfg(target_os = "linux")]
mod soak;
mod sources;
mod split;
mod starts;
#[cfg(feature = "stats")]
mod sums;
#[cfg(target_os = "linux")]
mod system;
mod threads;
mod trims;
mod waits;
mod wakers;
mod words;
