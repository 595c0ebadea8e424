//! T26: bookkeeping does not grow while the traffic stays the same, and is given back after a peak.

use std::time::Duration;

use bufbump::BumpPool;
use buftest::process::alone;
#[cfg(not(feature = "track"))]
use buftest::process::{resident_bytes, steady_allocator};
#[cfg(target_env = "gnu")]
use buftest::trials::memory;
use buftest::trials::steady;

/// For each test, except for what `BUFTEST_STEADY_SECONDS` adds.
const LIMIT: Duration = Duration::from_secs(3600);

fn pool(shard: usize) -> BumpPool {
    BumpPool::builder().shard_size(shard).build().expect("settings are right")
}

/// Requests larger than a shard, whose pieces are kept.
#[test]
fn t26_larger_than_a_shard() {
    alone(module_path!(), "t26_larger_than_a_shard", LIMIT, || steady::flat(&pool(64), 100));
}

#[test]
fn t26_much_larger_than_a_shard() {
    alone(module_path!(), "t26_much_larger_than_a_shard", LIMIT, || steady::flat(&pool(4096), 5000));
}

/// Nothing is kept, so each piece is freed, and the next one takes a header that has no memory.
#[test]
fn t26_headers_of_pieces_that_are_not_kept() {
    let body = || {
        let pool = BumpPool::builder().shard_size(64).max_idle_bytes(0);
        steady::flat(&pool.build().expect("settings are right"), 100);
    };
    alone(module_path!(), "t26_headers_of_pieces_that_are_not_kept", LIMIT, body);
}

/// One buffer to a shard, and nothing that a thread keeps to itself.
#[test]
fn t26_a_shard_each() {
    let body = || {
        let pool = BumpPool::builder().shard_size(4096).max_idle_bytes(3 * 4096).max_probes(0);
        steady::flat(&pool.build().expect("settings are right"), 4000);
    };
    alone(module_path!(), "t26_a_shard_each", LIMIT, body);
}

/// After a peak, `trim` gives back the bookkeeping of the peak, too. Not with `track`, whose list
/// of buffers keeps its size.
#[cfg(not(feature = "track"))]
#[test]
fn t26_headers_after_a_peak() {
    const PEAK: usize = 100_000;
    let body = || {
        steady_allocator();
        let pool = pool(64);
        drop(pool.acquire(100));
        let base = resident_bytes();
        let bufs: Vec<_> = (0..PEAK).map(|_| pool.acquire(100).expect("room")).collect();
        let peak = resident_bytes() - base;
        assert!(peak > PEAK * 100, "{peak} bytes for the peak");
        drop(bufs);
        pool.trim();
        let kept = resident_bytes().saturating_sub(base);
        println!("steady: {peak} bytes at the peak, {kept} after it");
        assert!(kept < peak / 10, "{kept} of {peak} bytes are kept after `trim`");
        // It continues.
        drop([pool.acquire(100), pool.acquire(10)]);
        assert_eq!(pool.stats().in_use, 0);
    };
    alone(module_path!(), "t26_headers_after_a_peak", LIMIT, body);
}

/// Memory over what the pool keeps reaches the system when it is released, though the allocator
/// keeps what it gets: from the first look of a keeper on, and not before.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[test]
fn resident_large_memory_goes() {
    alone(module_path!(), "resident_large_memory_goes", LIMIT, || {
        let builder = BumpPool::builder().max_idle_bytes(1 << 20);
        #[cfg(feature = "mmap")]
        let builder = builder.mapped_from(usize::MAX);
        memory::large_memory_goes(|| builder.build().expect("settings are right"));
    });
}
