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
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use bufbump::BumpPool;
use bufbump::bufcore::strategy::orphans;
use buftest::alloc::Ledger;
use buftest::pattern;

#[global_allocator]
static LEDGER: Ledger = Ledger::new();

const SHARD_BYTES: usize = 1 << 16;
/// Bookkeeping.
const SLACK_BYTES: usize = 1 << 13;

fn pool() -> BumpPool {
    BumpPool::builder()
        .shard_size(SHARD_BYTES)
        .idle_bytes(4 * SHARD_BYTES)
        .build()
        .expect("settings are right")
}

/// Runs `body` twice, and asserts that the second time leaves nothing out: the first pays for what threads set up once.
#[track_caller]
fn balanced(what: &str, body: impl Fn()) {
    body();
    settle();
    let before = LEDGER.outstanding();
    body();
    settle();
    assert_eq!(LEDGER.outstanding(), before, "blocks and bytes out after {what}");
    println!("{what}: ok");
}

/// Lets this thread let go of the bookkeeping of pools that ended elsewhere, as it does when it uses others.
fn settle() {
    for _ in 0..64 {
        drop(pool().acquire(1));
    }
    orphans::sweep();
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
    assert!(
        bytes + SLACK_BYTES >= base + SHARD_BYTES,
        "the shard went while {what}: {} bytes are out",
        bytes - base
    );
}

#[track_caller]
fn holds_none(base: usize) {
    let (_, bytes) = LEDGER.outstanding();
    assert!(
        bytes < base + SHARD_BYTES,
        "a shard stays after its last buffer: {} bytes are out",
        bytes - base
    );
}

fn pool_last() {
    let pool = pool();
    let bufs: [_; 4] = std::array::from_fn(|_| pool.acquire(100).expect("room"));
    bufs.map(drop_elsewhere).into_iter().for_each(join);
    // Many shards, some of which are kept, and one request larger than all.
    let bufs: [_; 20] = std::array::from_fn(|_| pool.acquire(SHARD_BYTES / 2).expect("room"));
    drop(bufs);
    drop(pool.acquire(2 * SHARD_BYTES).expect("the heap has room"));
}

fn pool_first() {
    let (_, base) = LEDGER.outstanding();
    let pool = pool();
    let mut bufs: [_; 4] = std::array::from_fn(|_| pool.acquire(1000).expect("room"));
    for (seed, buf) in (0..).zip(&mut bufs) {
        pattern::fill(buf.spare_mut(), seed, 0);
        buf.advance(1000);
    }
    let single = pool.acquire(2 * SHARD_BYTES).expect("the heap has room");
    drop(pool);
    drop(single);
    for (seed, buf) in (0..).zip(bufs) {
        holds_memory(base, "a buffer is out");
        pattern::check(&buf, seed, 0);
        join(drop_elsewhere(buf));
    }
    holds_none(base);
}

fn parts_and_views_last() {
    let (_, base) = LEDGER.outstanding();
    let pool = pool();
    let mut buf = pool.acquire(1000).expect("room");
    buf.resize(1000, 7).expect("asked for");
    let front = buf.split_to(300);
    let mut view = buf.freeze();
    let parts = [front.freeze(), view.split_to(10), view.clone(), view.slice(5..6), view];
    drop(pool);
    for part in parts {
        holds_memory(base, "a view is out");
        assert!(part.iter().all(|&byte| byte == 7));
        join(drop_elsewhere(part));
    }
    holds_none(base);
}

/// Threads that end with buffers out, of pools that are there and of pools that are gone.
fn threads_end() {
    let (_, base) = LEDGER.outstanding();
    let pool = pool();
    for pool_first in [false, true] {
        let theirs = if pool_first { self::pool() } else { pool.clone() };
        let bufs =
            thread::spawn(move || [theirs.acquire(100), theirs.acquire(SHARD_BYTES), theirs.acquire(100)]);
        let bufs = bufs.join().expect("the thread ends well");
        for buf in bufs {
            holds_memory(base, "a buffer is out");
            drop(buf.expect("room"));
        }
    }
    pool.trim();
    holds_none(base);
}

