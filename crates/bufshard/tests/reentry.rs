//! T23: the global allocator uses the pools, and ends them, in each of its calls in turn.
//!
//! Not with `stats` or `track`, whose own bookkeeping uses collections of the standard library.
#![cfg(not(any(feature = "stats", feature = "track")))]
#![allow(
    clippy::std_instead_of_alloc,
    clippy::std_instead_of_core,
    reason = "tests have an operating system"
)]

use std::sync::Mutex;
use std::time::Duration;

use bufshard::ShardPool;
use testkit::alloc::Reentrant;
use testkit::trials::reentry::Reentry;

#[global_allocator]
static ALLOCATOR: Reentrant = Reentrant::new();

/// What is held back is looked at when nothing else runs.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// One after another: both count on the order in which pools are made.
#[test]
fn t23_the_allocator_comes_back_in() {
    let _alone = ONE_AT_A_TIME.lock();
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

/// A magazine that is given an array when nothing else is left, leaves it for the store, and grows
/// out of that again; and a look that finds all of it unused.
fn grow(pool: &mut ShardPool) {
    let burst = |pool: &ShardPool, bytes| [(); 40].map(|()| pool.acquire(bytes).ok());
    let mut held = burst(pool, 5000);
    for bytes in (4..10).flat_map(|doubling| (5..9).map(move |quarter| quarter << doubling)) {
        drop([(); 2].map(|()| pool.acquire(bytes).ok()));
    }
    for _ in 0..2 {
        held[..3].fill_with(|| None);
        held[..3].fill_with(|| pool.acquire(5000).ok());
    }
    pool.trim_idle(Duration::ZERO);
    held[0] = None;
    pool.trim_idle(Duration::ZERO);
    drop(held);
    for _ in 0..6 {
        drop(burst(pool, 5000));
    }
    pool.trim_idle(Duration::ZERO);
    pool.trim_idle(Duration::ZERO);
}

/// The same where magazines have arrays, which come and go in calls of the allocator too.
#[test]
fn t23_the_allocator_comes_back_in_as_magazines_grow() {
    let _alone = ONE_AT_A_TIME.lock();
    let reentry = Reentry {
        allocator: &ALLOCATOR,
        make: || ShardPool::builder().shards(1).largest_pooled(8192).build().expect("room"),
        handle: |pool| Some(pool.clone()),
        sizes: &[5000, 60, 5000],
        small: 100,
        more: grow,
    };
    reentry.everywhere();
}
