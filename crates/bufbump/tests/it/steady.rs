//! T26: bookkeeping does not grow while the traffic stays the same, and is given back after a peak.

use std::env;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use bufbump::BumpPool;
use testkit::process::{alone, resident_bytes, steady_allocator};

/// For each test, except for what `BUFTEST_STEADY_SECONDS` adds.
const LIMIT: Duration = Duration::from_secs(3600);

const THREADS: usize = 16;
/// Buffers that each thread has at once: at most 64 are alive.
const ALIVE: usize = 4;
/// Part of the time for which memory may still grow, and the longest that this may last.
const WARM_UP: u32 = 3;
const LONGEST_WARM_UP: Duration = Duration::from_secs(10);
/// What the allocator's own arenas, one for each thread, may still add.
const SLACK_BYTES: usize = 3 << 20;

/// Takes and drops buffers of `bytes` bytes on sixteen threads, at most 64 of them alive, for
/// `BUFTEST_STEADY_SECONDS` (3 unless set). After the first third, or ten seconds, resident memory
/// does not grow.
fn flat(pool: &BumpPool, bytes: usize) {
    let seconds =
        env::var("BUFTEST_STEADY_SECONDS").map_or(3, |text| text.parse().expect("a number of seconds"));
    steady_allocator();
    let whole = Duration::from_secs(seconds);
    let warm_up = (whole / WARM_UP).min(LONGEST_WARM_UP);
    let (is_over, all_there) = (AtomicBool::new(false), Barrier::new(THREADS + 1));
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let (pool, is_over, all_there) = (pool.clone(), &is_over, &all_there);
            scope.spawn(move || {
                let mut held = [const { None }; ALIVE];
                let mut at = thread;
                let mut turn = || {
                    at = (at + 1) % ALIVE;
                    held[at] = None;
                    held[at] = Some(pool.acquire(bytes).expect("the pool has room"));
                };
                (0..2 * ALIVE).for_each(|_| turn());
                all_there.wait();
                // ORDER: Relaxed: a signal that carries nothing.
                while !is_over.load(Ordering::Relaxed) {
                    turn();
                }
            });
        }
        all_there.wait();
        let started = Instant::now();
        thread::sleep(warm_up);
        let early = resident_bytes();
        thread::sleep(whole.saturating_sub(started.elapsed()));
        let late = resident_bytes();
        // ORDER: Relaxed, as above.
        is_over.store(true, Ordering::Relaxed);
        println!("steady: {early} bytes resident after {warm_up:?}, {late} after {whole:?}");
        assert!(
            late <= early + SLACK_BYTES,
            "resident memory grew from {early} to {late} bytes in {whole:?}"
        );
    });
}

fn pool(shard: usize) -> BumpPool {
    BumpPool::builder().shard_size(shard).build().expect("settings are right")
}

/// Requests larger than a shard, whose pages are kept.
#[test]
fn t26_larger_than_a_shard() {
    alone(module_path!(), "t26_larger_than_a_shard", LIMIT, || flat(&pool(64), 100));
}

#[test]
fn t26_much_larger_than_a_shard() {
    alone(module_path!(), "t26_much_larger_than_a_shard", LIMIT, || flat(&pool(4096), 5000));
}

/// Nothing is kept, so each shard is freed, and the next one takes a header that has no memory.
#[test]
fn t26_headers_of_shards_that_are_not_kept() {
    let body = || {
        let pool = BumpPool::builder().shard_size(4000).max_idle_bytes(0).max_probes(0);
        flat(&pool.build().expect("settings are right"), 4000);
    };
    alone(module_path!(), "t26_headers_of_shards_that_are_not_kept", LIMIT, body);
}

/// One buffer to a shard, and nothing that a thread keeps to itself.
#[test]
fn t26_a_shard_each() {
    let body = || {
        let pool = BumpPool::builder().shard_size(4000).max_idle_bytes(3 * 4096).max_probes(0);
        flat(&pool.build().expect("settings are right"), 4000);
    };
    alone(module_path!(), "t26_a_shard_each", LIMIT, body);
}
