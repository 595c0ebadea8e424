//! Statistics that add up after every step of generated programs, with the feature.

use std::thread;
use std::time::Duration;

use bufshard::{Builder, ClassStats, ShardPool, ShardStats};
use buftest::lockstep::Lockstep;
use buftest::ops;
use buftest::ops::Op;

/// Asserts what `ShardStats` promises of a pool that no other thread uses.
#[track_caller]
fn add_up(pool: &ShardPool) -> ShardStats {
    let stats = pool.shard_stats();
    let out = |class: &ClassStats| {
        let idle = class.thread_idle + class.shard_idle;
        class.in_use as u64 + idle as u64 + class.discards + class.trims
    };
    for class in &stats.classes {
        assert_eq!(class.allocations + class.preallocations, out(class), "{class:?}");
    }
    let total = |count: fn(&ClassStats) -> u64| stats.classes.iter().map(count).sum::<u64>();
    let idle_bytes: usize =
        stats.classes.iter().map(|class| class.bytes * (class.thread_idle + class.shard_idle)).sum();
    assert_eq!(stats.idle_bytes, idle_bytes, "{stats:?}");
    assert_eq!(
        stats.reserved_bytes,
        stats.in_use_bytes + stats.idle_bytes + stats.overhead_bytes,
        "{stats:?}"
    );
    assert_eq!(stats.thread_idle as u64, total(|class| class.thread_idle as u64));
    assert_eq!(stats.shard_idle as u64, total(|class| class.shard_idle as u64));
    assert_eq!(stats.preallocations, total(|class| class.preallocations));
    assert_eq!(stats.trims, total(|class| class.trims));
    // A header for each buffer, and what goes into aligning it to a page: no less, and not much more.
    let buffers = stats.in_use + stats.thread_idle + stats.shard_idle;
    assert!(stats.overhead_bytes >= buffers * 16, "{stats:?}");
    assert!(stats.overhead_bytes <= buffers * (4096 + 64), "{stats:?}");
    let totals = pool.stats();
    let served = stats.thread_hits + stats.shard_hits + stats.allocations + stats.oversize;
    assert_eq!((totals.acquired, totals.fallbacks), (served, stats.oversize));
    assert_eq!((totals.in_use, totals.in_use_bytes), (stats.in_use, stats.in_use_bytes));
    assert_eq!((totals.idle_bytes, totals.reserved_bytes), (stats.idle_bytes, stats.reserved_bytes));
    stats
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
                    _ => lockstep.step(Op::decode(&mut buftest::bytes::Bytes::new(&bytes))),
                }
                add_up(&pool);
            }
            lockstep.drop_all();
            let stats = add_up(&pool);
            assert_eq!((stats.in_use, stats.in_use_bytes), (0, 0));
            pool.trim();
            let trimmed = add_up(&pool);
            assert_eq!((trimmed.reserved_bytes, trimmed.idle_bytes), (0, 0));
            let lately = trimmed.since(&stats);
            assert_eq!(lately.trims, (stats.thread_idle + stats.shard_idle) as u64);
            assert_eq!((lately.allocations, lately.discards, lately.preallocations), (0, 0, 0));
        }
    }
}

/// Of every program of the suite.
#[test]
fn after_programs() {
    let kit = buftest::Kit {
        make: || ShardPool::builder().thread_cache(1).shard_buffers(1).build().expect("settings are right"),
        is_fallback: |buf| buf.lease().is_fallback(),
        rejects: false,
        share: 1,
        trim: buftest::trials::trim,
    };
    let mut rng = fastrand::Rng::with_seed(3);
    for _ in 0..20 {
        let mut bytes = [0; 1024];
        rng.fill(&mut bytes);
        let mut bytes = buftest::bytes::Bytes::new(&bytes);
        let ops: Vec<_> = (0..100).map(|_| Op::decode(&mut bytes)).collect();
        ops::execute(&kit, &ops, rng.bool());
    }
}

/// Buffers that were made ahead, and what trims took, are counted as such, by class.
#[test]
fn made_ahead_and_trimmed() {
    let pool = ShardPool::builder().shards(1).shard_buffers(8).build().expect("settings are right");
    assert_eq!(pool.preallocate(5, 1000), Ok(5));
    let class = |pool: &ShardPool| {
        *pool.shard_stats().classes.iter().find(|class| class.bytes == 1024).expect("a class")
    };
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
    assert_eq!((after.since(&before).trims, after.since(&before).thread_hits), (5, 0));
    // A budget that others need is made by trimming what is idle.
    let pool = ShardPool::builder().max_bytes(100_000).build().expect("settings are right");
    drop(pool.acquire(40_000).expect("room"));
    drop(pool.acquire(70_000).expect("room is made"));
    let stats = add_up(&pool);
    assert_eq!((stats.trims, stats.discards, stats.allocations), (1, 0, 2));
}
