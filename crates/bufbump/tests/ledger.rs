//! Every byte of a pool goes back to the allocator, exactly once, with the layout that it was taken
//! with, and not while a buffer is out. A pool in its steady state does not call the allocator
//! at all.
//!
//! One after another, without the test harness: it allocates too.
#![allow(
    clippy::std_instead_of_alloc,
    clippy::std_instead_of_core,
    reason = "tests have an operating system"
)]

use std::sync::{Arc, mpsc};
use std::thread;

use bufbump::BumpPool;
use bufkit::orphan;
use testkit::alloc::Ledger;
use testkit::source::FromAllocator;
use testkit::trials::books::{self, Special};

#[global_allocator]
static LEDGER: Ledger = Ledger::new();

const SHARD_BYTES: usize = 1 << 16;
/// What a pool costs without memory.
const POOL_BYTES: usize = 3072;
/// Bookkeeping.
const SLACK_BYTES: usize = 1 << 13;

type Books = books::Books<BumpPool>;

fn pool() -> BumpPool {
    let builder = BumpPool::builder().shard_size(SHARD_BYTES - 64).max_idle_bytes(4 * SHARD_BYTES);
    // The ledger has what comes from the allocator.
    builder.build_from(Arc::new(FromAllocator)).expect("settings are right")
}

/// Asserts that some shard is out, beside `base` bytes.
#[track_caller]
fn holds_some(books: &Books, base: usize, when: &str) {
    let bytes = books.bytes();
    assert!(bytes + SLACK_BYTES >= base + SHARD_BYTES, "{bytes} bytes are out, {base} were before: {when}");
}

/// Threads that end with buffers out, of pools that are there and of pools that are gone.
fn threads_end(books: &Books) {
    let base = books.bytes();
    let pool = books.pool();
    for pool_first in [false, true] {
        let theirs = if pool_first { books.pool() } else { pool.clone() };
        let bufs =
            thread::spawn(move || [theirs.acquire(100), theirs.acquire(SHARD_BYTES), theirs.acquire(100)]);
        let bufs = bufs.join().expect("the thread ends well");
        for buf in bufs {
            holds_some(books, base, "a buffer is out");
            drop(buf.expect("room"));
        }
    }
    pool.trim();
    books.holds(base, 0, "after the last buffer");
}

/// The pool is dropped here while the thread that has its shards lives on.
fn owner_lives(books: &Books) {
    let base = books.bytes();
    let pool = books.pool();
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
    holds_some(books, base, "buffers are out");
    drop(bufs);
    holds_some(books, base, "the owner has some");
    go.send(()).expect("the other side waits");
    go.send(()).expect("the other side waits");
    owner.join().expect("the thread ends well");
    orphan::sweep();
    assert_eq!(orphan::pending(), 0);
    books.holds(base, 0, "after the last buffer");
}

/// `trim` gives back what holds nothing.
fn trimmed(books: &Books) {
    let base = books.bytes();
    let pool = books.pool();
    let bufs: [_; 8] = std::array::from_fn(|_| pool.acquire(SHARD_BYTES).expect("room"));
    drop(bufs);
    holds_some(books, base + SHARD_BYTES, "shards are kept for later");
    pool.trim();
    let bytes = books.bytes();
    assert!(bytes < base + 2 * SHARD_BYTES, "{} bytes are out after `trim`", bytes - base);
}

/// Buffers larger than a shard whose memory the pool keeps, and some that outlive the pool, on the
/// thread that has them and on another.
fn larger_buffers(books: &Books) {
    let base = books.bytes();
    for elsewhere in [false, true] {
        let pool = books.pool();
        let large = || pool.acquire(2 * SHARD_BYTES - 100).expect("room");
        drop([large(), large()]);
        let bytes = books.bytes();
        assert!(bytes >= base + 4 * SHARD_BYTES, "{} bytes are kept", bytes - base);
        let bufs = [large(), large()];
        let theirs = pool.clone();
        let other = thread::spawn(move || theirs.acquire(2 * SHARD_BYTES).expect("room"));
        let third = other.join().expect("the thread ends well");
        drop(pool);
        holds_some(books, base + 5 * SHARD_BYTES, "three are out");
        let release = move || drop((bufs, third));
        if elsewhere {
            thread::spawn(release).join().expect("dropping does not panic")
        } else {
            release()
        }
        orphan::sweep();
        books.holds(base, 0, "after the last buffer");
    }
}

/// What pools cost beside their memory: the figures in the head of the crate's documentation.
fn bookkeeping(books: &Books) {
    // What a thread sets up once, and what aligns the memory here.
    const SLACK: usize = 128 + 4096;
    // What a heap has for each page.
    const PER_PAGE: usize = 32;
    drop(books.pool().acquire(100));
    let start = books.bytes();
    let pool = books.pool();
    let mut last = start;
    let mut added = |what: &str, memory: usize, at_most: usize| {
        let now = books.bytes();
        let more = (now - last).saturating_sub(memory + memory / 4096 * PER_PAGE);
        last = now;
        println!("bookkeeping of {what}: {more} bytes");
        assert!(more <= at_most + SLACK, "{more} bytes for {what}, not {at_most}");
    };
    added("a pool", 0, POOL_BYTES);
    let small = pool.acquire(100).expect("room");
    added("a thread that touched a shard", SHARD_BYTES, 144 + 256);
    let large = pool.acquire(2 * SHARD_BYTES - 64).expect("room");
    added("a larger buffer, the first", 2 * SHARD_BYTES, 0);
    let second = pool.acquire(2 * SHARD_BYTES - 64).expect("room");
    added("a larger buffer", 2 * SHARD_BYTES, 0);
    drop((small, large, second));
}

fn main() {
    let books = Books {
        ledger: &LEDGER,
        make: pool,
        handle: |pool| Some(pool.clone()),
        piece: SHARD_BYTES,
        usual: 1000,
        // All in one shard.
        pieces: |buffers| buffers.min(1),
        many: |n| SHARD_BYTES / (n % 2 + 2),
        single: 2 * SHARD_BYTES,
        warm_up: 0,
        // The bookkeeping of a pool, with one header and one cache, and with what `stats` and
        // `track` add.
        kept: POOL_BYTES + if cfg!(feature = "track") { 1400 } else { 900 },
        late_calls: 0,
    };
    let special: [Special<BumpPool>; 5] = [
        ("threads that end", threads_end),
        ("a pool whose owner lives", owner_lives),
        ("memory that is trimmed", trimmed),
        ("larger buffers", larger_buffers),
        ("bookkeeping", |books| {
            if cfg!(not(any(feature = "stats", feature = "track"))) {
                bookkeeping(books)
            }
        }),
    ];
    books.check(&special, cfg!(not(feature = "track")));
}
