//! The tests of the umbrella, in one binary.
#![allow(
    clippy::std_instead_of_alloc,
    clippy::std_instead_of_core,
    reason = "tests have an operating system"
)]

#[macro_use]
#[path = "../../src/strategies.rs"]
mod strategies;

#[cfg(all(
    feature = "allocator-api2-0_2",
    feature = "slot",
    feature = "ring",
    feature = "bump",
    feature = "shard"
))]
mod allocator;
mod any;
mod bounds;
#[cfg(feature = "bytes")]
mod codecs;
mod conformance;
#[cfg(all(feature = "bump", feature = "shard"))]
#[cfg(feature = "bytes")]
mod encrypted;
mod errors;
#[cfg(all(feature = "per-thread", feature = "slot", unix))]
mod forked;
#[cfg(all(feature = "tokio", feature = "slot", feature = "ring", feature = "bump", feature = "shard"))]
mod frames;
#[cfg(all(feature = "slot", feature = "bump", feature = "shard"))]
mod hostile;
#[cfg(all(feature = "http", feature = "shard", feature = "stats", feature = "tokio"))]
mod http;
mod keeper;
#[cfg(feature = "bytes")]
mod like_bytes;
#[cfg(all(target_os = "linux", feature = "slot", feature = "ring", feature = "bump", feature = "shard"))]
mod live;
#[cfg(all(feature = "prometheus", feature = "shard", feature = "slot"))]
mod monitor;
#[cfg(all(feature = "tokio", feature = "slot", feature = "ring"))]
mod net;
#[cfg(feature = "bytes")]
mod own;
#[cfg(all(feature = "per-thread", feature = "ring", feature = "slot"))]
mod per_thread;
mod reexports;
#[cfg(all(
    target_os = "linux",
    feature = "allocator-api2-0_2",
    feature = "bump",
    feature = "bytes",
    feature = "ring",
    feature = "shard",
    feature = "slot",
    feature = "tokio",
    feature = "wipe"
))]
mod secrets;
#[cfg(all(feature = "slot", feature = "ring"))]
mod sources;
mod split;
#[cfg(all(target_os = "linux", feature = "shard"))]
mod trace;
mod unwinding;
