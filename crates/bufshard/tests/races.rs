//! The trials that hand memory from thread to thread, for ThreadSanitizer: without the test harness and without the shadow map,
//! whose locks it does not see in a precompiled standard library.
//!
//! Without a sanitizer they run as well, and check the bytes. Like a test harness, takes `--exact NAME` for one trial.

use core::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;

use bufshard::ShardPool;
use buftest::races;
use buftest::{Kit, pattern};

/// Short chains and few places for them, so that they go round, and into the allocator.
fn small() -> ShardPool {
    let builder = ShardPool::builder().thread_cache(2).shards(2).shard_buffers(2);
    builder.build().expect("settings are right")
}

fn default() -> ShardPool {
    ShardPool::new().expect("settings are right")
}

/// Parts of one buffer, written and dropped on three threads, and the memory written again.
fn parts() {
    let pool = small();
    for round in 0..buftest::trials::scaled(20_000) as u64 {
        let mut buf = pool.acquire(300).expect("a small request");
        pattern::fill(&mut buf.spare_mut()[..300], round, 0);
        buf.advance(300);
        let threads = [buf.split_to(100), buf.split_to(100)].map(|mut part| {
            thread::spawn(move || {
                let seed = part[0];
                part.fill(!seed);
                assert!(part.iter().all(|&byte| byte == !seed));
            })
        });
        pattern::check(&buf, round, 200);
        drop(buf);
        let mut other = pool.acquire(300).expect("a small request");
        other.resize(300, 1).expect("asked for");
        threads.into_iter().for_each(|thread| thread.join().expect("the bytes are its own"));
        assert!(other.iter().all(|&byte| byte == 1));
    }
}

/// Threads that end while their buffers are out, and pools whose last handle goes on any of them.
fn ends() {
    for round in 0..buftest::trials::scaled(20_000) as u64 {
        let pool = small();
        let threads = [0, 1].map(|index| {
            let pool = pool.clone();
            thread::spawn(move || {
                let mut bufs: Vec<_> = (0..8).map(|_| pool.acquire(500).expect("a small request")).collect();
                for buf in &mut bufs {
                    buf.resize(500, index).expect("asked for");
                }
                // What is kept is dropped after the pool is gone, perhaps.
                let kept = bufs.split_off(4);
                drop(pool);
                drop(kept);
                bufs
            })
        });
        if round % 2 == 0 {
            drop(pool);
        }
        for (index, thread) in (0..).zip(threads) {
            let bufs = thread.join().expect("the thread ends well");
            assert!(bufs.iter().all(|buf| buf.iter().all(|&byte| byte == index)));
        }
    }
}

/// Caches that are emptied by one thread while two others use them.
fn trims() {
    let pool = small();
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let users = [0, 1].map(|index| {
            let pool = &pool;
            scope.spawn(move || {
                for round in 0..buftest::trials::scaled(300_000) {
                    let mut bufs = [100, 200, 100].map(|bytes| pool.acquire(bytes).expect("a small request"));
                    bufs.iter_mut().for_each(|buf| buf.resize(100, index).expect("asked for"));
                    if round % 64 == 0 {
                        thread::yield_now();
                    }
                    assert!(bufs.iter().all(|buf| buf.iter().all(|&byte| byte == index)));
                }
            })
        });
        let over = &over;
        let trimmer = scope.spawn(|| {
            // ORDER: Relaxed: what this orders, the pool would not have to.
            while !over.load(Relaxed) {
                pool.trim();
                thread::yield_now();
            }
        });
        users.into_iter().for_each(|user| user.join().expect("the bytes are its own"));
        // ORDER: Relaxed, as above.
        over.store(true, Relaxed);
        trimmer.join().expect("trimming does not panic");
    });
}

fn main() {
    let kit =
        |make| Kit::<ShardPool> { make, frames: |_| None, is_fallback: |_| false, rejects: false, share: 1 };
    let mut ran = races::run("default", &kit(default)) + races::run("small caches", &kit(small));
    ran += races::run_own("parts", parts) + races::run_own("ends", ends) + races::run_own("trims", trims);
    assert!(ran > 0, "no trial of this name");
}
