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
mod each;
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

/// Adds up the classes of a pool; `bytes` are those of all idle buffers.
fn totals(pool: &bufshard::ShardPool) -> bufshard::ClassStats {
    let mut sum = bufshard::ClassStats::default();
    for class in pool.class_stats() {
        sum.bytes += class.bytes * (class.thread_idle + class.shard_idle);
        sum.thread_hits += class.thread_hits;
        sum.shard_hits += class.shard_hits;
        sum.allocations += class.allocations;
        sum.preallocations += class.preallocations;
        sum.discards += class.discards;
        sum.trims += class.trims;
        sum.in_use += class.in_use;
        sum.thread_idle += class.thread_idle;
        sum.shard_idle += class.shard_idle;
    }
    sum
}
