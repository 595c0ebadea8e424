//! Every byte of a pool goes back to the allocator, exactly once, with the layout that it was taken
//! with, and not while a buffer is out; and a pool in its steady state does not call the allocator
//! at all.
//!
//! One after another, without the test harness: it allocates too.
#![allow(
    clippy::std_instead_of_alloc,
    clippy::std_instead_of_core,
    reason = "tests have an operating system"
)]

use std::sync::mpsc;
use std::thread;

use bufshard::ShardPool;
use buftest::alloc::Ledger;
use buftest::trials::shared_books::{SharedBooks, Special};

#[global_allocator]
static LEDGER: Ledger = Ledger::new();

/// Large, so that it stands out from all bookkeeping.
const BYTES: usize = 1 << 20;
const LARGEST_BYTES: usize = 16 << 20;

type Books = SharedBooks<ShardPool>;

fn pool() -> ShardPool {
    ShardPool::builder().largest_pooled(LARGEST_BYTES).build().expect("settings are right")
}

/// Threads that end with buffers out, of pools that are there and of pools that are gone.
fn threads_end(books: &Books) {
    let base = books.bytes();
    let pool = books.pool();
    for pool_first in [false, true] {
        let theirs = if pool_first { books.pool() } else { pool.clone() };
        let bufs = thread::spawn(move || {
            // What is idle goes to the shards, or with the pool.
            drop(theirs.acquire(BYTES));
            [theirs.acquire(BYTES), theirs.acquire(BYTES)]
        });
        let bufs = bufs.join().expect("the thread ends well");
        books.holds(base, 2, "of a thread that ended");
        drop(bufs);
        pool.trim();
        books.holds(base, 0, "after the last");
    }
}

/// The pool is dropped here while the thread that has a cache lives on and does nothing.
fn owner_lives(books: &Books) {
    let base = books.bytes();
    let pool = books.pool();
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
    books.holds(base, 6, "of two threads");
    drop(pool);
    books.holds(base, 4, "when the idle ones went with the pool");
    drop(bufs);
    books.holds(base, 2, "when the owner has some");
    go.send(()).expect("the other side waits");
    go.send(()).expect("the other side waits");
    owner.join().expect("the thread ends well");
    books.holds(base, 0, "at the end");
}

/// `trim` and `trim_to` give back what holds nothing, of a thread that does nothing too.
fn trimmed(books: &Books) {
    let base = books.bytes();
    let pool = books.pool();
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
    books.holds(base, 16, "in two caches and in shards");
    pool.trim_to(6 * BYTES);
    books.holds(base, 5, "after `trim_to`");
    pool.trim();
    books.holds(base, 0, "after `trim`");
    go.send(()).expect("the other side waits");
    other.join().expect("the thread ends well");
    drop(pool);
}

fn main() {
    let books = Books {
        ledger: &LEDGER,
        make: pool,
        piece: BYTES,
        usual: BYTES,
        // A block for each.
        pieces: |buffers| buffers,
        // In several classes.
        many: |n| 1000 * (n % 4 + 1),
        single: 2 * LARGEST_BYTES,
        // Every class once.
        warm_up: 1000,
        // What is on the list of the thread: the head of a cache, with what tells the thread that
        // the pool is gone.
        kept: 120,
        // One more where a round finds more of them under way than any before: on the queue and in
        // the caches at the most.
        late_calls: 32,
    };
    let special: [Special<ShardPool>; 3] = [
        ("threads that end", threads_end),
        ("a pool whose owner lives", owner_lives),
        ("memory that is trimmed", trimmed),
    ];
    books.check(&special, cfg!(not(feature = "track")));
}
