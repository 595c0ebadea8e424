//! The n-th allocation fails, for every n: each failure is an error, nothing is lost, nothing aborts.
//!
//! Not with `stats` or `track`, whose own bookkeeping uses collections of the standard library.
#![cfg(not(any(feature = "stats", feature = "track")))]
#![allow(
    clippy::std_instead_of_alloc,
    clippy::std_instead_of_core,
    reason = "tests have an operating system"
)]

use bufbump::BumpPool;
use bufbump::bufcore::{AcquireError, ConfigError, RegionError};
use buftest::alloc::Failing;
use buftest::pattern;

#[global_allocator]
static ALLOCATOR: Failing = Failing;

const SHARD_BYTES: usize = 4096;

fn pool() -> Result<BumpPool, ConfigError> {
    BumpPool::builder().shard_size(SHARD_BYTES).idle_bytes(SHARD_BYTES).build()
}

#[test]
fn construction() {
    let (built, refused) = Failing::after(0, || pool().map(drop));
    assert!(matches!(built, Err(ConfigError::Region(RegionError::OutOfMemory { .. }))));
    assert_eq!(refused, 1);
    // The bookkeeping, and then a header and memory for each of two shards.
    for allowed in 1..5 {
        let builder = BumpPool::builder().shard_size(SHARD_BYTES).preallocate(2);
        let (built, refused) = Failing::after(allowed, || builder.build().map(drop));
        assert!(matches!(built, Err(ConfigError::Region(RegionError::OutOfMemory { .. }))));
        assert_eq!(refused, 1);
    }
    let (built, refused) =
        Failing::after(5, || BumpPool::builder().shard_size(SHARD_BYTES).preallocate(2).build().map(drop));
    assert!(built.is_ok() && refused == 0);
}

/// A program over everything that may allocate; returns how many of its steps failed.
fn program(pool: &BumpPool) -> usize {
    let mut failures = 0;
    // Two to a shard, and the last on its own.
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
                assert_eq!(error, AcquireError::OutOfMemory { requested: bytes });
                failures += 1;
            }
        }
    }
    for (seed, buf) in (0_u64..).zip(&held) {
        if let Some(buf) = buf {
            pattern::check(buf, seed, 0);
        }
    }
    // Splitting, freezing, cloning and slicing need no memory.
    if let Some(mut buf) = held[0].take() {
        let front = buf.split_to(700);
        let view = buf.freeze();
        let parts = [view.clone(), view.slice(..100)];
        drop(view);
        pattern::check(&front, 0, 0);
        pattern::check(&parts[0], 0, 700);
    }
    // Moving a survivor may need some; when there is none, it stays.
    let survivor = held[1].take();
    drop(held);
    if let Some(buf) = survivor {
        pattern::check(&pool.detach_if_pinning(buf, 1), 1, 0);
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
        // A refusal that nobody noticed is that of a move.
        assert!(failures > 0 || refused <= 1, "{failures} failures of {refused} refusals");
        // As good as new afterwards.
        assert_eq!(pool.stats().in_use, 0, "a buffer was lost by failure {allowed}");
        assert_eq!(program(&pool), 0);
        if refused == 0 {
            assert!(allowed >= 8, "the program allocates");
            return;
        }
    }
}
