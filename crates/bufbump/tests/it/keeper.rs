//! The keeper over this pool: what a burst left goes, what comes and goes stays, and the pool ends
//! as without one.

use std::thread;
use std::time::Duration;

use bufbump::{BumpPool, Trim};
use testkit::trials::keeper::{self, AGE, burst, keeper, look, wait_until};

const MIB: usize = 1 << 20;

fn pool() -> BumpPool {
    BumpPool::builder().shard_size(64 << 10).max_idle_bytes(64 * MIB).build().expect("settings are right")
}

#[test]
fn a_burst_goes_and_what_is_used_stays() {
    let pool = pool();
    let mut keeper = keeper().watch(&pool);
    look(&mut keeper);
    burst(&pool, 16, MIB);
    burst(&pool, 500, 10_000);
    assert!(pool.stats().reserved_bytes > 4 * MIB);
    for _ in 0..4 {
        burst(&pool, 10, 10_000);
        look(&mut keeper);
    }
    let kept = pool.stats().reserved_bytes;
    assert!((100_000..MIB).contains(&kept), "{kept} bytes are kept for ten of 10 000");
}

#[test]
fn a_thread_of_its_own_does_it_and_the_pool_may_end() {
    let pool = pool();
    let thread = keeper().watch(&pool).spawn().expect("there is a thread");
    burst(&pool, 16, MIB);
    wait_until("the memory stays", || pool.stats().reserved_bytes <= MIB);
    let out = pool.acquire(3 * MIB).expect("room");
    drop(pool);
    assert_eq!(out.capacity(), 3 * MIB);
    drop(thread);
    drop(out);
}

/// A keeper that would sleep for an hour looks when a pool, which was empty, takes memory.
#[test]
fn it_wakes_for_the_next_burst() {
    let pool = pool();
    let hour = Duration::from_secs(3600);
    let thread = keeper().max_sleep(hour).watch(&pool).spawn().expect("there is a thread");
    for _ in 0..3 {
        // It looks at an empty pool, and sleeps.
        thread::sleep(AGE * 10);
        let theirs = pool.clone();
        thread::spawn(move || burst(&theirs, 16, MIB)).join().expect("it ends well");
        wait_until("the memory stays", || pool.stats().reserved_bytes == 0);
    }
    drop(thread);
}

/// Each way to a new shard or piece wakes it, and what was there does not.
#[test]
fn every_growth_rings() {
    let growths: [fn(&BumpPool); 3] = [
        |pool| drop(pool.acquire(1500)),
        |pool| drop(pool.acquire_zeroed(1500)),
        |pool| drop(pool.acquire(MIB)),
    ];
    for alignment in [16, 4096] {
        for growth in growths {
            let pool = BumpPool::builder().alignment(alignment).build().expect("settings are right");
            let (wakes, waker) = testkit::tasks::counting();
            assert!(pool.wake_when_grown(&waker));
            assert_eq!(wakes.count(), 0);
            growth(&pool);
            assert_eq!(wakes.count(), 1);
            assert!(pool.wake_when_grown(&waker));
            growth(&pool);
            assert_eq!(wakes.count(), 1, "the memory is there");
        }
    }
}

#[test]
fn wakers_are_users_code() {
    let pool = pool();
    keeper::wakers_are_users_code(&pool);
    assert_eq!(pool.stats().pinned_bytes, 0, "nothing was lost");
}

#[cfg(all(unix, not(miri)))]
#[test]
fn t25_forked_children_exit() {
    testkit::process::alone(module_path!(), "t25_forked_children_exit", Duration::from_secs(120), || {
        keeper::t25_forked_children_exit(&pool());
    });
}
