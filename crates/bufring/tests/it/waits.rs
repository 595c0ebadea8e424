//! T6 and T22 to T24: requests that wait for buffers to come back.

use std::time::{Duration, Instant};

use bufcore::AcquireError;
use bufring::RingPool;

const LONG: Duration = Duration::from_secs(30);

buftest::waits! {
    name: ring,
    pool: RingPool = || RingPool::builder().capacity(100_000).buffers(64).build().expect("settings are right"),
}

// Guards in a table.
buftest::waits! {
    name: aligned,
    pool: RingPool =
        || RingPool::builder().capacity(131_072).buffers(64).alignment(512).build().expect("settings are right"),
}

#[test]
fn t24_beside_plain_releases() {
    buftest::trials::waits::t24_beside_plain_releases(|| {
        ring::Pool(RingPool::builder().capacity(100_000).buffers(64).build().expect("settings are right"))
    });
}

#[test]
fn t26_one_request_for_all() {
    for alignment in [16, 512] {
        buftest::trials::waits::t26_one_request_for_all(|count| {
            let bytes = 32.max(alignment) * count;
            let pool = RingPool::builder().capacity(bytes).buffers(count).alignment(alignment).build();
            let pool = pool.expect("settings are right");
            let all = pool.capacity();
            (ring::Pool(pool), all)
        });
    }
}

/// A frame that is open keeps its place, which nobody could give back meanwhile.
#[test]
fn an_open_frame_is_not_waited_for() {
    let mut ring = RingPool::new(1000).expect("settings are right");
    ring.extend_from_slice(&[1; 600]).expect("room");
    let started = Instant::now();
    assert!(matches!(ring.acquire_timeout(500, LONG), Err(AcquireError::Exhausted { .. })));
    assert!(started.elapsed() < LONG / 2);
    // Beside a buffer it is waited for.
    let buf = ring.acquire(200).expect("room");
    let refused = ring.acquire_timeout(300, Duration::from_millis(5));
    assert!(matches!(refused, Err(AcquireError::Exhausted { .. })));
    drop(buf);
    assert_eq!(ring.acquire_timeout(300, LONG).expect("room").capacity(), 300);
    assert_eq!(ring.detach().expect("it has its place")[..], [1; 600]);
}

/// Vectors and forgotten extendable buffers are told, or cleared away, as all else.
#[test]
fn vectors_are_waited_for() {
    let mut ring = RingPool::new(1000).expect("settings are right");
    let values = ring.acquire_vec::<u64>(100).expect("room");
    std::thread::scope(|scope| {
        scope.spawn(move || {
            std::thread::sleep(Duration::from_millis(10));
            drop(values);
        });
        assert!(ring.acquire_timeout(700, LONG).is_ok());
    });
    std::mem::forget(ring.extendable(800).expect("room"));
    assert!(ring.acquire_timeout(700, LONG).is_ok());
}

#[cfg(feature = "track")]
#[test]
fn tracked_where_it_was_asked_for() {
    let pool = ring::Pool(RingPool::new(1000).expect("settings are right"));
    buftest::trials::waits::tracked_where_it_was_asked_for(pool, |pool| {
        pool.0.outstanding().iter().map(|buffer| buffer.location).collect()
    });
}
