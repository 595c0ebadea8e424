//! Statistics by tier and class, with the feature.

use std::sync::Barrier;
use std::thread;

use bufshard::{ClassStats, ShardPool};

use crate::totals;

fn class(pool: &ShardPool, bytes: usize) -> ClassStats {
    let classes = pool.class_stats();
    *classes.iter().find(|class| class.bytes >= bytes).expect("a class for it")
}

/// The numbers of one class: thread hits, shard hits, allocations, discards, in use.
fn numbers(class: ClassStats) -> [u64; 5] {
    [class.thread_hits, class.shard_hits, class.allocations, class.discards, class.in_use as u64]
}

#[test]
fn by_tier_and_class() {
    let pool = ShardPool::builder().thread_cache(2).shards(1).shard_buffers(4).largest_pooled(4096).build();
    let pool = pool.expect("settings are right");
    let take = |count, bytes| (0..count).map(|_| pool.acquire(bytes).expect("room")).collect::<Vec<_>>();
    assert_eq!(class(&pool, 100).bytes, 112);
    let bufs = take(9, 100);
    assert_eq!(numbers(class(&pool, 100)), [0, 0, 9, 0, 9]);
    // The first is apart, two chains of two are in the shard, two are freed, and the last two are
    // in the cache.
    drop(bufs);
    assert_eq!(numbers(class(&pool, 100)), [0, 0, 9, 2, 0]);
    let bufs = take(9, 100);
    // The three in the cache; of each chain one at once, and one through the cache; and fresh ones.
    let [hits, shard_hits, allocations, discards, in_use] = numbers(class(&pool, 100));
    assert_eq!((hits + shard_hits, allocations, discards, in_use), (7, 11, 2, 9));
    assert_eq!(shard_hits, 2);
    // None is apart, since the magazine served some: the last is in the cache.
    drop(bufs);
    let large = pool.acquire(5000).expect("room");
    let (stats, classes) = (pool.stats(), totals(&pool));
    assert_eq!((stats.fallbacks, stats.in_use, classes.allocations), (1, 1, 11));
    assert_eq!((stats.high_water, classes.discards), (9, 6));
    assert!(stats.in_use_bytes >= 5000, "{stats:?}");
    let pages = pool.page_stats();
    assert_eq!(stats.idle_bytes - pages.dirty_bytes - pages.free_block_bytes, 5 * 112, "{stats:?}");
    let overhead = stats.reserved_bytes - stats.in_use_bytes - stats.idle_bytes;
    assert!((8 * 16..=4096).contains(&overhead), "{stats:?}");
    drop(large);
    assert_eq!(stats.acquired, classes.thread_hits + classes.shard_hits + classes.allocations + 1);
    assert_eq!(stats.acquired, stats.reused + stats.fresh);
}

/// What other threads have is noticed by requests that their caches do not serve, and by snapshots.
#[test]
fn snapshots_raise_the_marks() {
    let pool = ShardPool::new().expect("settings are right");
    let take = || [0; 3].map(|_| pool.acquire(50).expect("room"));
    let turns = Barrier::new(2);
    let (here, there) = thread::scope(|scope| {
        let there = scope.spawn(|| {
            drop(take());
            turns.wait();
            turns.wait();
            // Its cache has them.
            take()
        });
        turns.wait();
        let here = pool.acquire(50).expect("room");
        turns.wait();
        (here, there.join().expect("requests are served"))
    });
    let stats = pool.stats();
    assert_eq!((stats.in_use, stats.high_water), (4, 4), "{stats:?}");
    assert!(stats.in_use_bytes <= stats.high_water_bytes, "{stats:?}");
    drop((here, there));
}

/// What is counted on several threads adds up, those that have ended among them.
#[test]
fn over_threads() {
    let pool = ShardPool::new().expect("settings are right");
    let held = pool.acquire(50).expect("room");
    let threads: Vec<_> = (0..4)
        .map(|index| {
            let pool = pool.clone();
            thread::spawn(move || {
                let mut bufs: Vec<_> = (0..100).map(|_| pool.acquire(1000).expect("room")).collect();
                bufs.truncate(index);
                bufs
            })
        })
        .collect();
    let bufs: Vec<_> =
        threads.into_iter().map(|thread| thread.join().expect("the thread ends well")).collect();
    let stats = pool.stats();
    assert_eq!((stats.in_use, class(&pool, 1000).in_use), (7, 6));
    assert_eq!(pool.stats().acquired, 401);
    assert!((101..=401).contains(&stats.high_water), "{stats:?}");
    drop(bufs);
    drop(held);
    let stats = pool.stats();
    assert_eq!((stats.in_use, stats.in_use_bytes), (0, 0));
    let pages = pool.page_stats();
    assert_eq!(stats.idle_bytes - pages.dirty_bytes - pages.free_block_bytes, totals(&pool).bytes);
}

/// Acquired on one thread and released on another: the mark is what was out, not what was ever
/// acquired.
#[test]
fn high_water_of_a_handover() {
    let pool = ShardPool::builder().thread_cache(4).build().expect("settings are right");
    let (sender, receiver) = std::sync::mpsc::sync_channel(4);
    let other = thread::spawn(move || receiver.into_iter().for_each(drop));
    for _ in 0..10_000 {
        sender.send(pool.acquire(1000).expect("room")).expect("the other side lives");
    }
    drop(sender);
    other.join().expect("the thread ends well");
    let high = pool.stats().high_water;
    assert!((1..=24).contains(&high), "{high} at once, of six that can be");
}
