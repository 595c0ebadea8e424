//! Caches that grow with what their threads need, within bounds, and shrink again.

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use crate::totals;
use bufshard::{ShardBuf, ShardPool};

fn burst(pool: &ShardPool, count: usize, bytes: usize) -> Vec<ShardBuf> {
    (0..count).map(|_| pool.acquire(bytes).expect("room")).collect()
}

/// After some bursts of a size, the thread keeps all of it.
#[test]
fn bursts_are_kept_by_their_thread() {
    for (count, bytes) in [(2, 64), (5, 100), (64, 64), (64, 4096), (1000, 64), (1024, 4096), (30, 100_000)] {
        let pool = ShardPool::new().expect("settings are right");
        for _ in 0..24 {
            drop(burst(&pool, count, bytes));
        }
        let stats = totals(&pool);
        assert_eq!((stats.thread_idle, stats.shard_idle), (count, 0), "{count} of {bytes} bytes");
    }
}

/// In any order, and with sizes mixed.
#[test]
fn bursts_of_mixed_sizes_are_kept() {
    let pool = ShardPool::new().expect("settings are right");
    let mut rng = fastrand::Rng::with_seed(1);
    for _ in 0..60 {
        let mut bufs: Vec<_> =
            (0..300).map(|index| pool.acquire([64, 500, 1500, 4096][index % 4]).expect("room")).collect();
        rng.shuffle(&mut bufs);
        drop(bufs);
    }
    let stats = totals(&pool);
    assert_eq!((stats.thread_idle, stats.shard_idle), (300, 0));
}

/// The setting for one class of one thread, and that for all of all.
#[test]
fn bounds_hold() {
    // And the block that each thread keeps apart.
    for (thread_cache, most) in [(0, 0), (1, 1 + 1), (3, 3 + 1), (100, 100 + 1)] {
        let pool = ShardPool::builder().thread_cache(thread_cache).build().expect("settings are right");
        for _ in 0..24 {
            drop(burst(&pool, 200, 1000));
        }
        let idle = totals(&pool).thread_idle;
        assert!(idle <= most && (idle > 0) == (most > 0), "{idle} are kept with {thread_cache}");
    }
    const MIB: usize = 1 << 20;
    let pool = ShardPool::builder().max_cached_bytes(MIB).build().expect("settings are right");
    let (to_here, from_there) = mpsc::channel();
    let threads: Vec<_> = (0..8)
        .map(|_| {
            let (pool, to_here) = (pool.clone(), to_here.clone());
            let (go, wait) = mpsc::channel::<()>();
            let thread = thread::spawn(move || {
                for _ in 0..24 {
                    drop((burst(&pool, 100, 4096), burst(&pool, 10, 50_000)));
                }
                to_here.send(()).expect("the other side waits");
                let _ = wait.recv();
            });
            (thread, go)
        })
        .collect();
    threads.iter().for_each(|_| from_there.recv().expect("the threads end well"));
    let cached: usize = pool.class_stats().iter().map(|class| class.thread_idle * class.bytes).sum();
    assert!(cached <= MIB + 8 * (56 << 10), "{cached} bytes are in the caches");
    assert!(cached >= MIB / 4, "{cached} bytes: the bound was not reached");
    for (thread, go) in threads {
        drop(go);
        thread.join().expect("the thread ends well");
    }
    // What ended threads had room for is there for others.
    for _ in 0..24 {
        drop(burst(&pool, 200, 4096));
    }
    assert!(totals(&pool).thread_idle >= 200);
}

/// A thread that only acquires and one that only releases move many with each trip, which is seen
/// in what they keep.
#[test]
fn threads_that_only_take_or_give_grow_to_a_batch() {
    let pool = ShardPool::new().expect("settings are right");
    let (sender, receiver) = mpsc::sync_channel::<ShardBuf>(8);
    let giver = pool.clone();
    let (done, wait) = mpsc::channel::<()>();
    let consumer = thread::spawn(move || {
        receiver.into_iter().for_each(drop);
        let _ = wait.recv();
        drop(giver);
    });
    for _ in 0..100_000 {
        sender.send(pool.acquire(256).expect("room")).expect("the consumer lives");
    }
    drop(sender);
    let stats = pool.stats();
    // Some in the queue, a batch in each cache, and what waits in the shards between two trips.
    assert!(stats.reserved_bytes <= 200 * 400, "{stats:?}");
    #[cfg(feature = "stats")]
    {
        let stats = totals(&pool);
        let (thread_hits, others) = (stats.thread_hits, stats.shard_hits + stats.allocations);
        assert!(others * 16 <= thread_hits, "{others} trips for {thread_hits} requests");
    }
    drop(done);
    consumer.join().expect("the thread ends well");
}

