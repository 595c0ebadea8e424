//! Buffers that start at pages, and at every other alignment: their headers are in front of them.

use bufbump::{BumpBuf, BumpPool};

const PAGE: usize = 4096;
const PAGES: usize = 32;

fn pool() -> BumpPool {
    BumpPool::builder().alignment(PAGE).shard_size(PAGES * PAGE).build().expect("settings are right")
}

fn take(pool: &BumpPool, bytes: usize) -> BumpBuf {
    let buf = pool.acquire(bytes).expect("the allocator has room");
    assert_eq!(buf.as_ptr().addr() % PAGE, 0, "{bytes} bytes");
    buf
}

/// The header in front takes up to a page: a buffer of a page takes two, and one of 16 bytes less
/// takes one.
#[test]
fn headers_are_in_front() {
    for (bytes, pages) in [(1, 1), (PAGE - 16, 1), (PAGE - 15, 2), (PAGE, 2), (2 * PAGE - 16, 2)] {
        let pool = pool();
        let mut held: Vec<_> = (0..PAGES / pages).map(|_| take(&pool, bytes)).collect();
        assert!(pool.stats().pinned_bytes < 2 * pool.shard_size(), "{bytes} bytes");
        for (number, buf) in (0_u8..).zip(&mut held) {
            assert!(buf.spare_mut().iter().all(|byte| *byte == 0), "new memory is zero");
            buf.resize(bytes, number).expect("asked for");
        }
        for (number, buf) in (0_u8..).zip(&held) {
            assert!(buf.iter().all(|byte| *byte == number), "two buffers share bytes");
        }
        let starts: Vec<_> = held.iter().map(|buf| buf.as_ptr().addr()).collect();
        assert!(starts.is_sorted_by(|first, second| first + pages * PAGE == *second), "end to end");
        // The newest goes back, and its place is the next one's.
        drop(held.pop());
        assert_eq!(take(&pool, 1).as_ptr().addr(), starts[starts.len() - 1]);
    }
}

/// Parts and views of a buffer find where it starts, also where another thread has them.
#[test]
fn parts_find_their_start() {
    let pool = pool();
    let before = take(&pool, 100);
    let mut buf = take(&pool, 3 * PAGE);
    buf.resize(3 * PAGE, 7).expect("asked for");
    let start = buf.as_ptr().addr();
    let head = buf.split_to(PAGE);
    drop(head);
    let moved = std::thread::spawn(move || {
        buf.compact();
        buf
    });
    let buf = moved.join().expect("the thread ends well");
    assert_eq!((buf.as_ptr().addr(), buf.len(), buf.capacity()), (start, 2 * PAGE, 3 * PAGE));
    let view = buf.freeze();
    let other = view.clone();
    assert!(std::thread::spawn(move || other.iter().all(|byte| *byte == 7)).join().expect("ends well"));
    drop(before);
    assert!(view.iter().all(|byte| *byte == 7));
}

/// A request larger than a shard takes its pages and no more, and the pool keeps them.
#[test]
fn larger_than_a_shard() {
    let pool = pool();
    let first = take(&pool, 2 * PAGES * PAGE);
    assert!(first.lease().is_fallback());
    assert_eq!(pool.stats().reserved_bytes, 2 * PAGES * PAGE);
    let start = first.as_ptr();
    drop(first);
    for bytes in [2 * PAGES * PAGE, 2 * PAGES * PAGE - 10_000] {
        let mut buf = take(&pool, bytes);
        assert_eq!(buf.as_ptr(), start, "{bytes} bytes");
        buf.resize(bytes, 1).expect("asked for");
        buf.consume(PAGE);
        buf.compact();
        assert_eq!((buf.as_ptr(), buf.len()), (start, bytes - PAGE));
    }
    assert_eq!(pool.stats().reserved_bytes, 2 * PAGES * PAGE);
    // What cannot be kept.
    let pool = BumpPool::builder().alignment(PAGE).max_idle_bytes(0).build().expect("settings are right");
    let buf = take(&pool, 1 << 20);
    assert!(buf.lease().is_fallback());
    drop(buf);
    assert_eq!(pool.stats().reserved_bytes, 0);
}

/// Other threads release what this one carves, and a thread that ends leaves its shard to them.
#[test]
fn released_by_others() {
    let pool = pool();
    for _ in 0..3 {
        // The page in front of the first buffer's is for its header.
        let held: Vec<_> = (0..=PAGES).map(|_| take(&pool, PAGE - 16)).collect();
        assert!(pool.stats().pinned_bytes < 2 * pool.shard_size());
        std::thread::spawn(move || drop(held)).join().expect("the thread ends well");
    }
    let theirs = pool.clone();
    let ended = std::thread::spawn(move || (take(&theirs, PAGE), take(&theirs, 100 * PAGE)));
    let (small, large) = ended.join().expect("the thread ends well");
    drop(pool);
    assert_eq!((small.capacity(), large.capacity()), (PAGE, 100 * PAGE));
    drop((small, large));
}

/// Every alignment works for every size, from a shard and beside it.
#[test]
fn every_alignment() {
    // There are few addresses on 32 bits.
    let most = if size_of::<usize>() == 8 { 28 } else { 24 };
    for alignment in (0..=most).map(|power| 1_usize << power) {
        let builder = BumpPool::builder().alignment(alignment).shard_size(10_000);
        let pool = builder.build().expect("settings are right");
        for bytes in [1, 100, 10_000, 10_001, 70_000] {
            for round in 0..2 {
                let mut buf = pool.acquire_zeroed(bytes).expect("addresses are plenty");
                assert_eq!(buf.as_ptr().addr() % alignment, 0, "{bytes} bytes aligned to {alignment}");
                assert!(buf.iter().all(|byte| *byte == 0), "round {round}");
                buf.fill(1);
                buf.consume(bytes.min(10));
                buf.compact();
                assert_eq!((buf.len(), buf.capacity()), (bytes - bytes.min(10), bytes));
                let view = buf.freeze();
                assert!(view.clone().iter().all(|byte| *byte == 1));
            }
        }
        assert_eq!(pool.stats().in_use, 0, "aligned to {alignment}");
        pool.trim();
        assert_eq!(pool.stats().pinned_bytes, 0, "aligned to {alignment}");
    }
}

/// A buffer that was released is zeroed up to its last page.
#[cfg(feature = "wipe")]
#[test]
fn wiped_to_the_last_page() {
    let pool =
        BumpPool::builder().alignment(PAGE).shard_size(PAGES * PAGE).wipe(true).build().expect("right");
    for bytes in [10, PAGE, 3 * PAGE, 40 * PAGE] {
        let neighbour = {
            let mut buf = take(&pool, 10);
            buf.extend_from_slice(b"neighbour").expect("room");
            buf
        };
        let mut secret = take(&pool, bytes);
        secret.resize(bytes, 0xAA).expect("asked for");
        drop(secret);
        assert!(take(&pool, bytes).spare_mut().iter().all(|byte| *byte == 0), "{bytes} bytes");
        assert_eq!(neighbour, *b"neighbour");
    }
}
