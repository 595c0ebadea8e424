//! Memory goes back: resident memory after a burst, caches of idle threads, ages.

use std::sync::mpsc;
#[cfg(target_os = "linux")]
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::Duration;

use bufshard::ShardPool;
#[cfg(target_os = "linux")]
use testkit::process::{alone, resident_bytes, steady_allocator};

const MIB: usize = 1 << 20;
#[cfg(target_os = "linux")]
const LIMIT: Duration = Duration::from_secs(120);

/// A gibibyte over eight threads, half of which do nothing afterwards; then `trim`.
#[cfg(target_os = "linux")]
fn burst(settings: fn() -> ShardPool, what: fn(&ShardPool)) {
    const THREADS: usize = 8;
    /// Bytes of a thread.
    const MANY: usize = 1024 * MIB / THREADS;
    steady_allocator();
    let pool = settings();
    let (barrier, over) = (Arc::new(Barrier::new(THREADS + 1)), Arc::new(Barrier::new(THREADS / 2 + 1)));
    let threads: Vec<_> = (0..THREADS)
        .map(|index| {
            let (pool, barrier, over) = (pool.clone(), Arc::clone(&barrier), Arc::clone(&over));
            thread::spawn(move || {
                let sizes = [64, 1500, 64 << 10, MIB, 5 * MIB];
                let take = |total: usize| {
                    let mut bufs = Vec::new();
                    let mut bytes = 0;
                    while bytes < total {
                        let size = sizes[bufs.len() % sizes.len()];
                        let mut buf = pool.acquire(size).expect("room");
                        buf.resize(size, 1).expect("asked for");
                        bytes += size;
                        bufs.push(buf);
                    }
                    bufs
                };
                // What the thread, the allocator and the program itself set up, the code that a
                // burst needs among it.
                drop(take(MANY / 16));
                barrier.wait();
                barrier.wait();
                let bufs = take(MANY);
                barrier.wait();
                barrier.wait();
                drop(bufs);
                barrier.wait();
                barrier.wait();
                // Half of them go on at once, half do nothing at all.
                if index % 2 == 0 {
                    for _ in 0..1000 {
                        drop(pool.acquire(1500));
                    }
                    over.wait();
                }
                barrier.wait();
                drop(pool.acquire(1500));
            })
        })
        .collect();
    barrier.wait();
    pool.trim();
    let before = resident_bytes();
    barrier.wait();
    barrier.wait();
    let during = resident_bytes();
    assert!(during >= before + 1024 * MIB, "{before} bytes before, {during} in the burst");
    barrier.wait();
    barrier.wait();
    let kept = resident_bytes();
    // How much threads keep that release at once is up to the scheduler.
    assert!(kept >= before + 8 * MIB, "{kept} bytes: nothing was left for `trim` to do");
    barrier.wait();
    over.wait();
    what(&pool);
    let after = resident_bytes();
    let reserved = pool.stats().reserved_bytes;
    assert!(
        after <= before + 4 * MIB,
        "{before} bytes before, {during} in the burst, {after} after, {reserved} of them in the pool"
    );
    barrier.wait();
    threads.into_iter().for_each(|thread| thread.join().expect("threads end well"));
}

/// Much is kept for `trim` to find.
#[cfg(target_os = "linux")]
fn keeping() -> ShardPool {
    let builder = ShardPool::builder().thread_cache(16).shards(4).shard_buffers(64);
    builder.build().expect("settings are right")
}

#[cfg(target_os = "linux")]
#[test]
fn t12_trim_after_a_burst() {
    alone(module_path!(), "t12_trim_after_a_burst", LIMIT, || burst(keeping, ShardPool::trim));
}

#[cfg(target_os = "linux")]
#[test]
fn t12_trim_to_nothing_after_a_burst() {
    alone(module_path!(), "t12_trim_to_nothing_after_a_burst", LIMIT, || {
        burst(keeping, |pool| pool.trim_to(0))
    });
}