/// Large buffers go from thread to thread one by one, so that those under way are few, and hot.
#[test]
fn large_buffers_are_handed_over_one_by_one() {
    const BYTES: usize = 64 << 10;
    let pool = ShardPool::new().expect("settings are right");
    let (sender, receiver) = mpsc::channel::<ShardBuf>();
    let (done, wait) = mpsc::channel::<()>();
    let consumer = thread::spawn(move || {
        for buf in receiver {
            drop(buf);
            done.send(()).expect("the producer waits");
        }
    });
    for _ in 0..1000 {
        sender.send(pool.acquire(BYTES).expect("room")).expect("the consumer lives");
        wait.recv().expect("the consumer lives");
    }
    let reserved = pool.stats().reserved_bytes;
    assert!(reserved <= 3 * (BYTES + 4096), "{reserved} bytes for one buffer at a time");
    drop(sender);
    consumer.join().expect("the thread ends well");
}

/// What a phase needed goes when the next one does not need it: half by half while the class is
/// used, all of it when it is not.
#[test]
fn magazines_shrink_with_their_traffic() {
    let pool = ShardPool::new().expect("settings are right");
    for _ in 0..24 {
        drop((burst(&pool, 1000, 1000), burst(&pool, 500, 200)));
    }
    assert_eq!(totals(&pool).thread_idle, 1500);
    for _ in 0..20 {
        drop(burst(&pool, 3, 1000));
        pool.trim_idle(Duration::ZERO);
    }
    let stats = totals(&pool);
    assert!((3..=8 + 1).contains(&stats.thread_idle), "{} are kept", stats.thread_idle);
    assert_eq!(stats.shard_idle, 0);
    // And again as before.
    for _ in 0..24 {
        drop(burst(&pool, 1000, 1000));
    }
    assert_eq!(totals(&pool).thread_idle, 1000);
}

/// What comes and goes stays, however often somebody looks.
#[test]
fn what_is_used_between_looks_is_not_freed() {
    let pool = ShardPool::new().expect("settings are right");
    for _ in 0..24 {
        drop(burst(&pool, 256, 1000));
    }
    let reserved = pool.stats().reserved_bytes;
    for _ in 0..50 {
        drop(burst(&pool, 256, 1000));
        pool.trim_idle(Duration::ZERO);
        let kept = pool.stats().reserved_bytes;
        assert!((reserved * 9 / 10..=reserved).contains(&kept), "what the burst takes stays: {kept}");
        assert!(totals(&pool).thread_idle >= 128, "half of it with the thread");
    }
}

/// A pool whose store of slots is full, and this thread's magazine of 5000 bytes in an array of
/// four since it found that; and those of its buffers that are out. Then the store is free again.
fn in_a_short_array() -> (ShardPool, Vec<ShardBuf>) {
    let pool = ShardPool::new().expect("settings are right");
    let mut held = burst(&pool, 203, 5000);
    // Of the store, each of 24 classes takes what its first slots are.
    for bytes in (4..10).flat_map(|doubling| (5..9).map(move |quarter| quarter << doubling)) {
        drop(burst(&pool, 2, bytes));
    }
    // Without slots, they go to the shards. The third that comes back is the third trip.
    held.truncate(200);
    held.extend(burst(&pool, 3, 5000));
    (pool, held)
}

/// A release moves a magazine out of an array, into the store: the array goes when nobody is in the
/// cache any more.
#[test]
fn magazines_leave_arrays_for_the_store() {
    let (pool, mut held) = in_a_short_array();
    pool.trim_idle(Duration::ZERO);
    drop(held.pop());
    pool.trim_idle(Duration::ZERO);
    drop(held);
    let idle = totals(&pool).thread_idle;
    assert!((1..=32 + 1).contains(&idle), "{idle} are kept");
    drop(burst(&pool, 203, 5000));
    pool.trim();
    assert_eq!(pool.stats().reserved_bytes, 0);
}

