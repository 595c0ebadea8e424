//! T23: the global allocator uses the pools, and ends them, in each of its calls in turn.
//!
//! Not with `stats` or `track`, whose own bookkeeping uses collections of the standard library.
#![cfg(not(any(feature = "stats", feature = "track")))]

use bufbump::BumpPool;
use buftest::alloc::Reentrant;
use buftest::trials::reentry::Reentry;

#[global_allocator]
static ALLOCATOR: Reentrant = Reentrant::new();

const SHARD_BYTES: usize = 256;

#[test]
fn t23_the_allocator_comes_back_in() {
    let reentry = Reentry {
        allocator: &ALLOCATOR,
        // Nothing is kept, so that releases free memory.
        make: || BumpPool::builder().shard_size(SHARD_BYTES).idle_bytes(0).build().expect("room"),
        handle: |pool| Some(pool.clone()),
        sizes: &[200, 60, 200, 1000, 200, 200],
        more: |pool| {
            pool.trim();
            pool.clear();
        },
    };
    reentry.everywhere();
    // What is kept makes other ways.
    let keeping = Reentry {
        make: || BumpPool::builder().shard_size(SHARD_BYTES).idle_bytes(2 * SHARD_BYTES).build().expect("room"),
        ..reentry
    };
    keeping.everywhere();
}
