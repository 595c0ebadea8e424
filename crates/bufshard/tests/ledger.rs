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

use std::alloc::{GlobalAlloc, Layout};
use std::cell::RefCell;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use bufshard::{ShardBuf, ShardPool};
use testkit::alloc::Ledger;
use testkit::source::FromAllocator;
use testkit::trials::books::{self, Special};

static LEDGER: Ledger = Ledger::new();

/// The ledger, with a program of the test's in one of its calls.
struct Interrupted;

#[global_allocator]
static ALLOCATOR: Interrupted = Interrupted;

type Action = Box<dyn FnOnce()>;

thread_local! {
    /// What this thread's next call for this number of bytes does.
    static NEXT: RefCell<Option<(usize, Action)>> = const { RefCell::new(None) };
}

impl Interrupted {
    fn call(bytes: usize) {
        let due = |next: &RefCell<Option<(usize, Action)>>| {
            next.try_borrow_mut().ok()?.take_if(|next| next.0 == bytes)
        };
        if let Ok(Some((_, action))) = NEXT.try_with(due) {
            action();
        }
    }
}

// SAFETY: every call goes to the ledger as it came, after code that has nothing to do with it.
unsafe impl GlobalAlloc for Interrupted {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        Self::call(layout.size());
        // SAFETY: the caller's promise.
        unsafe { LEDGER.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        Self::call(layout.size());
        // SAFETY: the caller's promise.
        unsafe { LEDGER.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, bytes: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { LEDGER.dealloc(bytes, layout) }
    }
}

/// Large, so that it stands out from all bookkeeping.
const BYTES: usize = 1 << 20;
const LARGEST_BYTES: usize = 16 << 20;

type Books = books::Books<ShardPool>;

fn pool() -> ShardPool {
    let builder = ShardPool::builder().largest_pooled(LARGEST_BYTES);
    // The ledger has what comes from the allocator.
    builder.build_from(Arc::new(FromAllocator)).expect("settings are right")
}

/// Threads that end with buffers out, of pools that are there and of pools that are gone.
fn threads_end(books: &Books) {
    let base = books.bytes();
    let pool = books.pool();
    for pool_first in [false, true] {
        let theirs = if pool_first { books.pool() } else { pool.clone() };
        let bufs = thread::spawn(move || {
            // Idle memory goes to the shards, or with the pool.
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
    // Two of them were in the shards already.
    books.holds(base, 14, "in two caches and in shards");
    pool.trim_to(6 * BYTES);
    books.holds(base, 5, "after `trim_to`");
    pool.trim();
    books.holds(base, 0, "after `trim`");
    go.send(()).expect("the other side waits");
    other.join().expect("the thread ends well");
    drop(pool);
}

fn burst(pool: &ShardPool, count: usize, bytes: usize) -> Vec<ShardBuf> {
    (0..count).map(|_| pool.acquire(bytes).expect("room")).collect()
}

/// Caches with slots of every kind, of threads that end first and last, and of one that is idle.
fn grown(_books: &Books) {
    let pool = ShardPool::new().expect("settings are right");
    let grow = |pool: &ShardPool| {
        for _ in 0..16 {
            drop((burst(pool, 300, 100), burst(pool, 50, 1000)));
        }
    };
    let theirs = pool.clone();
    thread::spawn(move || grow(&theirs)).join().expect("the thread ends well");
    grow(&pool);
    let idle: usize = pool.class_stats().iter().map(|class| class.thread_idle).sum();
    assert!(idle > 300, "they grew");
    for _ in 0..3 {
        drop(burst(&pool, 10, 100));
        pool.trim_idle(Duration::ZERO);
    }
    grow(&pool);
    let (to_here, from_there) = mpsc::channel();
    let (go, wait) = mpsc::channel::<()>();
    let theirs = pool.clone();
    let sleeper = thread::spawn(move || {
        grow(&theirs);
        drop(theirs);
        to_here.send(()).expect("the other side waits");
        wait.recv().expect("the other side sends");
    });
    from_there.recv().expect("the other side sends");
    drop(pool);
    go.send(()).expect("the other side waits");
    sleeper.join().expect("the thread ends well");
}

/// A request brings an array for its magazine, which is in another one; and finds that the store
/// has become free.
fn two_arrays(_books: &Books) {
    let pool = ShardPool::new().expect("settings are right");
    let mut held = burst(&pool, 203, 5000);
    // The store is full, one class after another.
    for bytes in (4..10).flat_map(|doubling| (5..9).map(move |quarter| quarter << doubling)) {
        drop(burst(&pool, 2, bytes));
    }
    // The third trip in a row is the one that gives the magazine an array of four.
    held.truncate(200);
    held.extend(burst(&pool, 3, 5000));
    pool.trim_idle(Duration::ZERO);
    // Full, and then empty.
    held.truncate(198);
    held.extend(burst(&pool, 1, 5000));
    // Eight slots and their number.
    let theirs = pool.clone();
    NEXT.set(Some((9 * size_of::<usize>(), Box::new(move || theirs.trim_idle(Duration::ZERO)))));
    held.extend(burst(&pool, 1, 5000));
    assert!(NEXT.take().is_none(), "no array of eight slots was allocated");
    drop(held);
}

/// Where caches may not grow any more, nothing is allocated in vain.
fn steady_at_the_bound(books: &Books) {
    let builder = ShardPool::builder().max_cached_bytes(1 << 20).shards(4).shard_buffers(256);
    let pool = builder.build().expect("settings are right");
    let mut held = Vec::with_capacity(600);
    let mut round = || {
        held.extend((0..600).map(|_| pool.acquire(4096).expect("room")));
        held.clear();
    };
    (0..24).for_each(|_| round());
    let before = books.ledger.calls();
    (0..24).for_each(|_| round());
    // The leak tracker allocates.
    if cfg!(not(feature = "track")) {
        assert_eq!(books.ledger.calls(), before, "calls of the allocator where caches have all they may");
    }
}

/// A thread that touched one class once costs less than a page; counters of each class cost more.
fn what_threads_cost(books: &Books) {
    let [of_pool, of_thread] =
        if cfg!(feature = "stats") { [18 << 10, 10 << 10] } else { [10 << 10, 4 << 10] };
    books.cost(of_pool, of_thread, cfg!(not(feature = "track")));
}

fn main() {
    let books = Books {
        ledger: &LEDGER,
        make: pool,
        handle: |pool| Some(pool.clone()),
        piece: BYTES,
        usual: BYTES,
        // A block for each.
        pieces: |buffers| buffers,
        // In several classes.
        many: |n| 1000 * (n % 4 + 1),
        single: 2 * LARGEST_BYTES,
        // Every class once.
        warm_up: 1000,
        // The bookkeeping of a pool, with one cache, and with what `stats` and `track` add.
        kept: if cfg!(feature = "stats") { 21 << 10 } else { 10 << 10 },
        // One more where a round finds more of them under way than any before: on the queue and in
        // the caches at most.
        late_calls: 32,
    };
    let special: [Special<ShardPool>; 7] = [
        ("what threads cost", what_threads_cost),
        ("threads that end", threads_end),
        ("a pool whose owner lives", owner_lives),
        ("memory that is trimmed", trimmed),
        ("caches that grew", grown),
        ("two arrays for one magazine", two_arrays),
        ("a steady state at the bound", steady_at_the_bound),
    ];
    books.check(&special, cfg!(not(feature = "track")));
}
