//! The n-th allocation fails, for every n: each failure is an error, nothing is lost, nothing aborts.
//!
//! Not with `stats` or `track`, whose own bookkeeping uses collections of the standard library.
#![cfg(not(any(feature = "stats", feature = "track")))]
#![allow(
    clippy::std_instead_of_alloc,
    clippy::std_instead_of_core,
    reason = "tests have an operating system"
)]

use bufshard::ShardPool;
use bufshard::bufcore::{AcquireError, ConfigError, RegionError};
use buftest::alloc::Failing;
use buftest::pattern;

#[global_allocator]
static ALLOCATOR: Failing = Failing;

fn pool() -> Result<ShardPool, ConfigError> {
    ShardPool::builder().thread_cache(2).shards(1).shard_buffers(2).largest_pooled(4096).build()
}

#[test]
fn construction() {
    // The shards, what they hold, and the bookkeeping.
    for allowed in 0..3 {
        let (built, refused) = Failing::after(allowed, || pool().map(drop));
        assert!(matches!(built, Err(ConfigError::Region(RegionError::OutOfMemory { .. }))));
        assert_eq!(refused, 1);
    }
    let (built, refused) = Failing::after(3, || pool().map(drop));
    assert!(built.is_ok() && refused == 0);
}

/// A program over everything that may allocate; returns how many of its steps failed.
fn program(pool: &ShardPool) -> usize {
    let mut failures = 0;
    // The last is not pooled.
    let sizes = [1500, 1500, 1500, 1500, 1500, 20_000];
    let mut held = [const { None }; 6];
    for ((seed, place), bytes) in (0_u64..).zip(&mut held).zip(sizes) {
        match pool.acquire(bytes) {
            Ok(mut buf) => {
                pattern::fill(&mut buf.spare_mut()[..bytes], seed, 0);
                buf.advance(bytes);
                *place = Some(buf);
            }
            Err(error) => {
                assert!(matches!(error, AcquireError::OutOfMemory { .. }), "{error}");
                failures += 1;
            }
        }
    }
    for (seed, buf) in (0_u64..).zip(&held) {
        if let Some(buf) = buf {
            pattern::check(buf, seed, 0);
        }
    }
    // Splitting, freezing, cloning and slicing need no memory, and neither does a release.
    if let Some(mut buf) = held[0].take() {
        let front = buf.split_to(700);
        let view = buf.freeze();
        let parts = [view.clone(), view.slice(..100)];
        drop(view);
        pattern::check(&front, 0, 0);
        pattern::check(&parts[0], 0, 700);
    }
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

#[test]
fn every_allocation_of_a_program() {
    // What a thread sets up once.
    drop(pool().expect("there is room").acquire(1));
    for allowed in 0.. {
        let pool = pool().expect("settings are right");
        let (failures, refused) = Failing::after(allowed, || program(&pool));
        assert!(failures <= refused, "{failures} failures of {refused} refusals");
        // As good as new afterwards.
        assert_eq!(pool.stats().reserved_bytes, 0, "a block was lost by failure {allowed}");
        assert_eq!(program(&pool), 0);
        if refused == 0 {
            assert!(allowed >= 8, "the program allocates");
            return;
        }
    }
}
