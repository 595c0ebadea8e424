//! Requests larger than a shard: pieces that are kept, within the budget, and go when they should.

use std::sync::mpsc;
use std::thread;

use bufbump::bufcore::Buf;
use bufbump::{BumpLease, BumpPool};

const SHARD: usize = 4096;
const MIB: usize = 1 << 20;

fn with_idle(bytes: usize) -> BumpPool {
    BumpPool::builder().shard_size(SHARD).max_idle_bytes(bytes).build().expect("settings are right")
}

fn pool() -> BumpPool {
    with_idle(64 * MIB)
}

fn take(pool: &BumpPool, bytes: usize) -> Buf<BumpLease> {
    pool.acquire(bytes).expect("the allocator has room")
}

/// Drops what another thread made.
fn drop_elsewhere(held: impl Send + 'static) {
    thread::spawn(move || drop(held)).join().expect("dropping does not panic");
}

/// One after the other: the memory is the same, and it is no fallback any more. Nothing is carved
/// for it.
#[test]
fn one_after_the_other() {
    for (shard, bytes) in [(64, 65), (SHARD, SHARD + 1), (SHARD, MIB), (256 << 10, 3 * MIB)] {
        let pool = BumpPool::builder().shard_size(shard).build().expect("settings are right");
        let first = take(&pool, bytes);
        assert!(first.lease().is_fallback(), "allocated for it");
        let (address, reserved) = (first.as_ptr(), pool.stats().reserved_bytes);
        assert!(reserved >= bytes && reserved <= bytes + bytes / 4 + 1, "{reserved} for {bytes}");
        drop(first);
        for less in [0, 1, bytes / 5] {
            if bytes - less <= shard {
                continue;
            }
            let again = take(&pool, bytes - less);
            assert_eq!(again.as_ptr(), address, "{bytes} less {less}");
            assert_eq!((again.capacity(), again.lease().is_fallback()), (bytes - less, false));
        }
        // The same from another thread's hands, and a small one in between.
        for _ in 0..3 {
            let sent = take(&pool, bytes);
            assert_eq!(sent.as_ptr(), address);
            drop_elsewhere(sent);
            drop(take(&pool, 1));
        }
        assert_eq!(pool.stats().reserved_bytes, reserved + shard);
        assert_eq!(pool.stats().idle_bytes, reserved + shard);
    }
}

/// Several at once, in any order, of any sizes, on several threads: what is out never overlaps, and
/// the second round allocates nothing.
#[test]
fn several_at_once() {
    let pool = pool();
    let sizes = [5000, MIB, 100_000, 5000, MIB, 40_000, 5000, 70_000];
    let round = |seed| {
        let mut rng = fastrand::Rng::with_seed(seed);
        let mut bufs: Vec<_> = sizes.iter().map(|&bytes| take(&pool, bytes)).collect();
        for (index, buf) in (0..).zip(&mut bufs) {
            buf.resize(buf.capacity(), index).expect("asked for");
        }
        for (index, buf) in (0_u8..).zip(&bufs) {
            assert!(buf.iter().all(|&byte| byte == index), "{index} was written over");
        }
        rng.shuffle(&mut bufs);
        let half = bufs.split_off(4);
        drop_elsewhere(half);
    };
    round(1);
    let reserved = pool.stats().reserved_bytes;
    (2..20).for_each(round);
    assert_eq!(pool.stats().reserved_bytes, reserved, "more was allocated");
    #[cfg(feature = "stats")]
    {
        let stats = pool.stats();
        assert_eq!((stats.fresh, stats.fallbacks), (8, 8), "{stats:?}");
        assert_eq!(stats.reused, 19 * 8 - 8, "{stats:?}");
        assert_eq!(stats.in_use_bytes, 0);
    }
}

/// A buffer counts with what was asked for, whatever the piece has.
#[cfg(feature = "stats")]
#[test]
fn bytes_in_use_are_those_asked_for() {
    let pool = pool();
    drop(take(&pool, MIB));
    let buf = take(&pool, MIB - 5000);
    let stats = pool.stats();
    assert_eq!((stats.in_use, stats.in_use_bytes, stats.reused), (1, MIB - 5000, 1));
    drop(buf);
    assert_eq!(pool.stats().in_use_bytes, 0);
}

/// A small request does not pin the piece of a large one: what is out has at most half as much
/// again.
#[test]
fn small_requests_leave_large_pieces_alone() {
    let pool = with_idle(64 * MIB);
    let mut held = Vec::new();
    for _ in 0..16 {
        drop(take(&pool, MIB));
        held.push(take(&pool, MIB / 4 + 1));
    }
    assert!(pool.stats().pinned_bytes <= 16 * (320 << 10), "{:?}", pool.stats());
    held.clear();
    // Each size up to the piece's: the least that serves it is two thirds.
    for bytes in (SHARD + 1..=MIB).step_by(4999) {
        drop(take(&pool, MIB));
        let buf = take(&pool, bytes);
        assert!(2 * pool.stats().pinned_bytes <= 3 * bytes, "{bytes} in {:?}", pool.stats());
        drop(buf);
    }
}

