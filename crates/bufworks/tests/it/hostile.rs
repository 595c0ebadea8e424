//! Programs without `unsafe` in which pools meet: code of the user's runs inside of one and ends,
//! or uses, another.

use std::future::Future;
use std::mem;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread;
use std::time::Duration;

use bufworks::bump::{BumpLease, BumpPool};
use bufworks::shard::ShardPool;
use bufworks::slot::SlotPool;
use bufworks::{AcquireError, Buf, BufferPool, PoolStats};

const BUDGET: usize = 100_000;

/// Keeps something alive until it is dropped.
struct Holds<T>(T);

impl<T: Send + Sync + 'static> Wake for Holds<T> {
    fn wake(self: Arc<Self>) {
        let _ = &self.0;
    }
}

/// A pool of which this thread has a cache.
fn used_here() -> ShardPool {
    let pool = ShardPool::builder().shards(1).max_bytes(BUDGET).build().expect("settings are right");
    drop(pool.acquire(100).expect("room"));
    pool
}

/// Waits with `waker` for more than there is, and forgets that.
fn wait_and_forget(pool: &ShardPool, waker: Waker) {
    let mut request = Box::pin(pool.acquire_async(80_000));
    let poll = request.as_mut().poll(&mut Context::from_waker(&waker));
    assert!(matches!(poll, Poll::Pending));
    mem::forget(request);
}

/// Ends `pool` on another thread. This thread has a cache of it, which keeps `kept` until it is let
/// go of.
fn end_elsewhere<T: Send + Sync + 'static>(pool: ShardPool, kept: T) {
    let held = pool.acquire(90_000).expect("room");
    // The first is woken when `held` goes.
    wait_and_forget(&pool, Waker::noop().clone());
    wait_and_forget(&pool, Arc::new(Holds(kept)).into());
    let end = thread::spawn(move || drop((pool, held)));
    end.join().expect("a pool ends without a panic");
}

/// The same, and nobody wakes what keeps `kept`: it goes with the pool, wherever that is let go of.
fn end_elsewhere_asleep<T: Send + Sync + 'static>(pool: ShardPool, kept: T) {
    // More than are woken of those who looked before.
    const WAITING: usize = 20;
    let last: Waker = Arc::new(Holds(kept)).into();
    let held = pool.acquire(90_000).expect("room");
    let mut waiting: Vec<_> = (0..WAITING).map(|_| Box::pin(pool.acquire_async(80_000))).collect();
    let mut poll_all = || {
        let wakers = (1..WAITING).map(|_| Waker::noop()).chain([&last]);
        let polls = waiting.iter_mut().zip(wakers);
        let polls = polls.map(|(request, waker)| request.as_mut().poll(&mut Context::from_waker(waker)));
        polls.collect::<Vec<_>>()
    };
    assert!(poll_all().iter().all(Poll::is_pending));
    // All are woken, and look again.
    drop(held);
    let mut polls = poll_all().into_iter();
    let Some(Poll::Ready(Ok(held))) = polls.next() else { panic!("the first is served") };
    assert!(polls.all(|poll| poll.is_pending()), "there is room for one");
    mem::forget(waiting);
    drop(last);
    let end = thread::spawn(move || drop((pool, held)));
    end.join().expect("a pool ends without a panic");
}

/// Runs a test where freed memory is not what it was.
fn alone(test: &str, body: impl FnOnce()) {
    testkit::process::alone(module_path!(), test, Duration::from_secs(60), || {
        testkit::process::spoil_freed_memory();
        body();
    });
}

/// Refuses the fence by which the end of a pool finds out that a thread is at rest; `false` where
/// that is not to be had. What a thread has of pools that are there, and end later, is left to it.
fn refuse_fences() -> bool {
    #[cfg(target_os = "linux")]
    return testkit::sandbox::refuse_fences();
    #[cfg(not(target_os = "linux"))]
    false
}

/// A thread lets go of what it has of a pool that is gone, and with that goes the last handle of
/// another pool of its own: of each that it met on its way.
#[test]
fn t23_a_waker_ends_the_pool_beside() {
    alone("t23_a_waker_ends_the_pool_beside", || {
        // Those beside are made later, so that they are met before it.
        let group = |distance| {
            let (pool, ends) = (used_here(), Arc::new(()));
            let beside: Vec<_> = (0..distance).map(|_| (used_here(), Arc::clone(&ends))).collect();
            (pool, beside, ends)
        };
        let groups: Vec<_> = [1, 2, 7, 8, 9, 16, 17].map(group).into_iter().collect();
        let is_left_here = refuse_fences();
        for (pool, beside, ends) in groups.into_iter().rev() {
            end_elsewhere_asleep(pool, beside);
            assert_eq!(Arc::strong_count(&ends) > 1, is_left_here, "who lets go of it");
            // As many as it takes until the thread has met all that it has.
            drop((0..96).map(|_| used_here()).collect::<Vec<_>>());
            assert_eq!(Arc::strong_count(&ends), 1, "what was forgotten is gone with its pool");
        }
    });
}

