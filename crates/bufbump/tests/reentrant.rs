//! T23: the global allocator uses the pools, and ends them, in each of its calls in turn.
//!
//! Not with `stats` or `track`, whose own bookkeeping uses collections of the standard library.
#![cfg(not(any(feature = "stats", feature = "track")))]

use bufbump::BumpPool;
use testkit::alloc::Reentrant;
use testkit::trials::reentry::Reentry;

#[global_allocator]
static ALLOCATOR: Reentrant = Reentrant::new();

const SHARD_BYTES: usize = 256;

/// A pool that keeps `idle` shards, of a page each.
fn pool(idle: usize) -> BumpPool {
    BumpPool::builder().shard_size(SHARD_BYTES).max_idle_bytes(idle * 4096).build().expect("room")
}

fn reentry(make: fn() -> BumpPool) -> Reentry<BumpPool> {
    Reentry {
        allocator: &ALLOCATOR,
        make,
        handle: |pool| Some(pool.clone()),
        sizes: &[1000, 200, 60, 200, 200, 200],
        small: 100,
        more: |pool| {
            pool.trim();
            pool.trim_idle(core::time::Duration::ZERO);
            pool.trim_idle(core::time::Duration::ZERO);
        },
    }
}

/// One after another: both count on the order in which pools are made.
#[test]
fn t23_the_allocator_comes_back_in() {
    // Nothing is kept, so that releases free memory; and some, which makes other ways;
    // and so much that larger pieces are kept.
    for make in [|| pool(0), || pool(2), || pool(16)] {
        reentry(make).everywhere();
    }
    reentry(|| pool(2)).beside_each_other();
}
