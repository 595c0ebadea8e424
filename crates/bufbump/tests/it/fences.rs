//! The system refuses the fence with which others get at the cache of a thread.

use std::sync::{Arc, Barrier};
use std::thread;
use std::time::Duration;

use bufbump::BumpPool;
use testkit::process::alone;
use testkit::sandbox;

const LIMIT: Duration = Duration::from_secs(60);
const PAGE: usize = 4096;
/// A shard of so many bytes has a page.
const SHARD: usize = PAGE - 64;

fn pool() -> BumpPool {
    BumpPool::builder().shard_size(SHARD).build().expect("settings are right")
}

/// Four shards at once, and a larger buffer.
fn burst(pool: &BumpPool) {
    drop([(); 4].map(|()| pool.acquire(SHARD).expect("room")));
    drop(pool.acquire(10 * PAGE - 64).expect("room"));
}

/// `membarrier` is refused after a thread has used the pool: no trim gets at its cache, until it has
/// used it once more. Pools end as they do elsewhere.
#[test]
fn t25_no_fence_after_the_start() {
    alone(module_path!(), "t25_no_fence_after_the_start", LIMIT, || {
        let [pool, ends] = [(); 2].map(|()| pool());
        let barrier = Arc::new(Barrier::new(2));
        let (theirs, last, there) = (pool.clone(), ends.clone(), Arc::clone(&barrier));
        let other = thread::spawn(move || {
            burst(&theirs);
            burst(&last);
            drop(last);
            there.wait();
            there.wait();
            burst(&theirs);
            there.wait();
            there.wait();
        });
        barrier.wait();
        let all = 14 * PAGE;
        assert_eq!(pool.stats().reserved_bytes, all, "idle there");
        let is_refused = sandbox::refuse_fences();
        pool.trim();
        let left = pool.stats().reserved_bytes;
        assert_eq!(left, if is_refused { all } else { PAGE }, "while it does nothing");
        // Its thread finds it.
        drop(ends);
        barrier.wait();
        barrier.wait();
        assert_eq!(pool.stats().reserved_bytes, all, "it continues");
        pool.trim();
        assert_eq!(pool.stats().reserved_bytes, PAGE, "what it carves");
        // A new pool knows from the start.
        let new = self::pool();
        burst(&new);
        new.trim();
        assert_eq!(new.stats().reserved_bytes, PAGE, "in a new pool");
        barrier.wait();
        other.join().expect("the thread ends well");
        pool.trim();
        assert_eq!(pool.stats().reserved_bytes, 0, "what a thread left");
    });
}
