//! Every byte of a pool goes back to the allocator, exactly once, with the layout that it was taken with, and not while a buffer
//! is out; and a pool in its steady state does not call the allocator at all.
//!
//! One after another, without the test harness: it allocates too.
#![allow(
    clippy::std_instead_of_alloc,
    clippy::std_instead_of_core,
    reason = "tests have an operating system"
)]

use std::hint;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread::{self, JoinHandle};

use bufcore::{BufferPool, FrameBuffer, Region, Reject, strategy::orphans};
use bufslot::{Builder, SlotPool};
use buftest::alloc::Ledger;
use buftest::pattern;

#[global_allocator]
static LEDGER: Ledger = Ledger::new();

const CAPACITY: usize = 1 << 16;

fn pool() -> SlotPool {
    SlotPool::new(CAPACITY, 16).expect("settings are right")
}

/// Runs `body` twice, and asserts that the second time leaves nothing out: the first pays for what threads set up once.
#[track_caller]
fn balanced(what: &str, body: impl Fn()) {
    body();
    orphans::sweep();
    let before = LEDGER.outstanding();
    body();
    orphans::sweep();
    assert_eq!(LEDGER.outstanding(), before, "blocks and bytes out after {what}");
    println!("{what}: ok");
}

/// Drops `value` on another thread. Joined, not scoped: a scope ends a little before its threads have let go of everything.
fn drop_elsewhere<T: Send + 'static>(value: T) -> JoinHandle<()> {
    thread::spawn(move || drop(value))
}

fn join(handle: JoinHandle<()>) {
    handle.join().expect("dropping does not panic");
}

#[track_caller]
fn holds_memory(base: usize, what: &str) {
    let (_, bytes) = LEDGER.outstanding();
    assert!(bytes >= base + CAPACITY, "the region went while {what}: {} bytes are out", bytes - base);
}

fn pool_last() {
    let mut pool = pool();
    let bufs: [_; 4] = std::array::from_fn(|_| pool.acquire(100).expect("room"));
    bufs.map(drop_elsewhere).into_iter().for_each(join);
    drop(pool.acquire(2 * CAPACITY).expect("the heap has room"));
}

fn pool_first() {
    let (_, base) = LEDGER.outstanding();
    let mut pool = pool();
    let mut bufs: [_; 4] = std::array::from_fn(|_| pool.acquire(1000).expect("room"));
    for (seed, buf) in (0..).zip(&mut bufs) {
        pattern::fill(buf.spare_mut(), seed, 0);
        buf.advance(1000);
    }
    let spilled = pool.acquire(2 * CAPACITY).expect("the heap has room");
    pool.writable(50).expect("room").fill(1);
    drop(pool);
    drop(spilled);
    for (seed, buf) in (0..).zip(bufs) {
        holds_memory(base, "a buffer is out");
        pattern::check(&buf, seed, 0);
        join(drop_elsewhere(buf));
    }
    let (_, bytes) = LEDGER.outstanding();
    assert!(
        bytes < base + CAPACITY,
        "the region stays after the last buffer: {} bytes are out",
        bytes - base
    );
}

fn views_last() {
    let (_, base) = LEDGER.outstanding();
    let mut pool = pool();
    let mut buf = pool.acquire(1000).expect("room");
    buf.resize(1000, 7).expect("asked for");
    let mut view = buf.freeze();
    let parts = [view.split_to(10), view.clone(), view.slice(5..6), view];
    drop(pool);
    for part in parts {
        holds_memory(base, "a view is out");
        assert!(part.iter().all(|&byte| byte == 7));
        join(drop_elsewhere(part));
    }
}

/// The pool and its buffers go at the same moment.
fn races() {
    for round in 0..300 {
        let mut pool = pool();
        let bufs: Vec<_> = (0..round % 5 + 1).map(|_| pool.acquire(100).expect("room")).collect();
        let ending: Vec<_> = bufs.into_iter().map(drop_elsewhere).collect();
        drop(pool);
        ending.into_iter().for_each(join);
    }
}

fn refused_and_given_back() {
    let region = Region::heap(100, 4096).expect("room");
    let refused = Builder::new().slots(100).build_in(region, Reject).expect_err("too small");
    assert_eq!(refused.region.len(), 100);
    let pool = pool();
    let region = pool.into_region().expect("nothing is out");
    drop(region);
    let mut pool = self::pool();
    let buf = pool.acquire(1).expect("room");
    drop(pool.into_region().expect_err("a buffer is out"));
    drop(buf);
}

/// No call of the allocator per operation, on either side of a hand-over.
fn steady_state() {
    const ROUNDS: usize = 10_000;
    let mut pool =
        SlotPool::builder().capacity(CAPACITY).slots(64).build_with(Reject).expect("settings are right");
    let before = LEDGER.calls();
    for round in 0..ROUNDS {
        let mut buf = pool.acquire(64 + round % 1000).expect("room");
        buf.extend_from_slice(b"bytes").expect("room");
        let other = pool.acquire(1).expect("room");
        pool.writable(8).expect("room").fill(1);
        pool.writable(100).expect("room").fill(2);
        let view = pool.detach().expect("never fails").freeze();
        let part = view.slice(2..5);
        drop((view, other));
        let thawed = buf.freeze().try_thaw().expect("the only view");
        drop((thawed, part));
    }
    assert_eq!(LEDGER.calls(), before, "calls of the allocator in {ROUNDS} rounds on one thread");
    // Dropped on another thread, through a queue that was made before.
    let (mut producer, mut consumer) = rtrb::RingBuffer::new(16);
    let started = AtomicBool::new(false);
    thread::scope(|scope| {
        let started = &started;
        scope.spawn(move || {
            // ORDER: SeqCst, for ease.
            started.store(true, SeqCst);
            let mut got = 0;
            while got < ROUNDS {
                got += usize::from(consumer.pop().is_ok());
            }
        });
        // ORDER: SeqCst, for ease.
        while !started.load(SeqCst) {
            hint::spin_loop();
        }
        let before = LEDGER.calls();
        for _ in 0..ROUNDS {
            let mut item = pool.acquire(100).expect("at most sixteen are on their way").freeze();
            while let Err(rtrb::PushError::Full(back)) = producer.push(item) {
                item = back;
                thread::yield_now();
            }
        }
        assert_eq!(LEDGER.calls(), before, "calls of the allocator in {ROUNDS} rounds across threads");
    });
    println!("steady state: ok");
}

fn main() {
    balanced("pools that go last", pool_last);
    balanced("pools that go first", pool_first);
    balanced("views that go last", views_last);
    balanced("pools and buffers that race", races);
    balanced("regions that come back", refused_and_given_back);
    if cfg!(not(feature = "track")) {
        steady_state();
    }
    // Once more with freed blocks kept back, so that none is used again by chance.
    LEDGER.keep(true);
    balanced("pools that go first, blocks kept", pool_first);
    balanced("views that go last, blocks kept", views_last);
}
