//! T18 and T23 for requests that wait: an allocator that refuses, and one that comes back into the
//! pool. For test binaries of their own, whose allocator is a [`Failing`] or a [`Reentrant`].
//!
//! The pools have 1000 bytes.

use std::cell::Cell;
use std::task::{Poll, Waker};
use std::thread;

use bufcore::AcquireError;

use super::{LONG, Waits, now};
use crate::alloc::{Failing, Reentrant};
use crate::tasks::{counting, poll};

/// Checks that without memory for the waiting itself there is an error, and nothing is left behind.
/// A request that waits needs no more.
pub fn t18_no_memory_to_wait<P: Waits>(mut pool: P) {
    let held = pool.acquire(900).expect("room");
    let none = AcquireError::OutOfMemory { requested: 500 };
    let mut request = pool.acquire_async(500);
    let (polled, refused) = Failing::after(0, || poll(request.as_mut(), Waker::noop()));
    assert!(matches!(polled, Poll::Ready(Err(error)) if error == none) && refused == 1, "{polled:?}");
    drop(request);
    // A thread's handle is an allocation, once.
    let _named = thread::current();
    let (blocked, refused) = Failing::after(0, || pool.acquire_timeout(500, LONG).map(drop));
    assert_eq!((blocked, refused), (Err(none), 1));
    let mut request = pool.acquire_async(500);
    assert!(poll(request.as_mut(), Waker::noop()).is_pending());
    let (polled, refused) = Failing::after(0, || poll(request.as_mut(), Waker::noop()));
    assert!(polled.is_pending() && refused == 0);
    let ((), refused) = Failing::after(0, || drop(held));
    assert_eq!(refused, 0);
    let (polled, refused) = Failing::after(0, || poll(request.as_mut(), Waker::noop()));
    assert!(matches!(polled, Poll::Ready(Ok(_))) && refused == 0);
}

/// Checks that a request waits, and is served, while `allocator`, in each of its calls in turn,
/// releases a buffer that it waits for, and uses another pool.
pub fn t23_within_a_wait<P: Waits>(allocator: &Reentrant, make: impl Fn() -> P) {
    for before in 0.. {
        let (mut pool, mut other) = (make(), make());
        let mut held = || Cell::new(Some(now::<P>(pool.acquire_async(400)).expect("room")));
        let (first, second) = (held(), held());
        let mut request = pool.acquire_async(900);
        let mut is_done = false;
        let act = || {
            drop(second.take());
            drop(other.acquire(500));
            is_done = true;
        };
        let (wakes, waker) = counting();
        let mut polled = None;
        let calls = Reentrant::within(before, act, || {
            let is_pending = poll(request.as_mut(), &waker).is_pending();
            drop(first.take());
            drop(second.take());
            polled = is_pending.then(|| poll(request.as_mut(), &waker));
        });
        assert!(matches!(polled, Some(Poll::Ready(Ok(_)))), "{polled:?} in call {before}");
        assert!(wakes.count() > 0, "nobody was woken in call {before}");
        assert_eq!(is_done, before < calls);
        if !is_done {
            assert!(calls >= 2, "the waiting is an allocation, and given back");
            break;
        }
    }
    allocator.check();
}
