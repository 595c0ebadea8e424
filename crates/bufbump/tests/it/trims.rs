//! `trim_idle`: what was not needed between two looks goes, what comes and goes stays.

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use bufbump::bufcore::Buf;
use bufbump::{BumpLease, BumpPool};

const PAGE: usize = 4096;
/// A shard of so many bytes has a page.
const SHARD: usize = PAGE - 64;
const MIB: usize = 1 << 20;
/// A buffer of so many bytes has as many pages as a mebibyte.
const LARGE: usize = MIB - 64;
const NONE: Duration = Duration::ZERO;

fn pool() -> BumpPool {
    BumpPool::builder().shard_size(SHARD).build().expect("settings are right")
}

fn take(pool: &BumpPool, bytes: usize) -> Buf<BumpLease> {
    pool.acquire(bytes).expect("the allocator has room")
}

/// Takes `count` buffers at once.
fn burst(pool: &BumpPool, count: usize, bytes: usize) {
    drop((0..count).map(|_| take(pool, bytes)).collect::<Vec<_>>());
}

#[test]
fn ages() {
    let pool = pool();
    burst(&pool, 4, LARGE);
    let all = pool.stats().reserved_bytes;
    assert_eq!(all, 4 * MIB);
    pool.trim_idle(Duration::from_secs(3600));
    pool.trim_idle(Duration::from_secs(3600));
    assert_eq!(pool.stats().reserved_bytes, all, "not old enough");
    burst(&pool, 3, LARGE);
    pool.trim_idle(NONE);
    assert_eq!(pool.stats().reserved_bytes, 3 * MIB, "three were needed");
    for _ in 0..10 {
        burst(&pool, 1, LARGE);
        pool.trim_idle(NONE);
    }
    assert_eq!(pool.stats().reserved_bytes, MIB, "what comes and goes stays");
    pool.trim_idle(NONE);
    assert_eq!(pool.stats().reserved_bytes, 0);
    burst(&pool, 1, LARGE);
    assert_eq!(pool.stats().reserved_bytes, MIB, "it continues");
}

/// Of the shards that the pool keeps, those stay that were needed.
#[test]
fn ages_of_shards() {
    let pool = pool();
    let elsewhere = |count| {
        let pool = pool.clone();
        thread::spawn(move || burst(&pool, count, SHARD)).join().expect("the thread ends well");
    };
    elsewhere(9);
    assert_eq!(pool.stats().reserved_bytes, 9 * PAGE);
    pool.trim_idle(NONE);
    assert_eq!(pool.stats().reserved_bytes, 9 * PAGE, "noted");
    elsewhere(4);
    pool.trim_idle(NONE);
    assert_eq!(pool.stats().reserved_bytes, 4 * PAGE, "what was needed");
    elsewhere(2);
    elsewhere(3);
    pool.trim_idle(NONE);
    assert_eq!(pool.stats().reserved_bytes, 3 * PAGE, "the most at once");
    pool.trim_idle(NONE);
    assert_eq!(pool.stats().reserved_bytes, 0);
}

/// A thread that does nothing any more is not stopped: its spares go, and what it
/// carves stays. One that continues keeps what it uses.
#[test]
fn threads_that_do_nothing() {
    let pool = pool();
    let ((to_here, from_there), (go, wait)) = (mpsc::channel(), mpsc::channel::<bool>());
    let theirs = pool.clone();
    let other = thread::spawn(move || {
        let work = || {
            burst(&theirs, 4, SHARD);
            drop(take(&theirs, LARGE));
        };
        work();
        to_here.send(()).expect("the other side waits");
        while wait.recv() == Ok(true) {
            work();
            to_here.send(()).expect("the other side waits");
        }
    });
    from_there.recv().expect("the other side sends");
    let all = 4 * PAGE + MIB;
    assert_eq!(pool.stats().reserved_bytes, all);
    for _ in 0..3 {
        pool.trim_idle(NONE);
        go.send(true).expect("the other side waits");
        from_there.recv().expect("the other side sends");
    }
    #[cfg(feature = "stats")]
    assert_eq!(pool.stats().fresh, 5, "nothing went that was used");
    assert_eq!(pool.stats().reserved_bytes, all);
    pool.trim_idle(NONE);
    pool.trim_idle(NONE);
    assert_eq!(pool.stats().reserved_bytes, PAGE, "what it carves");
    go.send(true).expect("the other side waits");
    from_there.recv().expect("the other side sends");
    assert_eq!(pool.stats().reserved_bytes, all, "it continues");
    go.send(false).expect("the other side waits");
    other.join().expect("the thread ends well");
    pool.trim_idle(NONE);
    pool.trim_idle(NONE);
    assert_eq!(pool.stats().reserved_bytes, 0, "what a thread left");
}

/// What is out is not touched, and its piece is as good as before.
#[test]
fn what_is_out_stays() {
    let pool = pool();
    let mut held = take(&pool, LARGE);
    held.extend_from_slice(b"held").expect("room");
    (0..5).for_each(|_| pool.trim_idle(NONE));
    assert_eq!((&held[..], pool.stats().reserved_bytes), (&b"held"[..], MIB));
    let address = held.as_ptr();
    drop(held);
    assert_eq!(take(&pool, LARGE).as_ptr(), address);
}

