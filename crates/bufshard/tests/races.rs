//! The trials that hand memory from thread to thread, for ThreadSanitizer. They run without the
//! test harness and without the shadow map, whose locks it does not see in a precompiled standard
//! library.
//!
//! Without a sanitizer they run as well, and check the bytes. Like a test harness, takes
//! `--exact NAME` for one trial.

use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use core::time::Duration;
use std::thread;

use bufshard::ShardPool;
use testkit::trials::clones;
use testkit::{Kit, races};

/// Short chains and few places for them, so that they go round, and into the allocator.
fn small() -> ShardPool {
    let builder = ShardPool::builder().thread_cache(2).shards(2).shard_buffers(2);
    builder.build().expect("settings are right")
}

fn default() -> ShardPool {
    ShardPool::new().expect("settings are right")
}

/// Caches that are emptied by one thread while two others use them, for as long as it takes.
fn trims() {
    let pool = small();
    let begun = AtomicUsize::new(0);
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let users = [0, 1].map(|index| {
            let (pool, begun, over) = (&pool, &begun, &over);
            scope.spawn(move || {
                for round in 0_usize.. {
                    let mut bufs = [100, 200, 100].map(|bytes| pool.acquire(bytes).expect("a small request"));
                    bufs.iter_mut().for_each(|buf| buf.resize(100, index).expect("asked for"));
                    if round % 64 == 0 {
                        thread::yield_now();
                    }
                    assert!(bufs.iter().all(|buf| buf.iter().all(|&byte| byte == index)));
                    drop(bufs);
                    // The cache has blocks now, which the other thread can take.
                    if round % 64 == 32 {
                        thread::yield_now();
                    }
                    // ORDER: Relaxed, both: what these order, the pool would not have to.
                    begun.fetch_add(usize::from(round == 0), Relaxed);
                    if over.load(Relaxed) {
                        break;
                    }
                }
            })
        });
        // ORDER: Relaxed, as above.
        while begun.load(Relaxed) < users.len() {
            thread::yield_now();
        }
        for _ in 0..testkit::trials::scaled(50_000) {
            pool.trim();
            thread::yield_now();
        }
        // ORDER: Relaxed, as above.
        over.store(true, Relaxed);
        users.into_iter().for_each(|user| user.join().expect("the bytes are its own"));
    });
}

/// Magazines that grow and lose their slots while two threads use them: in bursts of two sizes,
/// with pauses in which another thread finds them unused.
fn growth() {
    let pool = default();
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let users = [0, 1].map(|index| {
            let (pool, over) = (&pool, &over);
            scope.spawn(move || {
                let mut rng = fastrand::Rng::with_seed(u64::from(index));
                // ORDER: Relaxed, as in `trims`.
                while !over.load(Relaxed) {
                    let (count, bytes) = (rng.usize(1..=300), [100, 3000][rng.usize(..2)]);
                    let mut bufs: Vec<_> =
                        (0..count).map(|_| pool.acquire(bytes).expect("a small request")).collect();
                    bufs.iter_mut().for_each(|buf| buf.resize(100, index).expect("asked for"));
                    assert!(bufs.iter().all(|buf| buf.iter().all(|&byte| byte == index)));
                    drop(bufs);
                    (0..rng.usize(..8)).for_each(|_| thread::yield_now());
                }
            })
        });
        for _ in 0..testkit::trials::scaled(50_000) {
            pool.trim_idle(Duration::ZERO);
            thread::yield_now();
        }
        // ORDER: Relaxed, as above.
        over.store(true, Relaxed);
        users.into_iter().for_each(|user| user.join().expect("the bytes are its own"));
    });
}

fn main() {
    let kit = |make| Kit::<ShardPool> {
        make,
        is_fallback: |_| false,
        rejects: false,
        share: 1,
        trim: testkit::trials::trim,
    };
    let mut ran = races::run("default", &kit(default)) + races::run("small caches", &kit(small));
    ran += races::run_own("parts", || clones::parts_elsewhere(small))
        + races::run_own("ends", || clones::threads_and_pools_end(small))
        + races::run_own("trims", trims)
        + races::run_own("growth", growth);
    assert!(ran > 0, "no trial of this name");
}
