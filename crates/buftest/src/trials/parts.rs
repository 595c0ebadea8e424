//! Buffers that are split, for the pools whose buffers can be: every order of going, with views and
//! on other threads. Generated programs ([`ops`](crate::ops)) split and join them at any index.

use bufcore::strategy::Tracker;
use bufcore::{Buf, BufferPool, SplitLease};

use crate::pattern;

const BYTES: usize = 48;

fn filled<P: BufferPool>(pool: &mut P, len: usize) -> Buf<P::Lease> {
    let mut buf = pool.acquire(BYTES).expect("a small request");
    pattern::fill(&mut buf.spare_mut()[..len], 1, 0);
    buf.commit(len);
    buf
}

/// Checks that the memory is used again after the last part, in whichever order they go, and not
/// before.
pub fn in_every_order<P: BufferPool<Lease: SplitLease>>(make: fn() -> P) {
    let orders = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];
    for order in orders {
        for elsewhere in 0..8 {
            let mut pool = make();
            let mut first = filled(&mut pool, BYTES);
            let start = first.as_ptr();
            let last = first.split_off(32);
            let middle = first.split_off(16);
            let mut parts = [Some(first), Some(middle), Some(last)];
            for (step, index) in order.into_iter().enumerate() {
                assert_ne!(pool.acquire(BYTES).expect("room").as_ptr(), start, "a part is out");
                let part = parts[index].take().expect("each goes once");
                pattern::check(&part, 1, 16 * index);
                if elsewhere >> step & 1 == 0 {
                    drop(part);
                } else {
                    std::thread::spawn(move || drop(part)).join().expect("dropping does not panic");
                }
            }
            assert_eq!(pool.stats().in_use, 0);
        }
    }
}

/// Checks that a view of a part thaws when it is the only handle of the whole memory, and is then
/// what the part was.
pub fn views_of_parts<P: BufferPool<Lease: SplitLease>>(make: fn() -> P) {
    let mut pool = make();
    let mut front = filled(&mut pool, 40);
    let back = front.split_off(24);
    let view = front.freeze();
    let clone = view.clone();
    let view = view.try_into_mut().expect_err("a clone is there");
    drop(clone);
    let view = view.try_into_mut().expect_err("the other part is there");
    drop(back);
    let mut front = view.try_into_mut().expect("the only handle");
    assert_eq!((front.len(), front.capacity()), (24, 24));
    pattern::check(&front, 1, 0);
    // Split again, frozen, the parts of the view among themselves.
    let back = front.split_off(10);
    let mut view = back.freeze();
    let tail = view.split_off(7);
    drop(front);
    assert_eq!((view.len(), tail.len()), (7, 7));
    pattern::check(&tail, 1, 17);
    drop(view);
    let thawed = tail.try_into_mut().expect("the only handle");
    assert_eq!((thawed.len(), thawed.capacity()), (7, 7));
    drop(thawed);
    assert_eq!(pool.stats().in_use, 0);
}

