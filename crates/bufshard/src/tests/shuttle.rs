//! Larger models than loom's, in schedules that shuttle draws: three to six threads, each with
//! several operations, and futures that are handled carelessly. All accesses are in one order here,
//! so what orders are for is loom's to see.
//!
//! The pools are as in the models of loom: one class, of which a thread keeps a block or two, and
//! one shard with room for one.
//!
//! With the known defects `nowake`, `onewake`, `overwrites` and `nolock` some of these models fail,
//! which is noted at each.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::future::Future;
use core::mem;
use core::pin::pin;
use core::task::{Context, Waker};

use bufcore::Buf;
use bufkit::orphan;
use shuttle::sync::Mutex;
use shuttle::thread;
use testkit::model::{Claim, Shadow};
use testkit::models::{Signal, choice, explore, finish, handle_carelessly};

use crate::block::Block;
use crate::{ShardLease, ShardPool};

const BYTES: usize = 8;
const ITERATIONS: usize = 3000;

/// A buffer whose address is noted. The claim is in front: it ends before the memory goes back.
struct Noted {
    _claim: Claim,
    _buf: Buf<ShardLease>,
}

fn noted(addresses: &Arc<Shadow>, mut buf: Buf<ShardLease>) -> Noted {
    let claim = addresses.claim(buf.as_ptr(), buf.capacity());
    buf.spare_mut().fill(1);
    Noted { _claim: claim, _buf: buf }
}

/// A pool with room for `buffers` buffers, and a half.
fn pool_of(buffers: usize, thread_cache: usize) -> ShardPool {
    let one = Block::most_total(64, 16);
    let builder = ShardPool::builder().thread_cache(thread_cache).shards(1).shard_buffers(1);
    builder.max_bytes(buffers * one + one / 2).build().expect("a small pool")
}

fn all_is_back(pool: &ShardPool) {
    pool.trim();
    assert_eq!(pool.stats().reserved_bytes, 0, "memory that no trim finds");
}

/// Threads acquire, keep, hand on, release and trim; one ends earlier and leaves its cache to the
/// next. Fails with `nolock`.
#[test]
fn shuttle_caches_and_bins() {
    explore(ITERATIONS, || {
        let pool = pool_of(100, 1 + choice(2));
        let addresses = Shadow::new();
        let class_bins: Arc<Mutex<Vec<Noted>>> = Arc::default();
        let life = |pool: ShardPool| {
            let (addresses, class_bins) = (Arc::clone(&addresses), Arc::clone(&class_bins));
            move || {
                let mut held = Vec::new();
                for _ in 0..6 {
                    match choice(8) {
                        0..4 => held.push(noted(&addresses, pool.acquire(BYTES).expect("room"))),
                        4 => pool.trim(),
                        5 => {
                            let mut class_bins = class_bins.lock().expect("nobody panics with it");
                            class_bins.extend(held.pop());
                            let other =
                                if class_bins.is_empty() { None } else { Some(class_bins.swap_remove(0)) };
                            drop(class_bins);
                            drop(other);
                        }
                        _ => drop(held.pop()),
                    }
                }
            }
        };
        let mut threads: Vec<_> = (0..3).map(|_| thread::spawn(life(pool.clone()))).collect();
        threads.swap_remove(choice(3)).join().expect("it is fine");
        threads.push(thread::spawn(life(pool.clone())));
        threads.into_iter().for_each(|thread| thread.join().expect("it is fine"));
        drop(class_bins.lock().expect("nobody panics with it").drain(..));
        all_is_back(&pool);
        assert_eq!(addresses.live(), 0);
    });
}

/// Several pools on each thread: handles go while others are used, and the last of them on any
/// thread, with buffers out.
#[test]
fn shuttle_pools_end_beside_others() {
    explore(ITERATIONS, || {
        let pools: Vec<_> = (0..3).map(|_| pool_of(100, 1)).collect();
        let threads: Vec<_> = (0..3)
            .map(|_| {
                let mut pools = pools.clone();
                thread::spawn(move || {
                    let mut held = Vec::new();
                    for _ in 0..6 {
                        if pools.is_empty() {
                            break;
                        }
                        let at = choice(pools.len());
                        match choice(4) {
                            0 => drop(pools.swap_remove(at)),
                            1 => drop(held.pop()),
                            _ => held.push(pools[at].acquire(BYTES).expect("room")),
                        }
                    }
                })
            })
            .collect();
        drop(pools);
        threads.into_iter().for_each(|thread| thread.join().expect("it is fine"));
        orphan::sweep();
        assert_eq!(orphan::pending(), 0);
    });
}

