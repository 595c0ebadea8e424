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

use bufshard::ShardPool;
use buftest::alloc::Ledger;
use buftest::pattern;

#[global_allocator]
static LEDGER: Ledger = Ledger::new();

/// Large, so that it stands out from all bookkeeping.
const BYTES: usize = 1 << 20;

fn pool() -> ShardPool {
    ShardPool::new().expect("settings are right")
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
}

/// Drops `value` on another thread. Joined, not scoped: a scope ends a little before its threads have let go of everything.
fn drop_elsewhere<T: Send + 'static>(value: T) -> JoinHandle<()> {
    thread::spawn(move || drop(value))
}

fn join(handle: JoinHandle<()>) {
    handle.join().expect("dropping does not panic");
}

/// Asserts that so many buffers' memory is out.
#[track_caller]
fn holds(base: usize, buffers: usize, what: &str) {
    let (_, bytes) = LEDGER.outstanding();
    // Bookkeeping comes, and that of earlier pools goes.
    let held = (bytes + BYTES / 4 - base) / BYTES;
    assert_eq!(held, buffers, "{bytes} bytes are out, {base} were before: {what}");
}

fn pool_last() {
    let pool = pool();
    let bufs: [_; 4] = std::array::from_fn(|_| pool.acquire(100).expect("room"));
    bufs.map(drop_elsewhere).into_iter().for_each(join);
    // More than are kept, in several classes, and one that is not pooled.
    let bufs: [_; 40] = std::array::from_fn(|n| pool.acquire(1000 * (n % 4 + 1)).expect("room"));
    drop(bufs);
    drop(pool.acquire(100 << 20).expect("the heap has room"));
}

fn pool_first() {
    let (_, base) = LEDGER.outstanding();
    let pool = pool();
    let mut bufs: [_; 4] = std::array::from_fn(|_| pool.acquire(BYTES).expect("room"));
    for (seed, buf) in (0..).zip(&mut bufs) {
        pattern::fill(buf.spare_mut(), seed, 0);
        buf.advance(BYTES);
    }
    let idle = pool.acquire(BYTES).expect("room");
    drop(idle);
    holds(base, 5, "while the pool is there");
    drop(pool);
    for ((seed, buf), left) in (0..).zip(bufs).zip((1..=4).rev()) {
        holds(base, left, "while they are buffers");
        pattern::check(&buf, seed, 0);
        join(drop_elsewhere(buf));
    }
    holds(base, 0, "at the end");
}

fn parts_and_views_last() {
    let (_, base) = LEDGER.outstanding();
    let pool = pool();
    let mut buf = pool.acquire(BYTES).expect("room");
    buf.resize(1000, 7).expect("asked for");
    let front = buf.split_to(300);
    let mut view = buf.freeze();
    let parts = [front.freeze(), view.split_to(10), view.clone(), view.slice(5..6), view];
    drop(pool);
    for part in parts {
        holds(base, 1, "while a view is");
        assert!(part.iter().all(|&byte| byte == 7));
        join(drop_elsewhere(part));
    }
    holds(base, 0, "at the end");
}

/// Threads that end with buffers out, of pools that are there and of pools that are gone.
fn threads_end() {
    let (_, base) = LEDGER.outstanding();
    let pool = pool();
    for pool_first in [false, true] {
        let theirs = if pool_first { self::pool() } else { pool.clone() };
        let bufs = thread::spawn(move || {
            // What is idle goes to the shards, or with the pool.
            drop(theirs.acquire(BYTES));
            [theirs.acquire(BYTES), theirs.acquire(BYTES)]
        });
        let bufs = bufs.join().expect("the thread ends well");
        holds(base, 2, "of a thread that ended");
        drop(bufs);
        pool.trim();
        holds(base, 0, "after the last");
    }
}

/// The pool is dropped here while the thread that has a cache lives on and does nothing.
fn owner_lives() {
    let (_, base) = LEDGER.outstanding();
    let pool = pool();
    let (to_here, from_there) = mpsc::channel();
    let (go, wait) = mpsc::channel::<()>();
    let theirs = pool.clone();
    let owner = thread::spawn(move || {
        let bufs: [_; 6] = std::array::from_fn(|_| theirs.acquire(BYTES).expect("room"));
        let mut bufs = Vec::from(bufs);
        // Two stay in its cache.
        bufs.truncate(4);
        drop(theirs);
        to_here.send(bufs.split_off(2)).expect("the other side waits");
        wait.recv().expect("the other side sends");
        drop(bufs);
        wait.recv().expect("the other side sends");
    });
    let bufs = from_there.recv().expect("the other side sends");
    holds(base, 6, "of two threads");
    drop(pool);
    holds(base, 4, "when the idle ones went with the pool");
    drop(bufs);
    holds(base, 2, "when the owner has some");
    go.send(()).expect("the other side waits");
    go.send(()).expect("the other side waits");
    join(owner);
    holds(base, 0, "at the end");
}

/// The pool and its buffers go at the same moment, on the thread that acquired and on others.
fn races() {
    for round in 0..300 {
        let pool = pool();
        let mut bufs: Vec<_> = (0..round % 5 + 1).map(|_| pool.acquire(100).expect("room")).collect();
        let mine = bufs.pop();
        let theirs = pool.clone();
        let owner = thread::spawn(move || {
            let bufs: Vec<_> = (0..round % 7).map(|_| theirs.acquire(3000).expect("room")).collect();
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

/// `trim` and `trim_to` give back what holds nothing, of a thread that does nothing too.
fn trimmed() {
    let (_, base) = LEDGER.outstanding();
    let pool = pool();
    let (to_here, from_there) = mpsc::channel();
    let (go, wait) = mpsc::channel::<()>();
    let theirs = pool.clone();
    let other = thread::spawn(move || {
        let bufs: [_; 4] = std::array::from_fn(|_| theirs.acquire(BYTES).expect("room"));
        drop(bufs);
        to_here.send(()).expect("the other side waits");
        wait.recv().expect("the other side sends");
        // As good as new.
        drop(theirs.acquire(BYTES));
    });
    from_there.recv().expect("the other side sends");
    let bufs: [_; 12] = std::array::from_fn(|_| pool.acquire(BYTES).expect("room"));
    drop(bufs);
    holds(base, 16, "in two caches and in shards");
    pool.trim_to(6 * BYTES);
    holds(base, 5, "after `trim_to`");
    pool.trim();
    holds(base, 0, "after `trim`");
    go.send(()).expect("the other side waits");
    join(other);
    drop(pool);
}

/// No call of the allocator per operation, on either side of a hand-over.
fn steady_state() {
    const ROUNDS: usize = 10_000;
    let pool = pool();
    let round = |round: usize| {
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
    };
    // Every class once, and then nothing.
    (0..1000).for_each(round);
    let before = LEDGER.calls();
    (0..ROUNDS).for_each(round);
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
        // The first rounds take the blocks that go round then.
        send(ROUNDS / 2);
        let before = LEDGER.calls();
        send(ROUNDS / 2);
        // One more where a round finds more of them under way than any before: on the queue and in the caches at the most.
        let calls = LEDGER.calls() - before;
        assert!(calls <= 32, "{calls} calls of the allocator in {ROUNDS} rounds across threads");
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
