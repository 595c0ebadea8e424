//! T6 and T22 to T24: requests that wait for buffers to come back.

use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use bufcore::{AcquireError, Buf, BufferPool, HeapLease, HeapPool, PoolStats, Reject};
use bufslot::SlotPool;

const LONG: Duration = Duration::from_secs(30);

buftest::waits! {
    name: rejecting,
    pool: SlotPool<Reject> =
        || SlotPool::builder().capacity(100_000).slots(64).build_with(Reject).expect("settings are right"),
}

#[test]
fn t24_beside_plain_releases() {
    buftest::trials::waits::t24_beside_plain_releases(|| {
        let pool = SlotPool::builder().capacity(100_000).slots(64).build_with(Reject);
        rejecting::Pool(pool.expect("settings are right"))
    });
}

#[test]
fn t26_one_request_for_all() {
    buftest::trials::waits::t26_one_request_for_all(|count| {
        let pool = SlotPool::builder().capacity(32 * count).slots(count).build_with(Reject);
        (rejecting::Pool(pool.expect("settings are right")), 32 * count)
    });
}

fn over<F: bufcore::BufferPool>(fallback: F) -> SlotPool<F> {
    SlotPool::builder().capacity(1000).slots(8).build_with(fallback).expect("settings are right")
}

/// What the fallback has is not waited for; what only it could have is refused when it refuses.
#[test]
fn the_fallback_is_asked_first() {
    let mut pool = over(HeapPool::new());
    let _all = pool.acquire(1000).expect("room");
    let buf = pool.acquire_timeout(1000, LONG).expect("from the heap");
    assert!(buf.lease().is_fallback());

    let mut pool = over(over(Reject));
    let both = [pool.acquire(1000).expect("room"), pool.acquire(900).expect("in the second")];
    let refused = pool.acquire_timeout(500, Duration::from_millis(2));
    assert!(matches!(refused, Err(AcquireError::Exhausted { .. })));
    let [first, _second] = both;
    let mut request = pin!(pool.acquire_async(500));
    let mut cx = Context::from_waker(Waker::noop());
    assert!(request.as_mut().poll(&mut cx).is_pending());
    drop(first);
    let Poll::Ready(Ok(buf)) = request.poll(&mut cx) else { panic!("the region has room") };
    assert!(!buf.lease().is_fallback());
}

/// A fallback without memory keeps nobody from the region.
#[test]
fn what_the_fallback_lacks_is_waited_for() {
    let mut pool = over(Refusing);
    let held = pool.acquire(1000).expect("room");
    let refused = pool.acquire_timeout(500, Duration::from_millis(2));
    assert!(matches!(refused, Err(AcquireError::OutOfMemory { requested: 500 })), "{refused:?}");
    let later = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(20));
        drop(held);
    });
    assert!(pool.acquire_timeout(500, LONG).is_ok());
    later.join().expect("a release does not panic");
    // A request that the region can never serve is refused at once.
    assert!(matches!(pool.acquire_timeout(2000, LONG), Err(AcquireError::OutOfMemory { .. })));
    let held = pool.acquire(1000).expect("room");
    let mut request = pin!(pool.acquire_async(500));
    let mut cx = Context::from_waker(Waker::noop());
    assert!(request.as_mut().poll(&mut cx).is_pending());
    drop(held);
    assert!(matches!(request.poll(&mut cx), Poll::Ready(Ok(_))));
}

/// The heap, when there is no memory.
struct Refusing;

impl BufferPool for Refusing {
    type Lease = HeapLease;

    fn acquire(&mut self, requested: usize) -> Result<Buf<HeapLease>, AcquireError> {
        Err(AcquireError::OutOfMemory { requested })
    }

    fn max_capacity(&self) -> usize {
        usize::MAX
    }

    fn stats(&self) -> PoolStats {
        PoolStats::default()
    }
}

/// A request that is larger than the region, and that the fallback could have served, is refused at
/// once.
#[test]
fn larger_than_the_region() {
    let second = SlotPool::builder().capacity(5000).slots(8).build_with(Reject).expect("settings are right");
    let mut pool = over(second);
    let _all = pool.acquire(4000).expect("in the second");
    let started = Instant::now();
    let refused = pool.acquire_timeout(2000, LONG);
    assert!(matches!(refused, Err(AcquireError::Exhausted { .. })), "{refused:?}");
    assert!(started.elapsed() < LONG / 2);
}

/// A frame that is open keeps its place, which nobody could give back meanwhile.
#[test]
fn an_open_frame_is_not_waited_for() {
    let mut pool = over(Reject);
    pool.extend_from_slice(&[1; 600]).expect("room");
    let started = Instant::now();
    assert!(matches!(pool.acquire_timeout(500, LONG), Err(AcquireError::Exhausted { .. })));
    assert!(started.elapsed() < LONG / 2);
    // Beside a buffer it is waited for.
    let buf = pool.acquire(300).expect("room");
    let refused = pool.acquire_timeout(400, Duration::from_millis(5));
    assert!(matches!(refused, Err(AcquireError::Exhausted { .. })));
    drop(buf);
    assert_eq!(pool.acquire_timeout(400, LONG).expect("room").capacity(), 400);
    assert_eq!(pool.detach().expect("it has its place")[..], [1; 600]);
}

/// Looks of a request that waits are no refusals.
#[cfg(feature = "stats")]
#[test]
fn looks_are_not_counted() {
    let mut pool = over(Reject);
    let held = pool.acquire(1000).expect("room");
    let mut cx = Context::from_waker(Waker::noop());
    let mut request = Box::pin(pool.acquire_async(500));
    for _ in 0..10 {
        assert!(request.as_mut().poll(&mut cx).is_pending());
    }
    drop(held);
    assert!(request.as_mut().poll(&mut cx).is_ready());
    drop(request);
    let stats = pool.stats();
    assert_eq!((stats.exhausted, stats.acquired, stats.in_use), (1, 2, 0));
}

#[cfg(feature = "track")]
#[test]
fn tracked_where_it_was_asked_for() {
    let pool = rejecting::Pool(over(Reject));
    buftest::trials::waits::tracked_where_it_was_asked_for(pool, |pool| {
        pool.0.outstanding().iter().map(|buffer| buffer.location).collect()
    });
}
