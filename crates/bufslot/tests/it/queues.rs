//! Buffers of different sizes in a queue, and in other orders: with hardly more slots than buffers,
//! and a quarter more bytes than they have.

use std::collections::VecDeque;

use bufcore::{Buf, NoFallback};
use bufslot::{SlotLease, SlotPool};
use testkit::trials::room;

type Held = Buf<SlotLease<bufcore::HeapLease>>;

/// Requests of one run.
const REQUESTS: usize = if cfg!(miri) { 300 } else { 10_000 };
/// Seeds of the runs.
const SEEDS: u64 = if cfg!(miri) { 1 } else { 4 };

/// Which buffer goes when the next one comes.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Order {
    Oldest,
    Newest,
    Any,
}

/// How large the buffers are.
#[derive(Debug, Clone, Copy)]
enum Sizes {
    /// As many small ones as large ones.
    Upto(usize),
    /// Mostly small, a few large.
    Mostly(usize, usize),
    /// One size, then the next, and so on.
    Turns(&'static [usize]),
}

impl Sizes {
    fn draw(self, seed: u64) -> Vec<usize> {
        let mut random = fastrand::Rng::with_seed(seed);
        (0..REQUESTS)
            .map(|index| match self {
                Self::Upto(most) => random.usize(1..=most),
                Self::Mostly(small, large) if random.u8(..16) > 0 => random.usize(1..=small.min(large)),
                Self::Mostly(_, large) => random.usize(1..=large),
                Self::Turns(sizes) => sizes[index % sizes.len()],
            })
            .collect()
    }
}

/// The most bytes of `out` requests in a row, each rounded up to the alignment.
fn peak(requests: &[usize], out: usize, alignment: usize) -> usize {
    let bytes: Vec<usize> = requests.iter().map(|bytes| bytes.next_multiple_of(alignment)).collect();
    bytes.windows(out).map(|window| window.iter().sum()).max().expect("more requests than are out")
}

/// How many of the requests go to the fallback, with `out` buffers out at once.
fn fallbacks(pool: &mut SlotPool, requests: &[usize], out: usize, order: Order, seed: u64) -> usize {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut held: VecDeque<Held> = VecDeque::with_capacity(out + 1);
    let mut elsewhere = 0;
    for (index, &bytes) in requests.iter().enumerate() {
        if held.len() == out {
            let goes = match order {
                Order::Oldest => 0,
                Order::Newest => held.len() - 1,
                Order::Any => random.usize(..held.len()),
            };
            let gone = held.remove(goes).expect("one of those that are out");
            assert!(gone.is_empty() || gone[0] == gone[gone.len() - 1], "request {index}");
        }
        let mut buf = pool.acquire(bytes).expect("the heap has room");
        let memory = buf.spare_mut();
        (memory[0], memory[bytes - 1]) = (index as u8, index as u8);
        buf.commit(bytes);
        elsewhere += usize::from(buf.lease().is_fallback());
        held.push_back(buf);
    }
    elsewhere
}

fn pool(out: usize, more: usize, bytes: usize, alignment: usize) -> SlotPool {
    let settings = SlotPool::builder().slots(out + more).capacity(bytes).alignment(alignment);
    settings.build().expect("settings are right")
}

/// Two slots more than are out, and a quarter more bytes: nothing goes to the fallback, however
/// many are out and whatever sizes they have.
#[test]
fn a_queue_of_any_sizes_needs_two_slots_more() {
    for sizes in
        [Sizes::Upto(100), Sizes::Upto(4000), Sizes::Mostly(300, 2000), Sizes::Turns(&[64, 100, 1500])]
    {
        for (out, alignment) in [(64, 1), (64, 64), (200, 16), (1024, 1)] {
            for seed in 1..=SEEDS {
                let requests = sizes.draw(seed);
                let bytes = peak(&requests, out.min(requests.len()), alignment);
                let mut pool = pool(out, 2, bytes + bytes / 4, alignment);
                let elsewhere = fallbacks(&mut pool, &requests, out, Order::Oldest, seed);
                assert_eq!(elsewhere, 0, "{sizes:?}, {out} out, aligned to {alignment}, seed {seed}");
            }
        }
    }
}

/// A stack of buffers, whose newest goes when the next one comes, needs no more slots either.
#[test]
fn a_stack_of_any_sizes_needs_two_slots_more() {
    for seed in 1..=SEEDS {
        let requests = Sizes::Upto(4000).draw(seed);
        let bytes = peak(&requests, 64, 1);
        let mut pool = pool(64, 2, bytes + bytes / 4, 1);
        assert_eq!(fallbacks(&mut pool, &requests, 64, Order::Newest, seed), 0, "seed {seed}");
    }
}

/// In any order buffers leave holes of their sizes between them. With room enough for these, two
/// slots more are enough, too: the free ones are found.
#[test]
fn free_slots_between_live_ones_are_found() {
    for out in [64, 1024] {
        for seed in 1..=SEEDS {
            let requests = Sizes::Upto(1000).draw(seed);
            let mut pool = pool(out, 2, 2 * out * 1000, 1);
            let elsewhere = fallbacks(&mut pool, &requests, out, Order::Any, seed);
            assert_eq!(elsewhere, 0, "of {REQUESTS}, {out} out, seed {seed}");
        }
    }
}

/// One slot is free, wherever it is between the live ones, and the only room is elsewhere.
#[test]
fn the_one_free_slot_is_found_at_every_place() {
    for slots in [2, 3, 65, 300] {
        for place in 0..slots {
            let mut pool = pool(slots, 0, slots * 100 + 1000, 1);
            let mut held: Vec<Held> = (0..slots).map(|_| pool.acquire(100).expect("room")).collect();
            drop(held.remove(place));
            // It does not fit where that one was, but behind the last.
            let large = pool.acquire(1000).expect("the heap has room");
            assert!(!large.lease().is_fallback(), "slot {place} of {slots}");
            held.push(large);
            assert!(pool.acquire(1).expect("the heap has room").lease().is_fallback(), "all slots are out");
        }
    }
}

#[test]
fn a_large_pool_stays_small() {
    const BYTES: usize = 8 << 20;
    let pool = SlotPool::builder().capacity(BYTES).build().expect("settings are right");
    room::a_large_region_is_used_little(pool, BYTES);
}

#[test]
fn a_large_pool_stays_small_with_frames() {
    let pool = SlotPool::builder().build().expect("settings are right");
    let capacity = pool.capacity();
    room::frames_use_a_large_region_little(pool, capacity);
}

/// There is room for the frame at the front, and no slot that would make it a place: it takes the
/// memory behind it, which needs none.
#[test]
fn a_frame_grows_in_place_where_all_slots_are_out() {
    let mut pool = SlotPool::builder().slots(2).build_with(NoFallback).expect("settings are right");
    let first = pool.acquire(14 << 10).expect("room");
    let mut frame = pool.acquire(16).expect("room");
    frame.extend_from_slice(&[1; 16]).expect("room");
    let start = frame.as_ptr();
    drop(first);
    let small = pool.acquire(2500).expect("room");
    assert!(small.as_ptr() < start, "it is at the front");
    while frame.len() < 64 << 10 {
        pool.grow(&mut frame, 16).expect("there is room behind it");
        frame.extend_from_slice(&[1; 16]).expect("room");
    }
    assert_eq!(frame.as_ptr(), start);
    assert!(frame.iter().all(|&byte| byte == 1));
}