/// Checks that memory of its own, and of a pool that is gone, splits as any other. `pool` has none
/// for 48 bytes; `in_use` is what its statistics say of one memory that is out.
pub fn large_and_late<P: BufferPool<Lease: SplitLease>>(
    mut pool: P,
    is_fallback: fn(&Buf<P::Lease>) -> bool,
    in_use: usize,
) {
    let mut large = filled(&mut pool, BYTES);
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
        let mut front = filled(&mut pool, BYTES);
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
    let mut front = filled(&mut pool, BYTES);
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

/// Checks that neighbouring parts are joined again. Parts that are no neighbours stay apart, and
/// nothing is lost by trying.
pub fn joined<P: BufferPool<Lease: SplitLease>>(make: fn() -> P) {
    let mut pool = make();
    // With a gap between the filled bytes, in the wrong order, and not next to each other.
    let mut first = filled(&mut pool, 10);
    let mut third = first.split_off(32);
    let mut second = first.split_off(16);
    third.push(3).expect("room");
    let mut third = first.unsplit(third).expect_err("the second is between");
    second = third.unsplit(second).expect_err("backwards");
    second.push(2).expect("room");
    let second = first.unsplit(second).expect_err("the first is not full");
    first.resize(16, 9).expect("its capacity");
    first.unsplit(second).expect("full now");
    let third = first.unsplit(third).expect_err("the second is not full");
    assert_eq!((first.len(), first.capacity(), third.len(), third.capacity()), (17, 32, 1, 16));
    pattern::check(&first[..10], 1, 0);
    drop((first, third));
    assert_eq!(pool.stats().in_use, 0);
    // Memories that are neighbours are not one, however much they are full.
    let mut bufs: Vec<_> = (0..6).map(|_| filled(&mut pool, BYTES)).collect();
    for one in 0..bufs.len() {
        for other in 0..bufs.len() {
            if one != other {
                let mut a = std::mem::replace(&mut bufs[one], pool.acquire(0).expect("none"));
                let b = std::mem::replace(&mut bufs[other], pool.acquire(0).expect("none"));
                let b = a.unsplit(b).expect_err("of another memory");
                (bufs[one], bufs[other]) = (a, b);
            }
        }
    }
    // One of no bytes is joined to any, and becomes any.
    let mut nothing = pool.acquire(0).expect("none");
    nothing.unsplit(bufs.remove(0)).expect("nothing is in front");
    nothing.unsplit(pool.acquire(0).expect("none")).expect("nothing is behind");
    assert_eq!(nothing.len(), BYTES);
    drop((nothing, bufs));
    // Views, also of several parts.
    let mut front = filled(&mut pool, BYTES);
    let back = front.split_off(20);
    let (mut front, mut back) = (front.freeze(), back.freeze());
    let tail = back.split_off(10);
    let back = tail.clone().unsplit(back).expect_err("backwards");
    front.unsplit(back).expect("neighbours");
    let tail = front.slice(..5).unsplit(tail).expect_err("no neighbour");
    front.unsplit(tail).expect("neighbours");
    pattern::check(&front, 1, 0);
    let whole = front.try_into_mut().expect("the only handle");
    assert_eq!((whole.len(), whole.capacity()), (BYTES, BYTES));
    drop(whole);
    assert_eq!(pool.stats().in_use, 0);
}

/// Checks that what was consumed, and what other parts had in front, comes back when the buffer is
/// the only handle, and not before.
pub fn compacted<P: BufferPool<Lease: SplitLease>>(make: fn() -> P) {
    let mut pool = make();
    for elsewhere in [false, true] {
        let mut buf = filled(&mut pool, 40);
        let start = buf.as_ptr();
        let first = buf.split_to(10);
        let mut view = buf.split_to(20).freeze();
        buf.consume(3);
        let part = buf.as_ptr();
        for _ in 0..2 {
            buf.compact();
            assert_eq!((buf.as_ptr(), buf.len(), buf.capacity()), (part, 7, 15), "there are other handles");
        }
        if elsewhere {
            std::thread::spawn(move || drop(first)).join().expect("dropping does not panic");
        } else {
            drop(first);
        }
        view.consume(1);
        buf.compact();
        assert_eq!(buf.as_ptr(), part, "there is a view");
        pattern::check(&view, 1, 11);
        drop(view);
        buf.compact();
        assert_eq!((buf.as_ptr(), buf.len(), buf.capacity()), (start, 7, BYTES));
        pattern::check(&buf, 1, 33);
        buf.spare_mut().fill(1);
        // And it splits again.
        let back = buf.split_off(5);
        assert_eq!(back.capacity(), BYTES - 5);
        // What is left of a split at the end holds no memory, so that nothing comes back to it.
        drop(back);
        buf.compact();
        let room = buf.spare_capacity();
        buf.commit(room);
        drop(buf.split_to(buf.len()));
        buf.compact();
        assert_eq!((buf.capacity(), pool.stats().in_use), (0, 0), "a part of no bytes");
        pool.grow(&mut buf, BYTES).expect("there is room");
        assert_eq!(buf.spare_capacity(), BYTES);
    }
    assert_eq!(pool.stats().in_use, 0);
}
