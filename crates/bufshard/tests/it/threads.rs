//! Threads: clones, caches that end with their thread, and buffers at a thread's very end.

use std::sync::Arc;
use std::thread;

use bufshard::ShardPool;
use buftest::model::Shadow;
use buftest::pattern;
use buftest::trials::clones;

fn small() -> ShardPool {
    ShardPool::builder().thread_cache(2).shards(1).shard_buffers(4).build().expect("settings are right")
}

/// Four threads on one pool, whose buffers never overlap and keep their bytes.
#[test]
fn one_pool_for_all() {
    let pool = small();
    let shadow = Shadow::new();
    let threads: Vec<_> = (0..4)
        .map(|index| {
            let (pool, shadow) = (pool.clone(), Arc::clone(&shadow));
            thread::spawn(move || {
                let mut rng = fastrand::Rng::with_seed(index);
                let mut held = Vec::new();
                for _ in 0..buftest::trials::scaled(100_000) {
                    let (bytes, seed) = (rng.usize(1..6000), rng.u64(..));
                    let mut buf = pool.acquire(bytes).expect("room");
                    let claim = shadow.claim(buf.as_ptr(), buf.capacity());
                    pattern::fill(&mut buf.spare_mut()[..bytes], seed, 0);
                    buf.advance(bytes);
                    held.push((claim, buf, seed));
                    while held.len() > rng.usize(..12) {
                        let (claim, buf, seed) = held.swap_remove(rng.usize(..held.len()));
                        pattern::check(&buf, seed, 0);
                        drop(claim);
                        drop(buf);
                    }
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().expect("the bytes are right"));
    assert_eq!(pool.stats().in_use, 0);
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
    assert!(most <= 16 * 4096, "{most} bytes for one thread at a time");
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
fn the_last_handle_goes_anywhere() {
    clones::the_last_handle_goes_anywhere(small);
}
