//! Threads: clones, caches that end with their thread, and buffers at a thread's very end.

use std::thread;

use bufshard::ShardPool;
use testkit::trials::clones;

fn small() -> ShardPool {
    ShardPool::builder().thread_cache(2).shards(1).shard_buffers(4).build().expect("settings are right")
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
    let mut most = 0;
    for index in 0..1000 {
        let theirs = pool.clone();
        let mut bufs = thread::spawn(move || {
            drop(theirs.acquire(4000));
            [100, 4000, 100].map(|bytes| theirs.acquire(bytes).expect("room")).into_iter().collect::<Vec<_>>()
        })
        .join()
        .expect("the thread ends well");
        if index % 100 == 0 {
            kept.push(bufs.swap_remove(1));
        }
        most = most.max(pool.stats().reserved_bytes - kept.len() * 4096);
    }
    assert!(most <= 24 * 4096, "{most} bytes for one thread at a time");
    kept.clear();
    pool.trim();
    assert_eq!(pool.stats().reserved_bytes, 0);
}

/// A thread's idle memory is there for the next one.
#[test]
fn the_next_thread_gets_it() {
    let pool = small();
    let address = |pool: ShardPool| {
        let own = move || pool.acquire(3000).expect("room").as_ptr().addr();
        thread::spawn(own).join().expect("the thread ends well")
    };
    assert_eq!(address(pool.clone()), address(pool));
}

#[test]
fn at_a_threads_very_end() {
    clones::at_a_threads_very_end(small);
}

#[test]
fn threads_and_pools_end() {
    clones::threads_and_pools_end(small);
}
