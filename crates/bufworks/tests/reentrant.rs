//! A global allocator that uses pools while it is asked to allocate and to free (T23).
//!
//! One after another, without the test harness: it allocates too.
#![allow(
    clippy::std_instead_of_alloc,
    clippy::std_instead_of_core,
    reason = "tests have an operating system"
)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::RefCell;
use std::future::Future;
use std::mem;
use std::process;
use std::sync::Arc;
use std::task::{Context, Wake, Waker};
use std::thread;
use std::time::Duration;

use bufworks::bump::BumpPool;
use bufworks::shard::ShardPool;

type Action = Box<dyn FnOnce()>;

thread_local! {
    /// What the next call does, and whether that is one that frees.
    static NEXT: RefCell<Option<(bool, Action)>> = const { RefCell::new(None) };
}

/// The system's allocator, with users' code in it.
struct Reentering;

#[global_allocator]
static ALLOCATOR: Reentering = Reentering;

impl Reentering {
    fn come_back(&self, frees: bool) {
        let next = NEXT.try_with(|next| {
            let mut next = next.try_borrow_mut().ok()?;
            next.take_if(|(at_free, _)| *at_free == frees)
        });
        if let Ok(Some((_, action))) = next {
            action();
        }
    }
}

// SAFETY: every call goes to the system's allocator as it came, before or after code that does not
// use the memory.
unsafe impl GlobalAlloc for Reentering {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        self.come_back(false);
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        self.come_back(false);
        // SAFETY: the caller's promise.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        // So that a look at it goes wrong at once.
        // SAFETY: the caller gives it up, and all of it is there.
        unsafe { ptr.write_bytes(0xA5, layout.size()) };
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(ptr, layout) };
        self.come_back(true);
    }
}

/// Keeps something alive until it is dropped.
struct Holds<T>(T);

impl<T: Send + Sync + 'static> Wake for Holds<T> {
    fn wake(self: Arc<Self>) {
        let _ = &self.0;
    }
}

/// A pool of which this thread has a cache.
fn used_here() -> ShardPool {
    let pool = ShardPool::builder().shards(1).build().expect("settings are right");
    drop(pool.acquire(100).expect("room"));
    pool
}

fn bump_used_here() -> BumpPool {
    let pool = BumpPool::builder().shard_size(512).build().expect("settings are right");
    drop(pool.acquire(100).expect("room"));
    pool
}

/// A pool ends while this thread lets go of what it has of another, and it met the one on its way
/// to the other.
fn a_pool_ends_while_another_is_let_go_of<P: Send + 'static>(used_here: fn() -> P, use_it: fn(&P)) {
    for distance in 1..20 {
        let ended = used_here();
        let beside: Vec<_> = (0..distance).map(|_| used_here()).collect();
        thread::spawn(move || drop(ended)).join().expect("a pool ends without a panic");
        NEXT.set(Some((true, Box::new(move || drop(beside)))));
        drop((0..32).map(|_| used_here()).collect::<Vec<_>>());
        let pool = used_here();
        use_it(&pool);
        assert!(NEXT.take().is_none(), "the allocator was asked to free something");
    }
}

/// Waits for more than there is, and forgets that; the waker keeps `kept`.
fn wait_and_forget<T: Send + Sync + 'static>(pool: &ShardPool, kept: T) {
    let waker = Waker::from(Arc::new(Holds(kept)));
    let mut request = Box::pin(pool.acquire_async(80_000));
    assert!(request.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    mem::forget(request);
}

/// As above, where it is a waker that goes with the pool and ends the others.
fn a_waker_ends_the_pool_beside() {
    for distance in 1..20 {
        let ended = ShardPool::builder().shards(1).max_bytes(100_000).build().expect("settings are right");
        let held = ended.acquire(90_000).expect("room");
        let ends = Arc::new(());
        let beside: Vec<_> = (0..distance).map(|_| (used_here(), Arc::clone(&ends))).collect();
        // The first is woken when `held` goes.
        wait_and_forget(&ended, ());
        wait_and_forget(&ended, beside);
        thread::spawn(move || drop((ended, held))).join().expect("a pool ends without a panic");
        drop((0..32).map(|_| used_here()).collect::<Vec<_>>());
        assert_eq!(Arc::strong_count(&ends), 1, "what was forgotten is gone with its pool");
    }
}

fn main() {
    // A hang is a failure.
    thread::spawn(|| {
        thread::sleep(Duration::from_secs(60));
        eprintln!("still not done");
        process::exit(1);
    });
    a_pool_ends_while_another_is_let_go_of(used_here, |pool| drop(pool.acquire(1)));
    a_pool_ends_while_another_is_let_go_of(bump_used_here, |pool| drop(pool.acquire(1)));
    println!("a pool ends while another is let go of: ok");
    a_waker_ends_the_pool_beside();
    println!("a waker ends the pool beside: ok");
}