/// A magazine that its bursts do not fit into has trips between any two looks, and keeps what it
/// has.
#[test]
fn what_is_too_small_is_not_halved() {
    let pool = ShardPool::builder().thread_cache(32).build().expect("settings are right");
    for _ in 0..24 {
        drop(burst(&pool, 64, 1000));
    }
    for look in 0..8 {
        pool.trim_idle(Duration::ZERO);
        assert_eq!(totals(&pool).thread_idle, 32, "at look {look}");
        drop(burst(&pool, 64, 1000));
    }
}

/// One that was halved has trips, and so is not halved at the next look; one without is.
#[test]
fn each_look_counts_the_trips_before_it() {
    let pool = ShardPool::new().expect("settings are right");
    let idle = || totals(&pool).thread_idle - 1;
    for _ in 0..24 {
        drop(burst(&pool, 129, 1000));
    }
    pool.trim_idle(Duration::ZERO);
    let mut before = idle();
    for look in 0..2 {
        // No trips.
        drop(burst(&pool, 9, 1000));
        pool.trim_idle(Duration::ZERO);
        assert_eq!(idle(), before - before / 2, "at look {look}");
        before = idle();
        // One at least.
        drop(burst(&pool, before + 2, 1000));
        before = idle();
        pool.trim_idle(Duration::ZERO);
        assert_eq!(idle(), before, "at look {look}, with a trip");
    }
}

/// What `trim` empties has no slots any more, so that other threads may have as many.
#[test]
fn trimmed_caches_give_their_room_to_others() {
    let pool = ShardPool::builder().max_cached_bytes(64 << 10).build().expect("settings are right");
    let (to_here, from_there) = mpsc::channel();
    let (go, wait) = mpsc::channel::<()>();
    let theirs = pool.clone();
    let other = thread::spawn(move || {
        for _ in 0..24 {
            drop(burst(&theirs, 16, 4096));
        }
        to_here.send(()).expect("the other side waits");
        wait.recv().expect("the other side sends");
    });
    from_there.recv().expect("the other side sends");
    assert_eq!(totals(&pool).thread_idle, 16, "all that there is room for");
    let bursts = || (0..24).for_each(|_| drop(burst(&pool, 16, 4096)));
    bursts();
    // One that is apart.
    assert_eq!(totals(&pool).thread_idle, 16 + 1, "there is none left");
    pool.trim();
    bursts();
    assert_eq!(totals(&pool).thread_idle, 16, "it is this thread's");
    go.send(()).expect("the other side waits");
    other.join().expect("the thread ends well");
}

/// The memory of the buffer that a thread took last goes through another thread and comes back as
/// one of a smaller class: its place says nothing of its class.
#[test]
fn a_block_in_the_place_of_another_is_of_its_class() {
    const LARGE: usize = 128 << 10;
    const SMALL: usize = 64 << 10;
    // The headers are beside the pages, and the shards keep nothing.
    let builder = ShardPool::builder().alignment(4096).shard_buffers(0);
    let pool = builder.build().expect("settings are right");
    // One is apart, and one in the magazine.
    drop((pool.acquire(LARGE), pool.acquire(LARGE)));
    let _apart = pool.acquire(LARGE).expect("room");
    let last = pool.acquire(LARGE).expect("room");
    let place = last.as_ptr().addr();
    let there = pool.clone();
    let other = thread::spawn(move || {
        drop(last);
        there.acquire(SMALL).expect("room")
    });
    let small = other.join().expect("the thread ends well");
    assert_eq!(small.as_ptr().addr(), place, "the trial shows nothing");
    drop(small);
    for large in [(); 2].map(|()| pool.acquire(LARGE).expect("room")) {
        assert_ne!(large.as_ptr().addr(), place, "there is no room for it");
    }
    assert_eq!(pool.acquire(SMALL).expect("room").as_ptr().addr(), place);
}

