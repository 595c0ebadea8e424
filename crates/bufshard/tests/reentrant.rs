//! T23: a global allocator that uses the pool that calls it, while others wait for its budget.
//!
//! One after another, without the test harness: it allocates too.
#![allow(
    clippy::std_instead_of_alloc,
    clippy::std_instead_of_core,
    reason = "tests have an operating system"
)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::{Cell, RefCell};
use std::mem;
use std::process;
use std::task::Waker;
use std::thread;
use std::time::Duration;

use bufshard::ShardPool;
use buftest::tasks::{counting, poll};

const BUDGET: usize = 200_000;

type Action = Box<dyn FnMut()>;

thread_local! {
    /// What the calls of this thread do.
    static ACTION: RefCell<Option<Action>> = const { RefCell::new(None) };
    /// How often they did it.
    static DONE: Cell<usize> = const { Cell::new(0) };
}

/// The system's allocator, with users' code in it.
struct Reentering;

#[global_allocator]
static ALLOCATOR: Reentering = Reentering;

impl Reentering {
    fn come_back() {
        // Not while it is at it, and not at a thread's end.
        let _ = ACTION.try_with(|action| {
            if let Ok(mut action) = action.try_borrow_mut()
                && let Some(action) = &mut *action
            {
                action();
                DONE.set(DONE.get() + 1);
            }
        });
    }
}

// SAFETY: every call goes to the system's allocator as it came, before or after code that does not
// use the memory.
unsafe impl GlobalAlloc for Reentering {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        Self::come_back();
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        Self::come_back();
        // SAFETY: the caller's promise.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        // So that a look at it goes wrong at once.
        // SAFETY: the caller gives it up, and all of it is there.
        unsafe { ptr.write_bytes(0xA5, layout.size()) };
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(ptr, layout) };
        Self::come_back();
    }
}

/// Runs `body` while the allocator does `action` at each call; how often it did.
fn with(action: impl FnMut() + 'static, body: impl FnOnce()) -> usize {
    DONE.set(0);
    ACTION.set(Some(Box::new(action)));
    body();
    drop(ACTION.take());
    DONE.get()
}

fn pool() -> ShardPool {
    ShardPool::builder().max_bytes(BUDGET).build().expect("settings are right")
}

/// Futures join the queue, for which it needs memory, and the allocator releases, asks, and drops a
/// future of the same queue.
fn joins() {
    let pool: &'static ShardPool = Box::leak(Box::new(pool()));
    let mut held: Vec<_> = std::iter::from_fn(|| pool.acquire(1000).ok()).collect();
    let mut inner: Vec<_> = (0..50).map(|_| Box::pin(pool.acquire_async(150_000))).collect();
    let mut waiting: Vec<_> = (0..200).map(|_| Box::pin(pool.acquire_async(190_000))).collect();
    inner.iter_mut().for_each(|future| assert!(poll(future.as_mut(), Waker::noop()).is_pending()));
    let action = move || {
        drop(held.pop());
        drop(inner.pop());
        drop(pool.acquire(500));
        pool.trim();
        // The last ones stay out.
        if held.len() == 20 {
            mem::forget(mem::take(&mut held));
        }
    };
    let (_, waker) = counting();
    let done = with(action, || {
        waiting.iter_mut().for_each(|future| assert!(poll(future.as_mut(), &waker).is_pending()));
        drop(waiting);
    });
    assert!(done > 3, "the queue grew {done} times");
    pool.trim();
    assert!(pool.acquire(100_000).is_ok(), "nobody waits any more");
}

