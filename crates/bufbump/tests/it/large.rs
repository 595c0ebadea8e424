//! Requests larger than a shard: their pages are kept, within the budget, serve any request, and go
//! when they should.

use core::time::Duration;
use std::thread;

use bufbump::bufcore::Buf;
use bufbump::{BumpLease, BumpPool};

const PAGE: usize = 4096;
const SHARD: usize = PAGE - 64;
const MIB: usize = 1 << 20;
/// A buffer of so many bytes has as many pages as a mebibyte.
const LARGE: usize = MIB - 64;

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

/// One after the other: the memory is the same. Nothing is carved for it.
#[test]
fn one_after_the_other() {
    for (shard, bytes) in [(64, 65), (SHARD, SHARD + 1), (SHARD, MIB), (256 << 10, 3 * MIB)] {
        let pool = BumpPool::builder().shard_size(shard).build().expect("settings are right");
        let first = take(&pool, bytes);
        assert!(first.lease().is_fallback(), "pages of its own");
        let (address, reserved) = (first.as_ptr(), pool.stats().reserved_bytes);
        assert_eq!(reserved, (bytes + 64).next_multiple_of(PAGE), "{bytes} bytes");
        drop(first);
        for less in [0, 1, bytes / 5] {
            if bytes - less <= shard {
                continue;
            }
            let again = take(&pool, bytes - less);
            assert_eq!(again.as_ptr(), address, "{bytes} less {less}");
            assert_eq!((again.capacity(), again.lease().is_fallback()), (bytes - less, true));
        }
        // The same from another thread's hands.
        for _ in 0..3 {
            let sent = take(&pool, bytes);
            assert_eq!(sent.as_ptr(), address);
            drop_elsewhere(sent);
        }
        let stats = pool.stats();
        assert_eq!((stats.reserved_bytes, stats.idle_bytes), (reserved, reserved));
    }
}

/// Several at once, in any order, of any sizes, on several threads: what is out never overlaps, and
/// the rounds after the first fault in nothing.
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
    let pages: usize = sizes.iter().map(|bytes| (bytes + 64).next_multiple_of(PAGE)).sum();
    assert_eq!(reserved, pages);
    (2..20).for_each(round);
    assert_eq!(pool.stats().reserved_bytes, reserved, "more was taken");
    #[cfg(feature = "stats")]
    {
        let stats = pool.stats();
        assert_eq!((stats.fresh, stats.fallbacks), (8, 8), "{stats:?}");
        assert_eq!(stats.reused, 19 * 8 - 8, "{stats:?}");
        assert_eq!(stats.in_use_bytes, 0);
    }
}

/// A buffer counts with its pages.
#[cfg(feature = "stats")]
#[test]
fn bytes_in_use_are_those_of_its_pages() {
    let pool = pool();
    drop(take(&pool, LARGE));
    let buf = take(&pool, LARGE - 100);
    let stats = pool.stats();
    assert_eq!((stats.in_use, stats.in_use_bytes, stats.reused), (1, LARGE, 1));
    assert_eq!(stats.pinned_bytes, MIB);
    drop(buf);
    assert_eq!(pool.stats().in_use_bytes, 0);
}

/// A request pins its pages, or at most a quarter more of a buffer that the thread kept, whatever
/// was released before: the rest serves others.
#[test]
fn what_is_pinned_is_what_is_asked_for() {
    let pool = pool();
    for bytes in (SHARD + 1..=MIB).step_by(49_999) {
        drop(take(&pool, MIB));
        let before = pool.stats().reserved_bytes;
        let buf = take(&pool, bytes);
        let asked = (bytes + 64).next_multiple_of(PAGE);
        let pinned = pool.stats().pinned_bytes;
        assert!((asked..=asked + asked / 4).contains(&pinned), "{pinned} for {bytes}");
        assert_eq!(pool.stats().reserved_bytes, before, "{bytes}");
        drop(buf);
    }
    // A shard comes from there too.
    pool.trim();
    drop([take(&pool, MIB), take(&pool, MIB)]);
    let before = pool.stats().reserved_bytes;
    let small = take(&pool, 1);
    assert_eq!((pool.stats().pinned_bytes, pool.stats().reserved_bytes), (PAGE, before));
    drop(small);
}