/// What is used stays, what is not used goes, in the cache of a thread that does nothing too.
#[test]
fn ages() {
    const NONE: Duration = Duration::ZERO;
    let pool = ShardPool::new().expect("settings are right");
    let (to_here, from_there) = mpsc::channel();
    let (go, wait) = mpsc::channel::<()>();
    let theirs = pool.clone();
    let other = thread::spawn(move || {
        drop(theirs.acquire(MIB));
        to_here.send(()).expect("the other side waits");
        wait.recv().expect("the other side sends");
    });
    from_there.recv().expect("the other side sends");
    // Sixteen, most of which go to the shards.
    drop([(); 16].map(|()| pool.acquire(100_000).expect("room")));
    drop(pool.acquire(5000));
    let all = pool.stats().reserved_bytes;
    pool.trim_idle(Duration::from_secs(3600));
    pool.trim_idle(Duration::from_secs(3600));
    assert_eq!(pool.stats().reserved_bytes, all, "not old enough");
    drop(pool.acquire(5000));
    pool.trim_idle(NONE);
    // And the block apart, which the other's use has turned off: it goes at the next look.
    let kept = pool.stats().reserved_bytes;
    assert!((5000..160 << 10).contains(&kept), "{kept} bytes are kept: what was used since");
    pool.trim_idle(NONE);
    assert_eq!(pool.stats().reserved_bytes, 0);
    go.send(()).expect("the other side waits");
    other.join().expect("the thread ends well");
}

/// What is needed between two looks is kept: in the shards, and as free pages.
#[test]
fn ages_of_shards() {
    for bytes in [64 << 10, MIB] {
        let pool = ShardPool::builder().thread_cache(1).shards(1).shard_buffers(8).build().expect("right");
        let burst = |count| drop((0..count).map(|_| pool.acquire(bytes).expect("room")).collect::<Vec<_>>());
        burst(9);
        burst(9);
        assert!(pool.stats().reserved_bytes >= 9 * bytes);
        pool.trim_idle(Duration::ZERO);
        burst(4);
        pool.trim_idle(Duration::ZERO);
        let kept = pool.stats().reserved_bytes;
        assert!((4 * bytes..5 * bytes + MIB / 4).contains(&kept), "{kept} bytes are kept for four");
    }
}

#[test]
fn trim_to_keeps_some() {
    let pool = ShardPool::new().expect("settings are right");
    drop([(); 12].map(|()| pool.acquire(MIB).expect("room")));
    let held = pool.acquire(3 * MIB).expect("room");
    pool.trim_to(8 * MIB);
    let kept = pool.stats().reserved_bytes;
    assert!((6 * MIB..=8 * MIB).contains(&kept), "{kept} bytes are kept");
    pool.trim_to(0);
    let kept = pool.stats().reserved_bytes;
    assert!((3 * MIB..4 * MIB).contains(&kept), "{kept} bytes are kept: what is out");
    drop(held);
    pool.trim();
    assert_eq!(pool.stats().reserved_bytes, 0);
}

/// More at once than the shards have room for, however much each has.
#[test]
fn nothing_is_lost_in_full_shards() {
    for (thread_cache, shard_buffers) in [(0, 3), (1, 1), (2, 3), (4, 0), (4, 9), (8, 3)] {
        let builder = ShardPool::builder().thread_cache(thread_cache).shards(4).shard_buffers(shard_buffers);
        let pool = builder.build().expect("settings are right");
        for count in [1, 7, 64, 64, 3] {
            drop((0..count).map(|_| pool.acquire(1500).expect("room")).collect::<Vec<_>>());
        }
        // And the one that a thread keeps apart.
        let most = 4 * shard_buffers + thread_cache + usize::from(thread_cache > 0);
        let kept = pool.class_stats().iter().map(|class| class.thread_idle + class.shard_idle).sum::<usize>();
        assert!(kept <= most, "{kept} of {most} are kept with {thread_cache} and {shard_buffers}");
        pool.trim();
        assert_eq!(pool.stats().reserved_bytes, 0, "with {thread_cache} and {shard_buffers}");
    }
}

/// Other pools' caches on the same threads are left alone.
#[test]
fn the_end_of_a_pool_is_its_own() {
    let (one, two) = (ShardPool::new().expect("right"), ShardPool::new().expect("right"));
    let address = two.acquire(5000).expect("room").as_ptr();
    drop(one.acquire(5000));
    one.trim();
    drop(one);
    assert_eq!(two.acquire(5000).expect("room").as_ptr(), address);
}

