//! T32: how a buffer comes to hold more. And how much of a large region is used for few buffers.

use std::collections::VecDeque;

use bufcore::{AcquireError, BufferPool, SplitLease, Writer};

use super::{filled, scaled};
use crate::Kit;
use crate::pattern;

/// Checks that a buffer grows with its bytes, by what is asked for at least, or is not changed by a
/// refusal; and what was consumed comes back (T32).
pub fn t32_grown_and_compacted<P: BufferPool<Lease: SplitLease>>(kit: &Kit<P>) {
    let mut pool = (kit.make)();
    for bytes in 0..=130 {
        for consumed in (0..=bytes).step_by(7) {
            let mut buf = filled(&mut pool, bytes, 1).expect("a small request");
            let start = buf.as_ptr();
            buf.consume(consumed);
            assert_eq!(buf.capacity(), bytes - consumed);
            // No more than it has changes nothing.
            pool.grow(&mut buf, 0).expect("nothing to do");
            assert_eq!((buf.as_ptr(), buf.capacity()), (start.wrapping_add(consumed), bytes - consumed));
            // Of what was consumed there is so much room.
            pool.grow(&mut buf, consumed).expect("there is room");
            assert!(consumed == 0 || bytes == 0 || buf.as_ptr() == start, "it moved elsewhere");
            buf.compact();
            assert_eq!((buf.len(), buf.capacity()), (bytes - consumed, bytes));
            assert!(bytes == 0 || buf.as_ptr() == start);
            pattern::check(&buf, 1, consumed);
            pool.grow(&mut buf, 2 * consumed + 33).expect("a small request");
            assert_eq!(buf.len(), bytes - consumed);
            assert!(buf.spare_capacity() >= 2 * consumed + 33);
            pattern::check(&buf, 1, consumed);
            buf.resize(bytes + 1 + consumed, 7).expect("room");
            // Through a view of its end.
            let view = buf.freeze();
            let end = view.slice(consumed..);
            drop(view);
            let mut buf = end.try_into_mut().expect("the only view");
            buf.compact();
            assert_eq!(buf.len(), bytes + 1);
        }
    }
    // One that shares its memory moves.
    let mut front = filled(&mut pool, 100, 1).expect("a small request");
    let back = front.split_off(60);
    let start = front.as_ptr();
    pool.grow(&mut front, 10).expect("a small request");
    assert!(front.as_ptr() != start, "it grew over the other part");
    pattern::check(&front, 1, 0);
    pattern::check(&back, 1, 60);
    drop((front, back));
    // With one that was consumed to its end, all comes back.
    let mut buf = filled(&mut pool, 100, 1).expect("a small request");
    buf.consume(100);
    assert_eq!(buf.capacity(), 0);
    buf.compact();
    assert_eq!((buf.len(), buf.capacity()), (0, 100));
    // What was cut off behind it does not.
    buf.resize(30, 1).expect("room");
    buf.shrink_to(40);
    buf.consume(10);
    buf.compact();
    assert_eq!((buf.len(), buf.capacity()), (20, 40));
    drop(buf);
    let mut buf = filled(&mut pool, 50, 1).expect("a small request");
    let start = buf.as_ptr();
    let mut huge = vec![usize::MAX, isize::MAX as usize + 1];
    huge.extend(pool.max_capacity().checked_add(1));
    for huge in huge {
        let refused = pool.grow(&mut buf, huge).expect_err("more than can be");
        assert!(
            matches!(refused, AcquireError::TooLarge { requested, limit } if requested == huge && limit < huge),
            "{refused}"
        );
        assert_eq!((buf.as_ptr(), buf.len(), buf.capacity()), (start, 50, 50));
        pattern::check(&buf, 1, 0);
    }
    if kit.rejects {
        let most = pool.max_capacity();
        // The most that there ever is, of which this very buffer has a part.
        assert!(pool.grow(&mut buf, most).is_err());
        assert_eq!((buf.as_ptr(), buf.len(), buf.capacity()), (start, 50, 50));
        pattern::check(&buf, 1, 0);
    }
    drop(buf);
    assert_eq!(pool.stats().in_use, 0);
}

/// Checks that a pool over a region of `capacity` bytes, which are many, keeps to about as much of
/// them as its buffers take, and still serves all of them.
pub fn a_large_region_is_used_little<P: BufferPool>(mut pool: P, capacity: usize) {
    let mut random = fastrand::Rng::with_seed(1);
    let mut out = VecDeque::new();
    let (mut first, mut last) = (usize::MAX, 0);
    for _ in 0..scaled(20_000) {
        let buf = pool.acquire(random.usize(1..1500)).expect("room");
        let start = buf.as_ptr().addr();
        (first, last) = (first.min(start), last.max(start));
        out.push_back(buf);
        if out.len() == 8 {
            // The newest one stays longer, so that requests do not go back to it.
            out.swap(6, 7);
            drop(out.pop_front());
        }
    }
    assert!(last - first < 64 << 10, "{} bytes for eight buffers of 1500", last - first);
    drop(out);
    let all = pool.acquire(capacity).expect("all of it").as_ptr().addr();
    assert!(all <= last && first < all + capacity, "it is of the same region");
}

/// Checks the same for frames: a frame that comes to the end of what is used goes to the front, where
/// others were, and does not take more of the region. Frames that need it do take more.
pub fn frames_use_a_large_region_little<P: BufferPool<Lease: SplitLease>>(pool: P, capacity: usize) {
    let mut pool = Writer::new(pool);
    const OUT: usize = 8;
    const MOST: usize = 8192;
    let mut random = fastrand::Rng::with_seed(1);
    let mut out = VecDeque::new();
    let (mut first, mut last) = (usize::MAX, 0);
    for round in 0..2000 {
        let bytes = random.usize(2000..MOST);
        while pool.filled().len() < bytes {
            pool.extend_from_slice(&[round as u8; 50]).expect("room");
        }
        let frame = pool.finish();
        let start = frame.as_ptr().addr();
        (first, last) = (first.min(start), last.max(start + frame.len()));
        out.push_back((frame, round as u8));
        if out.len() > OUT {
            let (frame, filler) = out.pop_front().expect("there are some");
            assert!(frame.iter().all(|&byte| byte == filler), "round {round}");
        }
    }
    assert!(last - first < 3 * (OUT + 1) * MOST, "{} bytes for {OUT} frames of {MOST}", last - first);
    // One that is larger than all of that, while the others are out.
    let wanted = capacity / 2;
    while pool.filled().len() < wanted {
        pool.extend_from_slice(&[7; 4096]).expect("there is room in the region");
    }
    let large = pool.finish();
    assert!(large.iter().all(|&byte| byte == 7));
    assert!((first - capacity..last + capacity).contains(&large.as_ptr().addr()), "it is of the same region");
}
