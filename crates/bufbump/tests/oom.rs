//! The n-th allocation fails, for every n: each failure is an error, nothing is lost, nothing
//! aborts.
//!
//! Not with `stats` or `track`, whose own bookkeeping uses collections of the standard library.
#![cfg(not(any(feature = "stats", feature = "track")))]
#![allow(
    clippy::std_instead_of_alloc,
    clippy::std_instead_of_core,
    reason = "tests have an operating system"
)]

use std::sync::Arc;

use bufbump::BumpPool;
use bufbump::bufcore::{ConfigError, RegionError};
use testkit::alloc::Failing;
use testkit::pattern;
use testkit::source::FromAllocator;
use testkit::trials::refusals;

#[global_allocator]
static ALLOCATOR: Failing = Failing;

const SHARD_BYTES: usize = 4096;

/// A pool whose memory is the allocator's.
fn pool(preallocate: usize) -> Result<BumpPool, ConfigError> {
    let builder = BumpPool::builder().shard_size(SHARD_BYTES).preallocate(preallocate);
    builder.max_idle_bytes(4 * SHARD_BYTES).build_from(Arc::new(FromAllocator))
}

#[test]
fn construction() {
    // The source, the bookkeeping, and then for each of two shards a header, memory, who frees that, and its
    // table.
    for allowed in 1..10 {
        let (built, refused) = Failing::after(allowed, || pool(2).map(drop));
        assert!(matches!(built, Err(ConfigError::Region(RegionError::OutOfMemory { .. }))), "{allowed}");
        assert_eq!(refused, 1);
    }
    let (built, refused) = Failing::after(10, || pool(2).map(drop));
    assert!(built.is_ok() && refused == 0);
}

/// A program over everything that may allocate; returns how many of its steps failed.
fn program(pool: &mut BumpPool) -> usize {
    let mut failures = 0;
    // Two to a shard, and the last on its own.
    let sizes = [1500, 1500, 1500, 1500, 1500, 20_000];
    let mut held = refusals::fill_all(pool, sizes, &mut failures);
    if let Some(buf) = held[0].take() {
        refusals::take_apart(buf);
    }
    // Moving a survivor may need some; when there is none, it stays.
    let survivor = held[1].take();
    drop(held);
    if let Some(buf) = survivor {
        pattern::check(&pool.evacuate(buf, 1), 1, 0);
    }
    pool.trim();
    failures
}

#[test]
fn every_allocation_of_a_program() {
    // A refusal that nobody noticed is that of a move.
    let silent = 1;
    let make = || pool(0).expect("settings are right");
    refusals::every_allocation(make, program, 8, silent, |pool| pool.stats().in_use == 0);
}