/// The same with wakers that make pools and use them while they are dropped.
#[test]
fn t23_a_waker_uses_pools_while_it_is_dropped() {
    struct Uses {
        pool: ShardPool,
        _count: Arc<()>,
    }
    impl Drop for Uses {
        fn drop(&mut self) {
            let new: Vec<_> = (0..16).map(|_| used_here()).collect();
            let buf = self.pool.acquire(5000).expect("room");
            drop(new);
            drop(buf);
        }
    }
    alone("t23_a_waker_uses_pools_while_it_is_dropped", || {
        let count = Arc::new(());
        for _ in 0..20 {
            let other = used_here();
            for pool in [other.clone(), other] {
                end_elsewhere(used_here(), Uses { pool, _count: Arc::clone(&count) });
            }
            drop((0..16).map(|_| used_here()).collect::<Vec<_>>());
        }
        drop((0..64).map(|_| used_here()).collect::<Vec<_>>());
        assert_eq!(Arc::strong_count(&count), 1, "what was forgotten is gone with its pool");
    });
}

/// A waker whose drop panics: whoever asks another pool for a buffer gets it, and all that was met
/// with it is let go of.
#[test]
fn t22_a_waker_panics_while_it_is_dropped() {
    struct Panics {
        _count: Arc<()>,
    }
    impl Drop for Panics {
        fn drop(&mut self) {
            panic!("a waker's drop panics, as it was told to");
        }
    }
    alone("t22_a_waker_panics_while_it_is_dropped", || {
        let count = Arc::new(());
        for _ in 0..8 {
            end_elsewhere(used_here(), Panics { _count: Arc::clone(&count) });
        }
        let others: Vec<_> = (0..64).map(|_| used_here()).collect();
        assert!(others.iter().all(|pool| pool.acquire(90_000).is_ok()), "no budget is lost");
        drop(others);
        assert_eq!(Arc::strong_count(&count), 1, "what was forgotten is gone with its pool");
        // At a thread's end no less.
        let theirs = Arc::clone(&count);
        let thread = thread::spawn(move || end_elsewhere(used_here(), Panics { _count: theirs }));
        thread.join().expect("the thread ends well");
        assert_eq!(Arc::strong_count(&count), 1, "what was forgotten is gone with the thread");
    });
}

/// A fallback that hands out parts of one buffer: the tracker of the slot pool is not that of the
/// memory.
struct Parts {
    pool: BumpPool,
    rest: Buf<BumpLease>,
}

impl BufferPool for Parts {
    type Lease = BumpLease;

    fn acquire(&mut self, capacity: usize) -> Result<Buf<BumpLease>, AcquireError> {
        if self.rest.capacity() < capacity {
            self.rest = self.pool.acquire(capacity.max(4096))?;
        }
        let rest = self.rest.split_off(capacity);
        Ok(mem::replace(&mut self.rest, rest))
    }

    fn max_capacity(&self) -> usize {
        self.pool.max_capacity()
    }

    fn stats(&self) -> PoolStats {
        self.pool.stats()
    }
}

#[test]
fn t21_a_fallback_hands_out_parts() {
    let memory = BumpPool::new().expect("the allocator has room");
    for order in 0..2 {
        let fallback = Parts { pool: memory.clone(), rest: memory.acquire(4096).expect("room") };
        let mut pool = SlotPool::builder().capacity(64).build_with(fallback).expect("settings are right");
        let mut bufs: Vec<_> = (0..40).map(|_| pool.acquire(100).expect("the fallback serves")).collect();
        for (number, buf) in bufs.iter_mut().enumerate() {
            buf.resize(100, number as u8).expect("asked for");
        }
        if order == 0 {
            bufs.reverse();
        }
        while let Some(buf) = bufs.pop() {
            assert!(buf.iter().all(|byte| byte == &buf[0]));
            drop(buf);
            #[cfg(feature = "track")]
            assert!(memory.outstanding().len() >= usize::from(!bufs.is_empty()), "the memory is out");
        }
        assert!(pool.acquire(10).is_ok());
    }
    assert_eq!(memory.stats().in_use, 0);
    #[cfg(feature = "track")]
    assert!(memory.outstanding().is_empty());
}