/// Threads wait for the budget, some with futures that they handle carelessly: whoever still waits
/// is served. `threads` of them, for `buffers` at once.
fn waiters(threads: usize, buffers: usize, thread_cache: usize) {
    explore(ITERATIONS, move || {
        let pool = pool_of(buffers, thread_cache);
        let addresses = Shadow::new();
        let threads: Vec<_> = (0..threads)
            .map(|_| {
                let (pool, addresses) = (pool.clone(), Arc::clone(&addresses));
                thread::spawn(move || {
                    for _ in 0..3 {
                        let served = match choice(3) {
                            0 => handle_carelessly(pool.acquire_async(BYTES), true),
                            1 => pool.acquire(BYTES).ok().map(Ok),
                            _ => Some(finish(pin!(pool.acquire_async(BYTES)), &Signal::new())),
                        };
                        let held =
                            served.map(|served| noted(&addresses, served.expect("it waited for room")));
                        thread::yield_now();
                        drop(held);
                    }
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().expect("it is served"));
        all_is_back(&pool);
    });
}

/// What is released goes into shards.
#[test]
fn shuttle_waiters() {
    waiters(5, 2, 0);
}

/// What is released goes into caches.
#[test]
fn shuttle_waiters_and_caches() {
    waiters(4, 2, 2);
}

/// One buffer for all. Fails with `nowake`, `onewake` and `overwrites`.
#[test]
fn shuttle_waiters_for_one() {
    waiters(6, 1, 1);
}

/// Some were called and never look: all who wait behind them, on several threads, are served. Fails
/// with `nowake` and `onewake`.
#[test]
fn shuttle_waiters_behind_forgotten_ones() {
    explore(ITERATIONS, || {
        let pool = pool_of(1, choice(2));
        let held = pool.acquire(BYTES).expect("room");
        for _ in 0..choice(4) {
            let mut forgotten = Box::pin(pool.acquire_async(BYTES));
            assert!(forgotten.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
            mem::forget(forgotten);
        }
        let threads: Vec<_> = (0..3)
            .map(|_| {
                let pool = pool.clone();
                thread::spawn(move || {
                    for _ in 0..2 {
                        drop(
                            finish(pin!(pool.acquire_async(BYTES)), &Signal::new())
                                .expect("it waited for room"),
                        );
                    }
                })
            })
            .collect();
        drop(held);
        threads.into_iter().for_each(|thread| thread.join().expect("it is served"));
        all_is_back(&pool);
    });
}

/// Buffers go into the caches of threads that do nothing more: two large requests find them, one
/// after the other. Fails with `nowake`.
#[test]
fn shuttle_waiters_and_idle_caches() {
    explore(ITERATIONS, || {
        let pool = pool_of(2, 2);
        let signals = [Signal::new(), Signal::new()];
        let holders: Vec<_> = signals
            .iter()
            .map(|over| {
                let (buf, over) = (pool.acquire(BYTES).expect("room"), Arc::clone(over));
                thread::spawn(move || {
                    drop(buf);
                    over.take();
                })
            })
            .collect();
        let large = |pool: &ShardPool| {
            drop(finish(pin!(pool.acquire_async(100)), &Signal::new()).expect("it waited for room"));
        };
        let other = {
            let pool = pool.clone();
            thread::spawn(move || large(&pool))
        };
        large(&pool);
        other.join().expect("it is served");
        signals.iter().for_each(|over| over.give());
        holders.into_iter().for_each(|thread| thread.join().expect("it is fine"));
        all_is_back(&pool);
    });
}

/// Large requests among small ones: all are served, whatever the futures in between do.
#[test]
fn shuttle_large_among_small() {
    explore(ITERATIONS, || {
        let pool = pool_of(4, choice(2));
        let threads: Vec<_> = (0..4)
            .map(|number| {
                let pool = pool.clone();
                thread::spawn(move || {
                    for _ in 0..3 {
                        let bytes = if number == 0 { 3 * Block::most_total(64, 16) } else { BYTES };
                        let served = match choice(3) {
                            0 => handle_carelessly(pool.acquire_async(bytes), false),
                            _ => Some(finish(pin!(pool.acquire_async(bytes)), &Signal::new())),
                        };
                        let buf = served.map(|served| served.expect("it waited for room"));
                        thread::yield_now();
                        drop(buf);
                    }
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().expect("it is served"));
        all_is_back(&pool);
    });
}
