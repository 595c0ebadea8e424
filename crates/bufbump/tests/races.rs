//! The trials that hand memory from thread to thread, for ThreadSanitizer: without the test harness and without the shadow map,
//! whose locks it does not see in a precompiled standard library.
//!
//! Without a sanitizer they run as well, and check the bytes. Like a test harness, takes `--exact NAME` for one trial.

use std::thread;

use bufbump::BumpPool;
use buftest::races;
use buftest::{Kit, pattern};

/// Small shards, so that they go round; few of them are kept.
fn small() -> BumpPool {
    BumpPool::builder().shard_size(2048).idle_bytes(8192).build().expect("settings are right")
}

fn default() -> BumpPool {
    BumpPool::builder().preallocate(1).build().expect("settings are right")
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

fn main() {
    let kit =
        |make| Kit::<BumpPool> { make, frames: |_| None, is_fallback: |_| false, rejects: false, share: 1 };
    let mut ran = races::run("default", &kit(default)) + races::run("small shards", &kit(small));
    ran += races::run_own("parts", parts) + races::run_own("ends", ends);
    assert!(ran > 0, "no trial of this name");
}
