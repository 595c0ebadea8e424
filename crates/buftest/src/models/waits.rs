//! Requests that wait for a pool, against releases on other threads: the checker reports a deadlock
//! when a wake-up is lost.

use core::mem;
use core::pin::pin;
use core::task::{Context, Poll, Waker};

use bufcore::{Buf, Lease};
use loom::sync::Arc;
use loom::thread::{self, JoinHandle};

use super::{Shadow, Signal, ends, finish};
use crate::trials::waits::Waits;

/// Takes a buffer whose release sees every waiter.
fn watched<P: Waits>(pool: &mut P) -> Buf<P::Lease> {
    let mut request = pool.acquire_async(8);
    let mut cx = Context::from_waker(Waker::noop());
    let Poll::Ready(served) = request.as_mut().poll(&mut cx) else { panic!("made for as many") };
    served.expect("made for as many")
}

/// Uses the bytes and drops the buffer, on a thread of its own.
fn used_elsewhere<L: Lease>(buf: Buf<L>, shadow: &Arc<Shadow>) -> JoinHandle<()> {
    let shadow = Arc::clone(shadow);
    thread::spawn(move || {
        shadow.write();
        drop(buf);
    })
}

fn join(thread: JoinHandle<()>) {
    thread.join().expect("the order is right");
}

/// Begins to wait while the pool's only buffer is released. The request is served, and what the
/// buffer's owner did happened before.
pub fn against_a_release<P: Waits>(mut pool: P) {
    let shadow = Shadow::shared();
    let releaser = used_elsewhere(watched(&mut pool), &shadow);
    thread::yield_now();
    let mut request = pin!(pool.acquire_async(8));
    let served = finish(request.as_mut(), &Signal::new());
    shadow.write();
    drop(served.expect("room"));
    join(releaser);
}

/// Waits for the memory of both buffers of the pool, which are released on a thread each.
pub fn against_two_releases<P: Waits>(mut pool: P, all: usize) {
    let shadows = [Shadow::shared(), Shadow::shared()];
    let releasers = [0, 1].map(|at| used_elsewhere(watched(&mut pool), &shadows[at]));
    thread::yield_now();
    let mut request = pin!(pool.acquire_async(all));
    let served = finish(request.as_mut(), &Signal::new());
    shadows.iter().for_each(|shadow| shadow.write());
    drop(served.expect("room"));
    releasers.into_iter().for_each(join);
}

/// Waits for memory that either of two buffers has room for, which are released on a thread each:
/// the first one wakes it.
pub fn against_either_of_two<P: Waits>(mut pool: P) {
    let releasers = [0, 1].map(|_| used_elsewhere(watched(&mut pool), &Shadow::shared()));
    thread::yield_now();
    let mut request = pin!(pool.acquire_async(8));
    drop(finish(request.as_mut(), &Signal::new()).expect("room"));
    releasers.into_iter().for_each(join);
}

/// Polls a request by one executor, and then by another: the last one is woken.
pub fn polled_by_another<P: Waits>(mut pool: P) {
    let shadow = Shadow::shared();
    let releaser = used_elsewhere(watched(&mut pool), &shadow);
    thread::yield_now();
    let mut request = pin!(pool.acquire_async(8));
    let mut cx = Context::from_waker(Waker::noop());
    let served = match request.as_mut().poll(&mut cx) {
        Poll::Ready(served) => served,
        Poll::Pending => finish(request.as_mut(), &Signal::new()),
    };
    shadow.write();
    drop(served.expect("room"));
    join(releaser);
}

/// Waits beside a buffer whose release is a plain store: whether it wakes or not, the next poll
/// finds its memory.
pub fn against_a_plain_release<P: Waits>(mut pool: P) {
    let shadow = Shadow::shared();
    let releaser = used_elsewhere(pool.acquire(8).expect("made for one"), &shadow);
    thread::yield_now();
    let mut request = pin!(pool.acquire_async(8));
    let mut cx = Context::from_waker(Waker::noop());
    let mut polled = request.as_mut().poll(&mut cx);
    if polled.is_pending() {
        join(releaser);
        polled = request.as_mut().poll(&mut cx);
    } else {
        shadow.write();
        join(releaser);
    }
    assert!(matches!(polled, Poll::Ready(Ok(_))), "the memory came back");
}

/// Forgets a request and ends its pool, while the buffer that it waited for is released: the memory
/// goes once, after all uses.
pub fn forgotten_before_the_end<P: Waits>(mut pool: P) {
    let releaser = ends::dropped_elsewhere(watched(&mut pool));
    thread::yield_now();
    let mut request = pool.acquire_async(8);
    match request.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(served) => {
            drop(request);
            drop(served.expect("room"));
        }
        Poll::Pending => mem::forget(request),
    }
    drop(pool);
    join(releaser);
    ends::gone();
}
