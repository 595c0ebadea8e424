//! Buffers that are split, as far as generated programs ([`ops`](crate::ops)) and traffic do not show
//! it.

use bufcore::author::Tracker;
use bufcore::{Buf, BufferPool, SplitLease};

use super::filled;
use crate::pattern;

const BYTES: usize = 48;

/// Checks that memory of its own, and of a pool that is gone, splits as any other. `pool` has none
/// for 48 bytes; `in_use` is what its statistics say of one memory that is out.
pub fn large_and_late<P: BufferPool<Lease: SplitLease>>(
    mut pool: P,
    is_fallback: fn(&Buf<P::Lease>) -> bool,
    in_use: usize,
) {
    let mut large = filled(&mut pool, BYTES, 1).expect("a small request");
    assert!(is_fallback(&large));
    let front = large.split_to(20);
    assert!(is_fallback(&front));
    assert_eq!(pool.stats().in_use, in_use, "one memory");
    let small = pool.acquire(8).expect("room");
    drop(pool);
    drop(small);
    pattern::check(&front, 1, 0);
    drop(front);
    pattern::check(&large, 1, 20);
}

/// Parts that another tracker is told of as well, as by a pool whose fallback hands out parts: the
/// list on which the memory is stays right, and no part's going frees anything of it twice.
pub fn noted_again<P: BufferPool<Lease: SplitLease>>(make: fn() -> P, listed: fn(&P) -> Option<usize>) {
    let elsewhere = Tracker::default();
    let mut pool = make();
    for which in 0..8 {
        let mut front = filled(&mut pool, BYTES, 1).expect("a small request");
        let back = front.split_off(16);
        let note = |bit: usize, part| if which >> bit & 1 == 1 { elsewhere.attach(part) } else { part };
        let (front, back) = (note(0, front), note(1, back));
        assert_eq!(listed(&pool).unwrap_or(1), 1, "the memory is out");
        let (first, last) = if which >> 2 == 0 { (front, back) } else { (back, front) };
        drop(first);
        assert_eq!(listed(&pool).unwrap_or(1), 1, "a part of it is");
        // The rest is as good as a buffer that was never split.
        let last = elsewhere.attach(last);
        assert_eq!(listed(&pool).unwrap_or(0), 0, "it is on the other list");
        drop(last);
        assert_eq!((pool.stats().in_use, listed(&pool).unwrap_or(0)), (0, 0));
    }
    let mut front = filled(&mut pool, BYTES, 1).expect("a small request");
    let back = front.split_off(10);
    drop(front.freeze());
    assert_eq!(listed(&pool).unwrap_or(1), 1, "a part of it is out");
    drop(back);
    assert_eq!(listed(&pool).unwrap_or(0), 0, "nothing is out");
}

/// Drops a thousand parts of one buffer by four threads.
pub fn many_parts<P: BufferPool<Lease: SplitLease>>(mut pool: P) {
    let mut rest = pool.acquire(4000).expect("room");
    pattern::fill(rest.spare_mut(), 5, 0);
    rest.commit(4000);
    let mut parts: Vec<Vec<_>> = (0..4).map(|_| Vec::new()).collect();
    for index in 0..1000 {
        parts[index % 4].push((index * 4, rest.split_to(4)));
    }
    assert!(rest.is_empty());
    drop(rest);
    let threads: Vec<_> = parts
        .into_iter()
        .map(|parts| {
            std::thread::spawn(move || parts.iter().for_each(|(at, part)| pattern::check(part, 5, *at)))
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().expect("the bytes are right"));
    assert_eq!(pool.stats().in_use, 0);
}

/// Checks that a secret in one part does not show after the other is gone, nor after all are.
pub fn wiped<P: BufferPool<Lease: SplitLease>>(mut pool: P) {
    for first in [true, false] {
        let mut buf = pool.acquire(BYTES).expect("room");
        buf.resize(BYTES, 0x77).expect("asked for");
        let back = buf.split_off(20);
        let (one, other) = if first { (buf, back) } else { (back, buf) };
        drop(one);
        assert!(other.iter().all(|&byte| byte == 0x77), "the other part is not touched");
        drop(other.freeze());
        let mut again = pool.acquire(BYTES).expect("room");
        assert!(again.spare_mut().iter().all(|&byte| byte == 0));
    }
}
