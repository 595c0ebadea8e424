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

use bufbump::BumpPool;
use bufbump::bufcore::{AcquireError, ConfigError, RegionError};
use testkit::alloc::Failing;
use testkit::pattern;
use testkit::trials::refusals;

#[global_allocator]
static ALLOCATOR: Failing = Failing;

const SHARD_BYTES: usize = 4096;

fn pool() -> Result<BumpPool, ConfigError> {
    BumpPool::builder().shard_size(SHARD_BYTES).max_idle_bytes(SHARD_BYTES).build()
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
    let make = || pool().expect("settings are right");
    refusals::every_allocation(make, program, 8, silent, |pool| pool.stats().in_use == 0);
}

/// A piece is allocated at its class's size. Where that is refused, what was asked for is tried.
#[test]
fn a_piece_of_the_exact_size() {
    const MIB: usize = 1 << 20;
    let pool = BumpPool::new().expect("the allocator has room");
    let ask = || pool.acquire(MIB + 1).map(|buf| (buf.capacity(), pool.stats().reserved_bytes));
    let (asked, refused) = Failing::above(MIB + MIB / 10, ask);
    assert_eq!((asked, refused), (Ok((MIB + 1, MIB + 1)), 1));
    // It is no size that is kept, so it went with its buffer.
    assert_eq!(pool.stats().reserved_bytes, 0);
    let (asked, refused) = Failing::above(MIB, || pool.acquire(MIB + 1).map(drop));
    assert_eq!((asked, refused), (Err(AcquireError::OutOfMemory { requested: MIB + 1 }), 2));
    assert_eq!(pool.acquire(MIB + 1).map(|buf| buf.capacity()), Ok(MIB + 1));
}