/// Sizes that alternate on one thread, both between any two looks.
#[test]
fn sizes_that_alternate() {
    let pool = pool();
    // With 32 bits, addresses are reserved as they are needed, and the sizes may be apart.
    let most = if cfg!(target_pointer_width = "32") { 4 * MIB } else { 3 * MIB };
    for round in 0..5 {
        drop(take(&pool, LARGE));
        drop(take(&pool, 3 * MIB - 64));
        pool.trim_idle(NONE);
        let reserved = pool.stats().reserved_bytes;
        assert!((3 * MIB..=most).contains(&reserved), "round {round}, in the same pages: {reserved}");
    }
    pool.trim_idle(NONE);
    pool.trim_idle(NONE);
    assert_eq!(pool.stats().reserved_bytes, 0);
}

/// A piece whose buffer was out at the last look is in use until its release.
#[test]
fn what_was_out_at_the_last_look_stays() {
    let pool = pool();
    let held = take(&pool, LARGE);
    pool.trim_idle(NONE);
    pool.trim_idle(NONE);
    drop(held);
    pool.trim_idle(NONE);
    assert_eq!(pool.stats().reserved_bytes, MIB, "in use a moment ago");
    pool.trim_idle(NONE);
    assert_eq!(pool.stats().reserved_bytes, 0);
}

/// A thread that makes many shards full, whose buffers another thread releases, and that sleeps
/// then, or continues with the shard that it carves.
fn released_elsewhere(what: impl FnOnce(&BumpPool)) {
    const COUNT: usize = 100;
    let pool = pool();
    let ((to_here, from_there), (go, wait)) = (mpsc::channel(), mpsc::channel::<()>());
    let theirs = pool.clone();
    let other = thread::spawn(move || {
        let bufs: Vec<_> = (0..COUNT).map(|_| take(&theirs, SHARD)).collect();
        to_here.send((bufs, 0)).expect("the other side waits");
        wait.recv().expect("the other side sends");
        let bufs: Vec<_> = (0..COUNT).map(|_| take(&theirs, SHARD)).collect();
        let reserved = theirs.stats().reserved_bytes;
        to_here.send((bufs, reserved)).expect("the other side waits");
        wait.recv().expect("the other side sends");
    });
    let (mut bufs, _) = from_there.recv().expect("the other side sends");
    let last = bufs.split_off(COUNT / 2);
    drop(bufs);
    assert_eq!(pool.stats().reserved_bytes, COUNT * PAGE);
    pool.trim_idle(NONE);
    assert_eq!(pool.stats().reserved_bytes, COUNT * PAGE, "noted");
    drop(last);
    what(&pool);
    go.send(()).expect("the other side waits");
    // It continues, with all that it needs and no more.
    let (bufs, reserved) = from_there.recv().expect("the other side sends");
    assert_eq!(reserved, COUNT * PAGE);
    drop(bufs);
    go.send(()).expect("the other side waits");
    other.join().expect("the thread ends well");
    pool.trim();
    assert_eq!(pool.stats().reserved_bytes, 0);
}

/// The shards go while their thread sleeps, except for the one that it carves.
#[test]
fn what_others_released_goes() {
    released_elsewhere(|pool| {
        pool.trim_idle(NONE);
        assert_eq!(pool.stats().reserved_bytes, 50 * PAGE, "half were back at the first look");
        pool.trim_idle(NONE);
        assert_eq!(pool.stats().reserved_bytes, PAGE);
    });
    released_elsewhere(|pool| {
        pool.trim();
        assert_eq!(pool.stats().reserved_bytes, PAGE);
        pool.trim_idle(NONE);
        pool.trim_idle(NONE);
        assert_eq!(pool.stats().reserved_bytes, PAGE);
    });
}

/// Threads at work, and one that looks all the time.
#[test]
fn looks_amid_the_traffic() {
    let pool = pool();
    thread::scope(|scope| {
        let workers: Vec<_> = (0..3_u8)
            .map(|index| {
                let pool = &pool;
                scope.spawn(move || {
                    let mut rng = fastrand::Rng::with_seed(index.into());
                    let mut held = Vec::new();
                    for _ in 0..if cfg!(miri) { 50 } else { 3000 } {
                        let bytes = [100, SHARD, 5000, 20_000][rng.usize(..4)];
                        let mut buf = take(pool, bytes);
                        buf.resize(bytes, index).expect("asked for");
                        held.push(buf);
                        while held.len() > rng.usize(..4) {
                            let buf = held.swap_remove(rng.usize(..held.len()));
                            assert!(buf.iter().all(|&byte| byte == index), "written over");
                        }
                    }
                })
            })
            .collect();
        while !workers.iter().all(thread::ScopedJoinHandle::is_finished) {
            pool.trim_idle(NONE);
            pool.trim();
        }
        // The end of the scope does not wait for what threads do at their very end.
        workers.into_iter().for_each(|worker| worker.join().expect("it ends well"));
    });
    bufkit::orphan::sweep();
    pool.trim();
    assert_eq!((pool.stats().in_use, pool.stats().reserved_bytes), (0, 0));
}
