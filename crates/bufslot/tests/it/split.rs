//! Buffers that are split: in the region, and with the fallback.

use bufcore::NoFallback;
use bufslot::SlotPool;
use testkit::trials::parts;

mod region {
    use super::*;

    testkit::conformance_split! {
        pool: SlotPool<NoFallback> = || SlotPool::builder().slots(64).capacity(1 << 16).build_with(NoFallback).expect("settings are right"),
    }
}

mod fallback {
    use super::*;

    testkit::conformance_split! {
        pool: SlotPool = || SlotPool::new(8, 1).expect("settings are right"),
    }
}

#[test]
fn many_parts() {
    parts::many_parts(SlotPool::new(1 << 16, 4).expect("settings are right"));
    parts::many_parts(SlotPool::new(8, 1).expect("settings are right"));
}

#[test]
fn large_and_late() {
    let pool = SlotPool::new(32, 4).expect("settings are right");
    parts::large_and_late(pool, |buf| buf.lease().is_fallback(), usize::from(cfg!(feature = "stats")));
    let pool = SlotPool::builder().slots(4).capacity(64).build_with(NoFallback).expect("settings are right");
    parts::large_and_late(pool, |buf| !buf.lease().is_fallback(), 1);
}

#[cfg(feature = "wipe")]
#[test]
fn wiped() {
    parts::wiped(
        SlotPool::builder().capacity(4096).wipe(true).build_with(NoFallback).expect("settings are right"),
    );
    parts::wiped(SlotPool::builder().capacity(8).slots(1).wipe(true).build().expect("settings are right"));
}

/// A part stays where it is: what is in front of it is another's.
#[test]
fn a_part_does_not_move_over_another() {
    let mut pool = SlotPool::new(1000, 4).expect("settings are right");
    let mut front = pool.acquire(100).expect("room");
    front.resize(100, 1).expect("room");
    let mut back = front.split_off(50);
    front.fill(2);
    back.compact();
    assert!(front.iter().all(|&byte| byte == 2) && back.iter().all(|&byte| byte == 1));
}

/// Two buffers of one region may be neighbours: they are two memories all the same.
#[test]
fn neighbours_are_not_joined() {
    let mut pool =
        SlotPool::builder().slots(2).capacity(8192).build_with(NoFallback).expect("settings are right");
    let mut bufs: Vec<_> = std::iter::from_fn(|| pool.acquire(64).ok()).collect();
    bufs.sort_by_key(|buf| buf.as_ptr().addr());
    let [mut first, mut second] = <[_; 2]>::try_from(bufs).expect("two slots");
    for buf in [&mut first, &mut second] {
        buf.resize(buf.capacity(), 1).expect("room");
    }
    assert_eq!(first.as_ptr().addr() + first.capacity(), second.as_ptr().addr(), "they are neighbours");
    let mut last = first.split_off(first.len() - 1);
    let next = second.split_to(1);
    let mut next = last.unsplit(next).expect_err("of another memory");
    next.unsplit(second).expect("of one memory");
    drop((first, last, next));
}
