//! T23: the global allocator uses the pools, and ends them, in each of its calls in turn.
//!
//! Not with `stats` or `track`, whose own bookkeeping uses collections of the standard library.
#![cfg(not(any(feature = "stats", feature = "track")))]

use bufshard::ShardPool;
use buftest::alloc::Reentrant;
use buftest::trials::reentry::Reentry;

#[global_allocator]
static ALLOCATOR: Reentrant = Reentrant::new();

/// One after another: both count on the order in which pools are made.
#[test]
fn t23_the_allocator_comes_back_in() {
    let reentry = Reentry {
        allocator: &ALLOCATOR,
        make: || {
            let pool = ShardPool::builder().thread_cache(2).shards(1).shard_buffers(2).largest_pooled(4096);
            pool.build().expect("room")
        },
        handle: |pool| Some(pool.clone()),
        sizes: &[10_000, 1500, 1500, 60, 1500, 1500, 1500],
        small: 100,
        more: |pool| {
            let _ = pool.preallocate(2, 1500);
            pool.trim();
        },
    };
    reentry.everywhere();
    reentry.beside_each_other();
}