/// The pool is dropped here while the thread that has its shards lives on.
fn owner_lives() {
    let (_, base) = LEDGER.outstanding();
    let pool = pool();
    let (to_here, from_there) = mpsc::channel();
    let (go, wait) = mpsc::channel::<()>();
    let theirs = pool.clone();
    let owner = thread::spawn(move || {
        // Several shards, the first two of which it carves no more.
        let bufs: [_; 6] = std::array::from_fn(|_| theirs.acquire(SHARD_BYTES / 2).expect("room"));
        drop(theirs);
        let mut bufs = Vec::from(bufs);
        to_here.send(bufs.split_off(3)).expect("the other side waits");
        wait.recv().expect("the other side sends");
        drop(bufs);
        wait.recv().expect("the other side sends");
    });
    let bufs = from_there.recv().expect("the other side sends");
    drop(pool);
    holds_memory(base, "buffers are out");
    drop(bufs);
    holds_memory(base, "the owner has some");
    go.send(()).expect("the other side waits");
    go.send(()).expect("the other side waits");
    join(owner);
    orphans::sweep();
    assert_eq!(orphans::pending(), 0);
    holds_none(base);
}

/// The pool and its buffers go at the same moment, on the thread that acquired and on others.
fn races() {
    for round in 0..300 {
        let pool = pool();
        let mut bufs: Vec<_> = (0..round % 5 + 1).map(|_| pool.acquire(100).expect("room")).collect();
        let mine = bufs.pop();
        let theirs = pool.clone();
        let owner = thread::spawn(move || {
            let bufs: Vec<_> =
                (0..round % 7).map(|_| theirs.acquire(SHARD_BYTES / 3).expect("room")).collect();
            drop(theirs);
            drop(bufs);
        });
        let ending: Vec<_> = bufs.into_iter().map(drop_elsewhere).collect();
        drop(pool);
        drop(mine);
        ending.into_iter().for_each(join);
        join(owner);
    }
}

/// `trim` and `clear` give back what holds nothing.
fn trimmed() {
    let (_, base) = LEDGER.outstanding();
    let pool = pool();
    let bufs: [_; 8] = std::array::from_fn(|_| pool.acquire(SHARD_BYTES).expect("room"));
    drop(bufs);
    holds_memory(base + SHARD_BYTES, "shards are kept for later");
    pool.trim();
    let (_, bytes) = LEDGER.outstanding();
    assert!(bytes < base + 2 * SHARD_BYTES, "{} bytes are out after `trim`", bytes - base);
    let bufs: [_; 4] = std::array::from_fn(|_| pool.acquire(SHARD_BYTES).expect("room"));
    pool.clear();
    drop(bufs);
    let (_, bytes) = LEDGER.outstanding();
    assert!(bytes < base + 2 * SHARD_BYTES, "{} bytes are out after `clear`", bytes - base);
}

/// No call of the allocator per operation, on either side of a hand-over.
fn steady_state() {
    const ROUNDS: usize = 10_000;
    let pool = pool();
    drop(pool.acquire(1));
    let before = LEDGER.calls();
    for round in 0..ROUNDS {
        let mut buf = pool.acquire(64 + round % 1000).expect("room");
        buf.extend_from_slice(b"bytes of a chunk").expect("room");
        let other = pool.acquire(1).expect("room");
        let front = buf.split_to(5);
        let view = front.freeze();
        let part = view.slice(2..5);
        drop((view, other));
        drop(part);
        let thawed = buf.freeze().try_thaw().expect("the only handle");
        drop(thawed);
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
        let mut send = |rounds| {
            for _ in 0..rounds {
                let mut item = pool.acquire(100).expect("at most sixteen are on their way").freeze();
                while let Err(rtrb::PushError::Full(back)) = producer.push(item) {
                    item = back;
                    thread::yield_now();
                }
            }
        };
        // The first rounds take the shards that go round then.
        send(ROUNDS / 2);
        let before = LEDGER.calls();
        send(ROUNDS / 2);
        assert_eq!(LEDGER.calls(), before, "calls of the allocator in {ROUNDS} rounds across threads");
    });
    println!("steady state: ok");
}

/// Makes this thread wait in a channel: the standard library keeps a block for that from then on, and would take it at whichever
/// wait is the first that really has to.
fn wait_once() {
    let (sender, receiver) = mpsc::channel::<()>();
    assert!(receiver.recv_timeout(Duration::from_millis(1)).is_err());
    drop(sender);
}

fn main() {
    wait_once();
    balanced("pools that go last", pool_last);
    balanced("pools that go first", pool_first);
    balanced("parts and views that go last", parts_and_views_last);
    balanced("threads that end", threads_end);
    balanced("a pool whose owner lives", owner_lives);
    balanced("pools and buffers that race", races);
    balanced("memory that is trimmed", trimmed);
    if cfg!(not(feature = "track")) {
        steady_state();
    }
    // Once more with freed blocks kept back, so that none is used again by chance.
    LEDGER.keep(true);
    balanced("pools that go first, blocks kept", pool_first);
    balanced("parts and views that go last, blocks kept", parts_and_views_last);
    balanced("a pool whose owner lives, blocks kept", owner_lives);
}
