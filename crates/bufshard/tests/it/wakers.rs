//! T22 and T23 for wakers: they panic, and come back in, when they are woken, cloned and dropped.

use std::mem;
use std::sync::{Arc, Mutex};
use std::task::Waker;
use std::thread;
use std::time::Duration;

use bufshard::ShardPool;
use testkit::process::{alone, spoil_freed_memory};
use testkit::tasks::{Counting, block_on, counting, drop_panics, hostile, poll};

const BUDGET: usize = 200_000;
/// Of a class that is pooled.
const HELD: usize = 90_000;
/// For which there is no room then.
const WAITING: usize = 120_000;
const LONG: Duration = Duration::from_secs(30);

fn pool() -> ShardPool {
    ShardPool::builder().max_bytes(BUDGET).build().expect("settings are right")
}

/// A pool whose releases on a thread without a cache find no room anywhere.
fn without_room() -> ShardPool {
    let builder = ShardPool::builder().max_bytes(BUDGET).thread_cache(0).shards(1).shard_buffers(0);
    builder.build().expect("settings are right")
}

/// A release whose waker panics, on a thread with a cache and on one without: no budget is lost,
/// and the next is woken.
#[test]
fn t22_a_waker_panics_when_it_is_woken() {
    for make in [pool, without_room] {
        let pool = make();
        let held = pool.acquire(HELD).expect("room");
        let mut first = Box::pin(pool.acquire_async(WAITING));
        let mut second = Box::pin(pool.acquire_async(WAITING));
        let (wakes, counted) = counting();
        let panicking = hostile(|| panic!("a waker panics, as it was told to"), || {});
        assert!(poll(first.as_mut(), &panicking).is_pending());
        assert!(poll(second.as_mut(), &counted).is_pending());
        let release = thread::spawn(move || drop(held)).join();
        assert!(release.is_ok(), "the waker's panic came out of a release");
        drop(first);
        assert!(wakes.count() > 0, "the next sleeps for ever");
        let served = block_on(second, LONG).expect("served").expect("room");
        drop(served);
        pool.trim();
        assert_eq!(pool.stats().reserved_bytes, 0, "budget was lost");
        assert!(pool.acquire(150_000).is_ok());
    }
}

/// A waker whose drop panics: where it is replaced, where the future goes, and where it is served.
/// Its panic ends there.
#[test]
fn t22_a_waker_panics_when_it_is_dropped() {
    let pool = pool();
    let held = pool.acquire(HELD).expect("room");
    let dropped = Arc::new(Counting::default());
    let mut replaced = Box::pin(pool.acquire_async(WAITING));
    assert!(poll(replaced.as_mut(), &drop_panics(&dropped)).is_pending());
    assert!(poll(replaced.as_mut(), Waker::noop()).is_pending());
    let mut gone = Box::pin(pool.acquire_async(WAITING));
    assert!(poll(gone.as_mut(), &drop_panics(&dropped)).is_pending());
    drop(gone);
    drop(replaced);
    assert_eq!(dropped.count(), 2);
    let mut last = Box::pin(pool.acquire_async(WAITING));
    let (wakes, waker) = counting();
    assert!(poll(last.as_mut(), &waker).is_pending());
    drop(held);
    assert_eq!(wakes.count(), 1);
    assert!(poll(last.as_mut(), &waker).is_ready());
    drop(last);
    pool.trim();
    assert_eq!(pool.stats().reserved_bytes, 0);
}

/// Forgotten requests with such wakers: neither the end of their pool panics, nor the release that
/// comes after it, and all wakers are dropped, also when the pool ends while its thread unwinds.
#[test]
fn t22_wakers_panic_when_their_pool_ends() {
    for (is_out, unwinds) in [(false, false), (true, false), (false, true), (true, true)] {
        let pool = pool();
        let mut held = Some(pool.acquire(HELD).expect("room"));
        let dropped = Arc::new(Counting::default());
        for _ in 0..3 {
            let mut forgotten = Box::pin(pool.acquire_async(WAITING));
            assert!(poll(forgotten.as_mut(), &drop_panics(&dropped)).is_pending());
            mem::forget(forgotten);
        }
        if !is_out {
            drop(held.take());
        }
        // On a thread of its own, whose cache goes with it.
        let end = thread::spawn(move || {
            let _pool = pool;
            if unwinds {
                std::panic::resume_unwind(Box::new(()));
            }
        });
        assert_eq!(end.join().is_err(), unwinds, "the waker's panic came out of the end");
        thread::spawn(move || drop(held)).join().expect("a late release does not panic");
        assert_eq!(dropped.count(), 3);
    }
}

/// A waker that, when it is woken or dropped, drops futures of the same queue, takes buffers,
/// trims, and drops a handle.
#[test]
fn t23_wakers_that_come_back_in() {
    // A lock that is held across a waker is one that is waited for, for ever.
    alone(module_path!(), "t23_wakers_that_come_back_in", LONG / 3, wakers_that_come_back_in);
}

fn wakers_that_come_back_in() {
    for is_woken in [true, false] {
        let pool: &'static ShardPool = Box::leak(Box::new(pool()));
        let held = pool.acquire(HELD).expect("room");
        let mut first = Box::pin(pool.acquire_async(WAITING));
        assert!(poll(first.as_mut(), Waker::noop()).is_pending());
        let others: Vec<_> = (0..3)
            .map(|_| {
                let mut other = Box::pin(pool.acquire_async(WAITING));
                assert!(poll(other.as_mut(), Waker::noop()).is_pending());
                other
            })
            .collect();
        let (handle, others) = (pool.clone(), Arc::new(Mutex::new(others)));
        let act = {
            let others = Arc::clone(&others);
            move || {
                drop(mem::take(&mut *others.lock().expect("no panic")));
                drop(handle.acquire(1000));
                handle.trim();
                drop(handle);
            }
        };
        let waker = if is_woken { hostile(act, || {}) } else { hostile(|| {}, act) };
        assert!(poll(first.as_mut(), &waker).is_pending());
        drop(waker);
        drop(held);
        drop(first);
        assert!(others.lock().expect("no panic").is_empty(), "the waker was not called");
        assert!(pool.acquire(150_000).is_ok());
        pool.trim();
        assert_eq!(pool.stats().reserved_bytes, 0);
    }
}

/// A forgotten future whose waker drops the last handle of the pool, woken by the release of the
/// last buffer, on every path of a release.
#[test]
fn t23_the_waker_has_the_last_handle() {
    alone(module_path!(), "t23_the_waker_has_the_last_handle", LONG / 3, || {
        spoil_freed_memory();
        the_waker_has_the_last_handle();
    });
}

fn the_waker_has_the_last_handle() {
    for (make, bytes) in [(pool as fn() -> ShardPool, HELD), (without_room, HELD), (pool, 190_000)] {
        for is_elsewhere in [false, true] {
            let pool = make();
            let held = pool.acquire(bytes).expect("room");
            let last = pool.clone();
            let waker = hostile(move || drop(last), || {});
            let mut future = Box::pin(pool.acquire_async(WAITING));
            assert!(poll(future.as_mut(), &waker).is_pending());
            mem::forget(future);
            // More than are woken at once, so that the pool looks again after its end.
            for _ in 0..20 {
                let mut behind = Box::pin(pool.acquire_async(WAITING));
                assert!(poll(behind.as_mut(), Waker::noop()).is_pending());
                mem::forget(behind);
            }
            drop(waker);
            drop(pool);
            if is_elsewhere {
                thread::spawn(move || drop(held)).join().expect("the release does not panic");
            } else {
                drop(held);
            }
        }
    }
}