#[test]
fn preallocated() {
    let builder = ShardPool::builder().shards(1).shard_buffers(16).thread_cache(4);
    let pool = builder.build().expect("settings are right");
    assert_eq!(pool.preallocate(6, MIB), Ok(6));
    let reserved = pool.stats().reserved_bytes;
    assert!((6 * MIB..7 * MIB).contains(&reserved), "{reserved}");
    drop([(); 6].map(|()| pool.acquire(MIB).expect("room")));
    assert_eq!(pool.stats().reserved_bytes, reserved, "served from what there was");
    assert_eq!(pool.preallocate(100, 1000), Ok(16), "what the shard has room for");
    assert_eq!(pool.preallocate(0, 1000), Ok(0));
    let limit = pool.largest_pooled();
    for size in [0, limit + 1, usize::MAX] {
        let refused = bufshard::bufcore::AcquireError::TooLarge { requested: size, limit };
        assert_eq!(pool.preallocate(1, size), Err(refused));
    }
}

/// No more are made, and written to, than are kept.
#[cfg(target_os = "linux")]
#[test]
fn resident_preallocated() {
    use testkit::process::status_bytes;

    const BYTES: usize = 64 * MIB;
    alone(module_path!(), "resident_preallocated", LIMIT, || {
        let pool = ShardPool::builder().thread_cache(0).shards(1).build().expect("settings are right");
        let peak = || status_bytes("VmHWM");
        let before = peak();
        assert_eq!(pool.preallocate(2, BYTES / 2 - 8192), Ok(2));
        let grown = peak() - before;
        assert!((BYTES * 7 / 8..BYTES * 5 / 4).contains(&grown), "{grown} bytes were resident");
        assert!(pool.page_stats().dirty_bytes > BYTES / 3, "they are there for requests");
        let pool = ShardPool::builder().thread_cache(2).shards(1).shard_buffers(3).build().expect("right");
        assert_eq!(pool.preallocate(32, 64 << 10), Ok(3));
        assert_eq!(pool.preallocate(32, 64 << 10), Ok(0));
    });
}

/// What a look finds empty it does not write to: the shards of a pool take no memory until they are
/// used.
#[cfg(target_os = "linux")]
#[test]
fn resident_looks() {
    const POOLS: usize = 16;
    alone(module_path!(), "resident_looks", LIMIT, || {
        steady_allocator();
        let pool = || ShardPool::builder().shards(64).build().expect("settings are right");
        let pools: Vec<_> = (0..POOLS).map(|_| pool()).collect();
        pools.iter().for_each(|pool| drop(pool.acquire(100)));
        let before = resident_bytes();
        for _ in 0..3 {
            pools.iter().for_each(|pool| pool.trim_idle(Duration::ZERO));
        }
        let each = resident_bytes().saturating_sub(before) / POOLS;
        assert!(each < 64 << 10, "{each} bytes of each pool's shards are resident");
    });
}

/// Over a budget, no more are allocated than there is room for, none makes room for another, and
/// the number is that of those kept.
#[test]
fn preallocated_within_a_budget() {
    for (wanted, size) in [(100, 10_000), (20, 10_000), (9, 10_000), (3, 60_000)] {
        let pool = ShardPool::builder().max_bytes(100_000).build().expect("settings are right");
        let other = pool.acquire(5000).expect("room");
        let address = other.as_ptr();
        drop(other);
        let kept = pool.preallocate(wanted, size).expect("there is room for some");
        let reserved = pool.stats().reserved_bytes;
        assert!(kept < wanted || kept * size <= 100_000, "{kept} of {size} bytes");
        assert!(
            kept * size <= reserved && reserved <= 100_000,
            "{kept} of {size} bytes, and {reserved} in all"
        );
        assert_eq!(pool.acquire(5000).expect("idle").as_ptr(), address, "another one made room");
        let bufs: Vec<_> = (0..kept).map(|_| pool.acquire(size).expect("kept")).collect();
        assert_eq!(pool.stats().reserved_bytes, reserved, "those are not new");
        drop(bufs);
    }
}
