//! What a shard does with the buffers in it: sizes at the edges, resets, probes, budgets,
//! survivors.

use bufbump::BumpLease;
use bufbump::BumpPool;
use bufbump::bufcore::{AcquireError, Buf, ConfigError};

/// A shard of so many bytes has a page.
const SHARD: usize = SPAN - 64;
const SPAN: usize = 4096;

fn pool() -> BumpPool {
    BumpPool::builder().shard_size(SHARD).build().expect("settings are right")
}

fn take(pool: &BumpPool, bytes: usize) -> Buf<BumpLease> {
    pool.acquire(bytes).expect("the allocator has room")
}

#[test]
fn settings_at_their_edges() {
    let build = |builder: bufbump::Builder| builder.build().map(drop).expect_err("not a pool");
    let builder = BumpPool::builder;
    assert_eq!(build(builder().shard_size(0)), ConfigError::Zero { setting: "shard_size" });
    for bytes in [(1 << 30) + 1, usize::MAX] {
        let expected = ConfigError::TooLarge { setting: "shard_size", requested: bytes, limit: 1 << 30 };
        assert_eq!(build(builder().shard_size(bytes)), expected);
    }
    for alignment in [0, 3, usize::MAX] {
        assert_eq!(build(builder().alignment(alignment)), ConfigError::BadAlignment { alignment });
    }
    let expected = ConfigError::TooLarge { setting: "alignment", requested: 1 << 31, limit: 1 << 30 };
    assert_eq!(build(builder().alignment(1 << 31)), expected);
    // Settings commute, and odd ones serve.
    for (shard, alignment) in [(1, 1), (1, 4096), (7, 8), (4097, 64), (100, 1 << 20)] {
        let pool =
            builder().alignment(alignment).shard_size(shard).max_probes(usize::MAX).build().expect("odd");
        let bufs: Vec<_> = (1..=shard.min(50)).map(|bytes| take(&pool, bytes)).collect();
        assert!(bufs.iter().all(|buf| buf.as_ptr().addr() % alignment == 0 && !buf.lease().is_fallback()));
        assert!(!take(&pool, shard).lease().is_fallback(), "exactly the shard");
        assert!(take(&pool, shard + alignment.max(8) + SPAN).lease().is_fallback(), "more than it");
    }
}

/// What is around a buffer of the largest alignment is more than 32 bits can count: nothing can be
/// had there, and that is said.
#[test]
fn the_largest_alignment() {
    let pool = BumpPool::builder().alignment(1 << 30).shard_size(64).build().expect("settings are right");
    let limit = pool.max_capacity();
    assert!(limit < isize::MAX as usize, "{limit} bytes");
    for requested in [limit + 1, usize::MAX] {
        assert_eq!(pool.acquire(requested).map(drop), Err(AcquireError::TooLarge { requested, limit }));
    }
    assert_eq!(pool.acquire(0).map(|buf| buf.as_ptr().addr() % (1 << 30)), Ok(0));
}

#[test]
fn requests_of_nothing_of_a_shard_and_of_more() {
    let pool = pool();
    let nothing = take(&pool, 0);
    assert_eq!((nothing.capacity(), nothing.lease().is_fallback()), (0, false));
    assert_eq!(pool.stats().reserved_bytes, 0, "no bytes need no shard");
    let exact = take(&pool, SHARD);
    assert_eq!((exact.capacity(), exact.lease().is_fallback()), (SHARD, false));
    let more = take(&pool, SHARD + 1);
    assert_eq!((more.capacity(), more.lease().is_fallback()), (SHARD + 1, true));
    assert_eq!(pool.stats().reserved_bytes, 3 * SPAN, "a byte too many for a page");
    drop(more);
    assert_eq!(pool.stats().reserved_bytes, 3 * SPAN, "kept for the next");
    pool.trim();
    assert_eq!(pool.stats().reserved_bytes, SPAN);
    let limit = pool.max_capacity();
    assert_eq!(
        pool.acquire(limit + 1).map(drop),
        Err(AcquireError::TooLarge { requested: limit + 1, limit })
    );
    let most = pool.acquire(limit).map(drop);
    // Of 32 bits a machine may have them all.
    assert!(
        most == Err(AcquireError::OutOfMemory { requested: limit })
            || (most.is_ok() && cfg!(target_pointer_width = "32"))
    );
    drop((nothing, exact));
    assert_eq!(pool.stats().in_use, 0);
}

/// The newest buffer's place is the next one's; a shard whose buffers are all back starts again.
#[test]
fn resets() {
    let pool = pool();
    let first = take(&pool, 100);
    let start = first.as_ptr();
    let second = take(&pool, 100);
    let next = second.as_ptr();
    drop(second);
    assert_eq!(take(&pool, 50).as_ptr(), next, "the newest was released");
    let others: Vec<_> = (0..10).map(|_| take(&pool, 64)).collect();
    drop(others);
    drop(first);
    assert_eq!(take(&pool, 1).as_ptr(), start, "all are back");
    // Through another thread: seen when the shard is full.
    let bufs: Vec<_> = (0..3).map(|_| take(&pool, 1000)).collect();
    std::thread::spawn(move || drop(bufs)).join().expect("dropping does not panic");
    let again = take(&pool, 2000);
    assert_eq!(again.as_ptr(), start, "all are back, elsewhere");
    assert_eq!(pool.stats().reserved_bytes, SPAN);
}