/// Everything that a pool does, with an allocator that takes, gives and waits at every call.
fn uses() {
    let pool = pool();
    let theirs = pool.clone();
    let action = move || {
        drop(theirs.acquire(300));
        drop(theirs.acquire_timeout(60_000, Duration::ZERO));
        theirs.trim_idle(Duration::ZERO);
    };
    let done = with(action, || {
        for round in 0..100 {
            let mut bufs: Vec<_> = (0..6).filter_map(|n| pool.acquire(1000 * n + round).ok()).collect();
            bufs.extend(pool.acquire(90_000).ok());
            drop(pool.acquire_timeout(150_000, Duration::from_micros(10)));
            assert!(pool.preallocate(3, 5000).is_ok());
            bufs.truncate(round % 7);
            pool.trim_to(round * 1000);
        }
        // A cache of another thread, and its end, with this allocator too.
        let theirs = pool.clone();
        thread::spawn(move || {
            with(|| (), || drop([(); 6].map(|()| theirs.acquire(2000).expect("room"))));
        })
        .join()
        .expect("the thread ends well");
        pool.trim();
    });
    assert!(done > 100);
    // The action had the last other handle.
    assert!(pool.acquire(100_000).is_ok());
    pool.trim();
    assert_eq!(pool.stats().reserved_bytes, 0);
}

/// Magazines grow, and are found unused, with an allocator that uses the same magazines and looks
/// at them.
fn grows() {
    let pool = ShardPool::new().expect("settings are right");
    let theirs = pool.clone();
    let mut calls = 0_usize;
    let action = move || {
        calls += 1;
        drop([(); 3].map(|()| theirs.acquire(100)));
        if calls.is_multiple_of(7) {
            theirs.trim_idle(Duration::ZERO);
        }
    };
    let done = with(action, || {
        let mut held = Vec::with_capacity(300);
        for count in [300, 300, 20, 300, 40, 40, 300, 300, 9, 9, 300].repeat(4) {
            held.extend((0..count).map(|_| pool.acquire(100).expect("room")));
            held.clear();
            held.extend((0..10).map(|_| pool.acquire(5000).expect("room")));
            held.clear();
            pool.trim_idle(Duration::ZERO);
        }
    });
    assert!(done > 300);
    let stats = pool.shard_stats();
    assert!(stats.thread_idle > 0, "{stats:?}");
    pool.trim();
    assert_eq!(pool.stats().reserved_bytes, 0);
}

/// A magazine is given an array when its cache has no slots left, and leaves it when it has; the
/// allocator that frees the array uses the same cache.
fn moves() {
    let pool = ShardPool::builder().smallest_pooled(80).build().expect("settings are right");
    let theirs = pool.clone();
    // Not pooled, so never by a fast path, which would not see that the cache is entered.
    let action = move || drop(theirs.acquire(50));
    let burst = |count: usize, bytes: usize| {
        (0..count).map(|_| pool.acquire(bytes).expect("room")).collect::<Vec<_>>()
    };
    let done = with(action, || {
        let mut held = burst(203, 5000);
        // Each class takes what its first slots are.
        for bytes in (4..10).flat_map(|doubling| (5..9).map(move |quarter| quarter << doubling)) {
            drop(burst(2, bytes));
        }
        held.truncate(200);
        held.extend(burst(3, 5000));
        pool.trim_idle(Duration::ZERO);
        drop(held.pop());
        pool.trim_idle(Duration::ZERO);
        drop(held);
    });
    assert!(done > 300);
    pool.trim();
    assert_eq!(pool.stats().reserved_bytes, 0);
}

/// A pool ends in the allocator, called by another pool's release, by its own late release, and by
/// its own end.
fn ends() {
    for held in 1..6 {
        let pool = pool();
        let bufs: Vec<_> = (0..held).map(|n| pool.acquire(1000 * n + 1).expect("room")).collect();
        let other = ShardPool::builder().thread_cache(0).shards(1).shard_buffers(0).build().expect("right");
        let release = other.acquire(100).expect("room");
        let mut ended = Some((pool, bufs));
        let done = with(move || drop(ended.take()), || drop(release));
        assert!(done > 0);
        drop(other);
    }
}

fn main() {
    // A hang is a failure.
    thread::spawn(|| {
        thread::sleep(Duration::from_secs(60));
        eprintln!("still not done");
        process::exit(1);
    });
    joins();
    println!("joins: ok");
    uses();
    println!("uses: ok");
    grows();
    println!("grows: ok");
    moves();
    println!("moves: ok");
    ends();
    println!("ends: ok");
}