/// What one thread has released serves others.
#[test]
fn pages_go_round() {
    let pool = pool();
    let theirs = pool.clone();
    let released = thread::spawn(move || drop([take(&theirs, MIB), take(&theirs, MIB)]));
    released.join().expect("the thread ends well");
    let before = pool.stats().reserved_bytes;
    let held = [take(&pool, MIB), take(&pool, MIB)];
    assert_eq!(pool.stats().reserved_bytes, before, "another's pages were not used");
    drop(held);
}

#[test]
fn the_budget_is_kept() {
    // Nothing is kept.
    let none = with_idle(0);
    drop([take(&none, MIB), take(&none, MIB)]);
    assert_eq!(none.stats().reserved_bytes, 0);
    // Less than a buffer has.
    let little = with_idle(MIB - PAGE);
    drop(take(&little, LARGE));
    assert_eq!(little.stats().reserved_bytes, MIB - PAGE);
    // Three.
    let some = with_idle(3 * MIB);
    drop((0..10).map(|_| take(&some, LARGE)).collect::<Vec<_>>());
    assert_eq!(some.stats().reserved_bytes, 3 * MIB + MIB, "beside the thread's");
    // Shards and larger buffers together, on many threads.
    let threads: Vec<_> = (0..16)
        .map(|index| {
            let some = some.clone();
            thread::spawn(move || drop((take(&some, MIB), take(&some, 5000 * (index + 1)))))
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().expect("the thread ends well"));
    drop((0..100).map(|_| take(&some, SHARD)).collect::<Vec<_>>());
    let reserved = some.stats().reserved_bytes;
    // Beside the budget, what the thread carves, its spares, and a larger buffer.
    assert!(reserved <= 3 * MIB + 5 * PAGE + MIB, "{reserved}");
}

/// The budget is full of what is not needed any more: a new size uses it.
#[test]
fn sizes_that_change() {
    let pool = with_idle(4 * MIB);
    drop((0..1000).map(|_| take(&pool, SHARD)).collect::<Vec<_>>());
    drop((0..5).map(|_| take(&pool, MIB / 2)).collect::<Vec<_>>());
    for bytes in [3 * MIB, MIB, 2 * MIB, 100_000] {
        let first = take(&pool, bytes);
        let address = first.as_ptr();
        drop(first);
        assert_eq!(take(&pool, bytes).as_ptr(), address, "{bytes}");
    }
}

#[test]
fn trims_and_clears() {
    let pool = pool();
    drop([take(&pool, LARGE), take(&pool, MIB), take(&pool, 5000)]);
    let held = take(&pool, LARGE);
    pool.trim();
    assert_eq!(pool.stats().reserved_bytes, MIB, "one is out");
    drop(held);
    pool.trim();
    assert_eq!(pool.stats().reserved_bytes, 0);
}

/// What a thread kept goes with it, and looks find it before.
#[test]
fn threads_leave_nothing() {
    let pool = with_idle(2 * MIB);
    // This thread has a cache, and a shard.
    drop(take(&pool, 1));
    let carved = pool.stats().reserved_bytes;
    let theirs = pool.clone();
    let released = thread::spawn(move || {
        drop(take(&theirs, MIB));
        let kept = theirs.stats();
        assert_eq!((kept.in_use, kept.idle_bytes), (0, carved + MIB + PAGE));
        theirs.trim_idle(Duration::ZERO);
        assert_eq!(theirs.stats().idle_bytes, carved + MIB + PAGE, "the look notes");
        theirs.trim_idle(Duration::ZERO);
        assert_eq!(theirs.stats().reserved_bytes, carved, "not used since");
        drop(take(&theirs, MIB));
    });
    released.join().expect("the thread ends well");
    // Pages that no thread has: another size is made of them.
    let bufs = [take(&pool, MIB / 2), take(&pool, MIB / 2 - PAGE)];
    assert_eq!(pool.stats().reserved_bytes, carved + MIB + PAGE);
    drop(bufs);
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