/// A request that does not fit goes to another shard that has room, if it may look; otherwise to a
/// new one.
#[test]
fn probes() {
    for probes in [0, 1, 4] {
        let pool =
            BumpPool::builder().shard_size(SHARD).max_probes(probes).build().expect("settings are right");
        let mut held = vec![take(&pool, 3000)];
        // Too much for what is left; then again something that would have fitted there.
        held.push(take(&pool, 3000));
        held.push(take(&pool, 1500));
        let before = pool.stats().reserved_bytes;
        assert_eq!(before, 3 * SPAN);
        held.push(take(&pool, 2500));
        held.push(take(&pool, 1000));
        held.push(take(&pool, 1000));
        let shards = pool.stats().reserved_bytes / SPAN;
        assert_eq!(shards, if probes == 0 { 4 } else { 3 }, "{probes} probes");
    }
}

#[test]
fn idle_memory_keeps_its_budget() {
    let pool =
        BumpPool::builder().shard_size(SHARD).max_idle_bytes(3 * SPAN).build().expect("settings are right");
    let bufs: Vec<_> = (0..100).map(|_| take(&pool, SHARD)).collect();
    assert_eq!(pool.stats().reserved_bytes, 100 * SPAN);
    drop(bufs);
    // The budget, as many again of the thread's own, and the one that it carves.
    assert_eq!(pool.stats().reserved_bytes, 7 * SPAN);
    pool.trim();
    assert_eq!(pool.stats().reserved_bytes, SPAN);
    let none = BumpPool::builder().shard_size(SHARD).max_idle_bytes(0).build().expect("settings are right");
    drop((0..100).map(|_| take(&none, SHARD)).collect::<Vec<_>>());
    assert_eq!(none.stats().reserved_bytes, SPAN);
}

/// What others gave back is found, and what is too much of it goes, though its owner releases
/// nothing itself.
#[test]
fn a_peak_that_others_release_shrinks() {
    let pool =
        BumpPool::builder().shard_size(SHARD).max_idle_bytes(2 * SPAN).build().expect("settings are right");
    let bufs: Vec<_> = (0..100).map(|_| take(&pool, SHARD)).collect();
    std::thread::spawn(move || drop(bufs)).join().expect("dropping does not panic");
    for _ in 0..100 {
        let buf = take(&pool, SHARD);
        std::thread::spawn(move || drop(buf)).join().expect("dropping does not panic");
    }
    assert!(pool.stats().reserved_bytes <= 6 * SPAN, "{pool:?}");
}

#[test]
fn survivors_show_and_move() {
    let pool = pool();
    let mut kept = Vec::new();
    for index in 0..8_u8 {
        let mut survivor = take(&pool, 20);
        survivor.resize(20, index).expect("asked for");
        kept.push(survivor);
        drop((0..63).map(|_| take(&pool, 48)).collect::<Vec<_>>());
        // All but the survivor was released, and the thread continues elsewhere.
        drop(take(&pool, SHARD - 16));
    }
    let stats = pool.stats();
    assert_eq!(stats.in_use, 8);
    assert!(stats.pinned_bytes >= 7 * SPAN, "{stats:?}");
    #[cfg(feature = "stats")]
    assert!(stats.in_use_bytes < SHARD, "{stats:?}");
    // Not small enough for this ratio.
    let first = kept.remove(0);
    let address = first.as_ptr();
    let first = pool.evacuate(first, 1000);
    assert_eq!(first.as_ptr(), address);
    kept.insert(0, first);
    let kept: Vec<_> = kept.into_iter().map(|buf| pool.evacuate(buf, 8)).collect();
    for (index, buf) in (0..).zip(&kept) {
        assert!(buf.len() == 20 && buf.iter().all(|&byte| byte == index));
    }
    let stats = pool.stats();
    assert!(stats.in_use == 8 && stats.pinned_bytes <= SPAN, "{stats:?}");
    // Of no bytes, on its own, from another pool, and a part whose other part lives: as they are,
    // or right all the same.
    assert_eq!(pool.evacuate(take(&pool, 0), 1).capacity(), 0);
    let single = take(&pool, 2 * SHARD);
    let address = single.as_ptr();
    assert_eq!(pool.evacuate(single, 1).as_ptr(), address);
    let other = self::pool();
    let mut foreign = take(&other, 10);
    foreign.extend_from_slice(b"foreign").expect("room");
    drop(take(&other, SHARD));
    assert_eq!(&pool.evacuate(foreign, 1)[..], b"foreign");
}

/// Shards that no address space has room for are refused by name, and none of them is allocated.
#[test]
fn more_shards_than_addresses_are_refused() {
    use bufbump::ConfigError;
    let builder = || BumpPool::builder().shard_size(1 << 30).max_idle_bytes(usize::MAX);
    for shards in [usize::MAX >> 24, usize::MAX >> 8, usize::MAX] {
        match builder().preallocate(shards).build() {
            Err(ConfigError::TooLarge { setting: "preallocate", requested, limit }) => {
                assert!(requested > limit && requested == shards, "{requested}, {limit}");
            }
            other => panic!("{shards} shards: {other:?}"),
        }
    }
    // What is over the budget is not asked for.
    let pool = BumpPool::builder().shard_size(SHARD).max_idle_bytes(8192).preallocate(usize::MAX).build();
    assert_eq!(pool.expect("two shards").stats().reserved_bytes, 8192);
}