/// The block that a thread took last comes back when others are where it was.
#[test]
fn the_block_taken_last_finds_its_place_taken() {
    const BYTES: usize = 1500;
    let pool = ShardPool::new().expect("settings are right");
    pool.preallocate(256, BYTES).expect("room");
    let acquire = || pool.acquire(BYTES).expect("room");
    let idle = || pool.class_stats().iter().map(|class| class.thread_idle).sum::<usize>();
    drop([(); 16].map(|()| acquire()));
    let mut held = Vec::new();
    while idle() > 0 {
        held.push(acquire());
    }
    // The last in the magazine. Behind it come others from the shards.
    let last = held.pop().expect("the thread had some");
    held.push(acquire());
    assert!(idle() > 1, "the trial shows nothing");
    drop(last);
    held.extend((0..idle()).map(|_| acquire()));
    let mut places: Vec<_> = held.iter().map(|buf| buf.as_ptr().addr()).collect();
    places.sort_unstable();
    assert!(places.is_sorted_by(|one, next| one < next), "a block was handed out twice");
}

/// Blocks that come and go one by one are put apart again after a while, in place of the one of
/// another class that is there: both are in the cache still, once.
#[test]
fn what_is_apart_goes_to_its_magazine() {
    const SIZES: [usize; 2] = [1000, 5000];
    let pool = ShardPool::new().expect("settings are right");
    let idle = || {
        let classes = pool.class_stats();
        SIZES.map(|bytes| classes.iter().find(|class| class.bytes >= bytes).map(|class| class.thread_idle))
    };
    for _ in 0..4 {
        for bytes in SIZES {
            drop([(); 2].map(|()| pool.acquire(bytes).expect("room")));
        }
    }
    let before = idle();
    for bytes in SIZES.into_iter().chain(SIZES) {
        let place = pool.acquire(bytes).expect("room").as_ptr().addr();
        for turn in 0..600 {
            assert_eq!(pool.acquire(bytes).expect("room").as_ptr().addr(), place, "in turn {turn}");
            assert_eq!(idle(), before, "behind turn {turn}");
        }
    }
    pool.trim();
    assert_eq!(pool.stats().reserved_bytes, 0);
}

/// Caches that were grown end before their pool and with it. (What they leave with the allocator is
/// for the ledger to see.)
#[test]
fn caches_of_any_size_end() {
    let pool = ShardPool::new().expect("settings are right");
    for _ in 0..4 {
        thread::scope(|scope| {
            let ended = scope.spawn(|| {
                for _ in 0..24 {
                    drop(burst(&pool, 500, 100));
                }
            });
            assert!(ended.join().is_ok());
        });
    }
    // Ended threads left their blocks to the shards, and their slots to nobody.
    assert_eq!(totals(&pool).thread_idle, 0);
    for _ in 0..24 {
        drop(burst(&pool, 500, 100));
    }
    drop(pool);
}

/// The sizes of the classes from 64 bytes to 64 KiB.
#[cfg(feature = "stats")]
fn sizes() -> Vec<usize> {
    let quarters = (6..16).flat_map(|power| (4..8).map(move |quarters| quarters << (power - 2)));
    quarters.chain([64 << 10]).collect()
}

/// A thread that uses many classes has slots for each, also for those that find the cache's own
/// slots given out.
#[test]
#[cfg(feature = "stats")]
fn each_of_many_classes_is_served_by_the_cache() {
    let (pool, sizes) = (ShardPool::new().expect("settings are right"), sizes());
    assert_eq!(sizes.len(), 41);
    let round = || sizes.iter().for_each(|&bytes| drop(pool.acquire(bytes).expect("room")));
    (0..64).for_each(|_| round());
    let hits = || pool.class_stats().iter().map(|class| class.shard_hits).collect::<Vec<_>>();
    let before = hits();
    (0..64).for_each(|_| round());
    assert_eq!(hits(), before, "by class: the shards served, not the cache");
}

/// The same, one class after the other, and several at once.
#[test]
#[cfg(feature = "stats")]
fn each_of_many_classes_in_phases_is_served_by_the_cache() {
    let (pool, sizes) = (ShardPool::new().expect("settings are right"), sizes());
    let mut rng = fastrand::Rng::with_seed(15);
    for phase in 0..20 {
        let some: Vec<_> = sizes.iter().copied().filter(|_| rng.bool()).collect();
        let most = 1 + phase % 3;
        let round = || some.iter().for_each(|&bytes| drop(burst(&pool, most, bytes)));
        (0..64).for_each(|_| round());
        let numbers = || (totals(&pool).shard_hits, totals(&pool).allocations);
        let before = numbers();
        (0..16).for_each(|_| round());
        assert_eq!(numbers(), before, "phase {phase}, {} classes", some.len());
    }
}
