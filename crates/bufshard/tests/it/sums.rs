//! Statistics that add up after every step of generated programs, with the feature.

use std::thread;
use std::time::Duration;

use bufshard::{Builder, ClassStats, PoolStats, ShardPool};
use testkit::lockstep::Lockstep;
use testkit::ops;
use testkit::ops::Op;

use crate::totals;

/// Asserts what the statistics promise of a pool that no other thread uses.
#[track_caller]
fn add_up(pool: &ShardPool) -> (PoolStats, ClassStats) {
    let (stats, sum) = (pool.stats(), totals(pool));
    for class in pool.class_stats() {
        let idle = class.thread_idle + class.shard_idle;
        let out = class.in_use as u64 + idle as u64 + class.discards + class.trims;
        assert_eq!(class.allocations + class.preallocations, out, "{class:?}");
    }
    let pages = pool.page_stats();
    assert_eq!(stats.idle_bytes - pages.dirty_bytes - pages.free_block_bytes, sum.bytes, "{stats:?}");
    assert_eq!(stats.reserved_bytes, pages.resident_bytes);
    // A header for each buffer, and what goes into aligning it to a page: no less, and not much more.
    let buffers = stats.in_use + sum.thread_idle + sum.shard_idle;
    let overhead = stats.reserved_bytes - stats.in_use_bytes - stats.idle_bytes;
    assert!(overhead >= buffers * 16, "{stats:?}");
    assert!(overhead <= buffers * 8192, "{stats:?}");
    let served = sum.thread_hits + sum.shard_hits + sum.allocations + stats.fallbacks;
    assert_eq!(stats.acquired, served);
    (stats, sum)
}

/// Small in all ways, and in some.
fn builders() -> [Builder; 4] {
    let small = Builder::new().thread_cache(1).shards(1).shard_buffers(2).largest_pooled(20_000);
    let apart = Builder::new().thread_cache(0).shards(2).shard_buffers(1).smallest_pooled(100);
    [Builder::new(), small, apart, small.max_bytes(100_000)]
}

#[test]
fn after_every_step() {
    for (seed, builder) in (0..).zip(builders()) {
        for round in 0..2 {
            let mut rng = fastrand::Rng::with_seed(seed * 100 + round);
            let pool = builder.build().expect("settings are right");
            let mut lockstep = Lockstep::over(pool.clone(), true);
            // Other threads may have what is idle.
            lockstep.set_refusal(|error, asked| assert!(asked > 0, "{error}"));
            for _ in 0..200 {
                let mut bytes = [0; 8];
                rng.fill(&mut bytes);
                match rng.u8(..32) {
                    0 => pool.trim(),
                    1 => pool.trim_to(rng.usize(..200_000)),
                    2 => pool.trim_idle(Duration::ZERO),
                    3 => drop(pool.preallocate(rng.usize(..8), rng.usize(1..5000))),
                    4 => drop(pool.acquire_timeout(rng.usize(..50_000), Duration::ZERO)),
                    5 => {
                        // A thread that ends leaves what it kept to the shards.
                        let (pool, sizes) = (&pool, [rng.usize(..3000), rng.usize(..3000)]);
                        let work = move || sizes.map(|bytes| pool.acquire(bytes).map(drop).is_ok());
                        thread::scope(|scope| {
                            let ended = scope.spawn(work).join();
                            assert!(ended.is_ok());
                        });
                    }
                    _ => lockstep.step(Op::decode(&mut testkit::bytes::Bytes::new(&bytes))),
                }
                add_up(&pool);
            }
            lockstep.drop_all();
            let (stats, sum) = add_up(&pool);
            assert_eq!((stats.in_use, stats.in_use_bytes), (0, 0));
            pool.trim();
            let (trimmed, now) = add_up(&pool);
            assert_eq!((trimmed.reserved_bytes, trimmed.idle_bytes), (0, 0));
            assert_eq!(now.trims - sum.trims, (sum.thread_idle + sum.shard_idle) as u64);
            let others = |sum: ClassStats| (sum.allocations, sum.discards, sum.preallocations);
            assert_eq!(others(now), others(sum));
        }
    }
}

/// Of every program of the suite.
#[test]
fn after_programs() {
    let kit = testkit::Kit {
        make: || ShardPool::builder().thread_cache(1).shard_buffers(1).build().expect("settings are right"),
        is_fallback: |buf| buf.lease().is_fallback(),
        rejects: false,
        share: 1,
        trim: testkit::trials::trim,
    };
    let mut rng = fastrand::Rng::with_seed(3);
    for _ in 0..20 {
        let mut bytes = [0; 1024];
        rng.fill(&mut bytes);
        let mut bytes = testkit::bytes::Bytes::new(&bytes);
        let ops: Vec<_> = (0..100).map(|_| Op::decode(&mut bytes)).collect();
        ops::execute(&kit, &ops, rng.bool());
    }
}

/// Buffers that were made ahead, and what trims took, are counted as such, by class.
#[test]
fn made_ahead_and_trimmed() {
    let pool = ShardPool::builder().shards(1).shard_buffers(8).build().expect("settings are right");
    assert_eq!(pool.preallocate(5, 1000), Ok(5));
    let class =
        |pool: &ShardPool| *pool.class_stats().iter().find(|class| class.bytes == 1024).expect("a class");
    let stats = class(&pool);
    assert_eq!((stats.preallocations, stats.allocations, stats.shard_idle, stats.trims), (5, 0, 5, 0));
    drop(pool.acquire(1000).expect("room"));
    add_up(&pool);
    let before = class(&pool);
    assert_eq!((before.thread_idle + before.shard_idle, before.allocations), (5, 0));
    pool.trim();
    add_up(&pool);
    let after = class(&pool);
    assert_eq!((after.thread_idle, after.shard_idle, after.trims), (0, 0, 5));
    assert_eq!((after.trims - before.trims, after.thread_hits), (5, before.thread_hits));
    // A budget that others need is made by trimming what is idle.
    let pool = ShardPool::builder().max_bytes(120_000).build().expect("settings are right");
    drop(pool.acquire(40_000).expect("room"));
    drop(pool.acquire(70_000).expect("room is made"));
    let (_, sum) = add_up(&pool);
    assert_eq!((sum.trims, sum.discards, sum.allocations), (1, 0, 2));
}