/// What one thread has released serves others, when there is no room in its hands, and at its end.
#[test]
fn pieces_go_round() {
    let pool = pool();
    let theirs = pool.clone();
    let addresses = thread::spawn(move || {
        let bufs = [take(&theirs, MIB), take(&theirs, MIB)];
        bufs.map(|buf| buf.as_ptr().addr())
    });
    let addresses = addresses.join().expect("the thread ends well");
    let (one, two) = (take(&pool, MIB), take(&pool, MIB));
    for buf in [&one, &two] {
        // The system may map new memory where old memory was, so the address alone says little.
        assert!(!buf.lease().is_fallback(), "it was allocated");
        assert!(addresses.contains(&buf.as_ptr().addr()), "another's piece was not used");
    }
}

#[test]
fn the_budget_is_kept() {
    // Nothing is kept.
    let none = with_idle(0);
    drop([take(&none, MIB), take(&none, MIB)]);
    assert_eq!(none.stats().reserved_bytes, 0);
    // Less than a piece.
    let little = with_idle(MIB - 1);
    drop(take(&little, MIB));
    assert_eq!(little.stats().reserved_bytes, 0);
    // Three.
    let some = with_idle(3 * MIB);
    drop((0..10).map(|_| take(&some, MIB)).collect::<Vec<_>>());
    assert_eq!(some.stats().reserved_bytes, 3 * MIB);
    // Shards and pieces together, on many threads.
    let threads: Vec<_> = (0..16)
        .map(|index| {
            let some = some.clone();
            thread::spawn(move || drop((take(&some, MIB), take(&some, 5000 * (index + 1)))))
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().expect("the thread ends well"));
    drop((0..100).map(|_| take(&some, SHARD)).collect::<Vec<_>>());
    let reserved = some.stats().reserved_bytes;
    // Beside the budget, what the thread carves and its spares.
    assert!(reserved <= 3 * MIB + 5 * SHARD, "{reserved}");
}

/// Threads that do nothing any more hold nothing of the budget, and other sizes get their part.
#[test]
fn threads_share_the_budget() {
    let pool = with_idle(4 * MIB);
    let (go, threads): (Vec<_>, Vec<_>) = (0..8)
        .map(|_| {
            let ((ready, is_ready), (go, wait)) = (mpsc::channel(), mpsc::channel::<()>());
            let theirs = pool.clone();
            let thread = thread::spawn(move || {
                drop(take(&theirs, MIB));
                ready.send(()).expect("the other side waits");
                wait.recv().expect_err("the other side ends it");
            });
            is_ready.recv().expect("the other side sends");
            (go, thread)
        })
        .unzip();
    assert!(pool.stats().reserved_bytes <= 4 * MIB, "{pool:?}");
    // The rest is for whoever needs it.
    let first = take(&pool, 2 * MIB);
    let address = first.as_ptr();
    drop(first);
    assert_eq!(take(&pool, 2 * MIB).as_ptr(), address, "phases change");
    assert!(pool.stats().reserved_bytes <= 4 * MIB, "{pool:?}");
    drop(go);
    threads.into_iter().for_each(|thread| thread.join().expect("the thread ends well"));
}

/// The budget is full of what is not needed any more: a new size takes its place.
#[test]
fn sizes_that_change() {
    let pool = with_idle(4 * MIB);
    drop((0..1000).map(|_| take(&pool, SHARD)).collect::<Vec<_>>());
    drop((0..5).map(|_| take(&pool, MIB / 2)).collect::<Vec<_>>());
    for bytes in [3 * MIB, MIB, 2 * MIB, 100_000] {
        let first = take(&pool, bytes);
        let address = first.as_ptr();
        drop(first);
        let again = take(&pool, bytes);
        assert_eq!((again.as_ptr(), again.lease().is_fallback()), (address, false), "{bytes}");
    }
}

#[test]
fn trims_and_clears() {
    let pool = pool();
    drop([take(&pool, MIB), take(&pool, MIB), take(&pool, 5000)]);
    let held = take(&pool, MIB);
    pool.trim();
    assert_eq!(pool.stats().reserved_bytes, MIB, "one is out");
    drop(held);
    pool.trim();
    assert_eq!(pool.stats().reserved_bytes, 0);
}

/// Buffers that outlive the pool, on the thread that has them and on others.
#[test]
fn pools_that_go_first() {
    for elsewhere in [false, true] {
        let pool = pool();
        drop([take(&pool, MIB), take(&pool, MIB)]);
        let mut held = [take(&pool, MIB), take(&pool, MIB), take(&pool, 5000)];
        held.iter_mut().for_each(|buf| buf.resize(5000, 7).expect("asked for"));
        drop(pool);
        assert!(held.iter().all(|buf| buf.iter().all(|&byte| byte == 7)));
        if elsewhere { drop_elsewhere(held) } else { drop(held) }
    }
    bufkit::orphan::sweep();
    assert_eq!(bufkit::orphan::pending(), 0);
}

#[cfg(feature = "wipe")]
#[test]
fn wiped() {
    let pool = BumpPool::builder().shard_size(SHARD).wipe(true).build().expect("settings are right");
    for bytes in [MIB, MIB - 1, MIB - 9000, MIB] {
        let mut buf = take(&pool, bytes);
        assert!(buf.spare_mut().iter().all(|&byte| byte == 0), "{bytes}");
        buf.resize(bytes, 0xA5).expect("asked for");
        let rest = buf.split_off(9);
        drop(buf);
        drop(rest);
    }
}
