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
use std::time::Duration;

use bufshard::bufcore::{AcquireError, ConfigError, RegionError};
use bufshard::{Builder, ShardPool};
use testkit::alloc::Failing;
use testkit::source::FromAllocator;
use testkit::trials::refusals;

#[global_allocator]
static ALLOCATOR: Failing = Failing;

fn settings() -> Builder {
    // The standard library does not survive without memory for its look at the processors.
    let builder = ShardPool::builder().thread_cache(2).max_cached_bytes(1 << 20).shards(1);
    builder.shard_buffers(8).largest_pooled(4096)
}

/// A pool whose memory is the allocator's, too.
fn over_allocator(builder: Builder) -> ShardPool {
    builder.build_from(Arc::new(FromAllocator)).expect("settings are right")
}

#[test]
fn construction() {
    // The bookkeeping.
    let (built, refused) = Failing::after(0, || settings().build().map(drop));
    assert!(matches!(built, Err(ConfigError::Region(RegionError::OutOfMemory { .. }))));
    assert_eq!(refused, 1);
    let (built, refused) = Failing::after(1, || settings().build().map(drop));
    assert!(built.is_ok() && refused == 0);
}

/// A program over everything that may allocate; returns how many of its steps failed.
fn program(pool: &mut ShardPool) -> usize {
    let mut failures = 0;
    // The last is not pooled.
    let sizes = [1500, 1500, 1500, 1500, 1500, 20_000];
    let mut held = refusals::fill_all(pool, sizes, &mut failures);
    if let Some(buf) = held[0].take() {
        refusals::take_apart(buf);
    }
    // Nor does a release need any.
    drop(held);
    match pool.preallocate(4, 3000) {
        Ok(kept) => assert!(kept > 0),
        Err(error) => {
            assert!(matches!(error, AcquireError::OutOfMemory { .. }), "{error}");
            failures += 1;
        }
    }
    pool.trim();
    failures
}

/// One whose magazine grows beyond the slots that its cache has: without more, it stays as it is.
fn growing(pool: &mut ShardPool) -> usize {
    let mut failures = 0;
    for _ in 0..7 {
        drop(refusals::fill_all(pool, [60; 70], &mut failures));
    }
    pool.trim_idle(Duration::ZERO);
    pool.trim_idle(Duration::ZERO);
    failures
}

#[test]
fn every_allocation_of_a_magazine_that_grows() {
    let make = || {
        let builder = ShardPool::builder().shards(1).shard_buffers(128).largest_pooled(4096);
        over_allocator(builder)
    };
    // The cache, the slabs and the array. An array that is refused shows nowhere, and is asked for
    // again.
    refusals::every_allocation(make, growing, 8, 400, |pool| pool.stats().reserved_bytes == 0);
}

#[test]
fn every_allocation_of_a_program() {
    let make = || over_allocator(settings());
    // Where a segment is refused, a free one that is much larger serves.
    refusals::every_allocation(make, program, 8, 1, |pool| pool.stats().reserved_bytes == 0);
}
