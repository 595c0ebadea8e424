//! Threads: clones, caches that end with their thread, and buffers at a thread's very end.

use std::cell::RefCell;
use std::sync::{Arc, Barrier};
use std::thread;

use bufshard::bufcore::Buf;
use bufshard::{ShardLease, ShardPool};
use buftest::model::Shadow;
use buftest::pattern;

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

struct AtTheEnd {
    pool: ShardPool,
    held: Vec<Buf<ShardLease>>,
    report: Arc<std::sync::Mutex<Vec<bool>>>,
}

impl Drop for AtTheEnd {
    fn drop(&mut self) {
        let mut buf = self.pool.acquire(100).expect("room");
        buf.resize(100, 3).expect("asked for");
        let fine = buf.iter().all(|&byte| byte == 3) && self.held.iter().all(|buf| buf[..] == [9; 50]);
        let part = buf.split_off(50);
        drop((buf, part));
        self.report.lock().expect("nobody panics with it").push(fine);
    }
}

thread_local! {
    static EARLY: RefCell<Option<AtTheEnd>> = const { RefCell::new(None) };
    static LATE: RefCell<Option<AtTheEnd>> = const { RefCell::new(None) };
}

/// Buffers are acquired and dropped by destructors of thread-locals, before the pool's own and after them.
#[test]
fn at_a_threads_very_end() {
    for pool_goes in [false, true] {
        let pool = small();
        let report = Arc::new(std::sync::Mutex::new(Vec::new()));
        let (theirs, theirs_report) = (pool.clone(), Arc::clone(&report));
        let ending = thread::spawn(move || {
            let at_the_end =
                || AtTheEnd { pool: theirs.clone(), held: Vec::new(), report: Arc::clone(&theirs_report) };
            // Registered before the pool's, and after.
            EARLY.set(Some(at_the_end()));
            let mut buf = theirs.acquire(50).expect("room");
            buf.resize(50, 9).expect("asked for");
            LATE.set(Some(at_the_end()));
            LATE.with_borrow_mut(|slot| slot.as_mut().expect("set").held.push(buf));
            let mut buf = theirs.acquire(50).expect("room");
            buf.resize(50, 9).expect("asked for");
            EARLY.with_borrow_mut(|slot| slot.as_mut().expect("set").held.push(buf));
        });
        let pool = if pool_goes {
            drop(pool);
            None
        } else {
            Some(pool)
        };
        ending.join().expect("the thread ends well");
        assert_eq!(*report.lock().expect("nobody panics with it"), [true, true]);
        if let Some(pool) = pool {
            assert_eq!(pool.stats().in_use, 0);
        }
    }
}

/// The last handle may go on any thread, with buffers of all of them out.
#[test]
fn the_last_handle_goes_anywhere() {
    for round in 0..200 {
        let pool = small();
        let barrier = Arc::new(Barrier::new(3));
        let threads: Vec<_> = (0..3_u8)
            .map(|index| {
                let (pool, barrier) = (pool.clone(), Arc::clone(&barrier));
                thread::spawn(move || {
                    let mut bufs: Vec<_> = (0..10).map(|_| pool.acquire(1000).expect("room")).collect();
                    bufs.iter_mut().for_each(|buf| buf.resize(1000, index).expect("asked for"));
                    let kept = bufs.split_off(round % 10);
                    barrier.wait();
                    drop(pool);
                    drop(bufs);
                    kept
                })
            })
            .collect();
        drop(pool);
        for (index, thread) in (0..).zip(threads) {
            let kept = thread.join().expect("the thread ends well");
            assert!(kept.iter().all(|buf| buf.iter().all(|&byte| byte == index)));
        }
    }
}
