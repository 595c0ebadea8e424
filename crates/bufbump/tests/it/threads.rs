//! Threads: clones, caches that end with their thread, and buffers at a thread's very end.

use std::sync::{Arc, Barrier};
use std::thread;

use bufbump::BumpPool;
use testkit::trials::clones;

fn small() -> BumpPool {
    BumpPool::builder().shard_size(4000).max_idle_bytes(16 << 10).build().expect("settings are right")
}

#[test]
fn one_pool_for_all() {
    clones::one_pool_for_all(small);
}

/// A thousand threads come and go: what they had is used by the next, and nothing grows.
#[test]
fn threads_that_end_leave_their_memory() {
    let pool = small();
    let mut kept = Vec::new();
    for index in 0..1000 {
        let theirs = pool.clone();
        let mut bufs = thread::spawn(move || {
            [100, 4000, 100].map(|bytes| theirs.acquire(bytes).expect("room")).into_iter().collect::<Vec<_>>()
        })
        .join()
        .expect("the thread ends well");
        if index % 100 == 0 {
            kept.push(bufs.pop());
        }
    }
    let stats = pool.stats();
    assert_eq!(stats.in_use, kept.iter().flatten().count());
    assert!(stats.reserved_bytes <= (kept.len() + 8) * 4096, "{stats:?}");
    kept.clear();
    assert_eq!(pool.stats().pinned_bytes, 0);
}

#[test]
fn at_a_threads_very_end() {
    clones::at_a_threads_very_end(small);
}

/// A thread's spares are freed by another thread's `trim`, and what it carved and others released,
/// except for the shard that it carves.
#[test]
fn trim_reaches_others() {
    let pool = BumpPool::builder().shard_size(4000).build().expect("settings are right");
    let barrier = Arc::new(Barrier::new(2));
    let (theirs, theirs_barrier) = (pool.clone(), Arc::clone(&barrier));
    let other = thread::spawn(move || {
        let bufs = [(); 6].map(|()| theirs.acquire(4000).expect("room"));
        let [one, two, three, others @ ..] = bufs;
        drop((one, two, three));
        thread::spawn(move || drop(others)).join().expect("dropping does not panic");
        theirs_barrier.wait();
        theirs_barrier.wait();
        let held = [(); 2].map(|()| theirs.acquire(4000).expect("room"));
        theirs_barrier.wait();
        theirs_barrier.wait();
        drop(held);
    });
    barrier.wait();
    assert_eq!(pool.stats().reserved_bytes, 6 * 4096);
    pool.trim();
    assert_eq!(pool.stats().reserved_bytes, 4096, "the other thread carves it");
    barrier.wait();
    barrier.wait();
    assert_eq!(pool.stats().reserved_bytes, 2 * 4096, "it continues");
    barrier.wait();
    other.join().expect("the thread ends well");
}

#[test]
fn threads_and_pools_end() {
    clones::threads_and_pools_end(small);
    bufkit::orphan::sweep();
    assert_eq!(bufkit::orphan::pending(), 0);
}
