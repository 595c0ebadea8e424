//! Wakers that do what users' code may do at each event: panic, come back in.

use std::sync::Arc;
use std::task::{RawWaker, RawWakerVTable, Waker};

/// What happens to a waker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// It is cloned.
    Clone,
    /// It is woken, by value or by reference.
    Wake,
    /// It is dropped.
    Drop,
}

/// What a waker does then. It may panic, and use or drop anything.
type Hook = dyn Fn(Event) + Send + Sync;

/// Makes a waker that calls `hook` at each event, also for its clones: before a clone is made, a
/// wake is counted as done, or memory goes.
pub fn hooked(hook: impl Fn(Event) + Send + Sync + 'static) -> Waker {
    let hook: Arc<Box<Hook>> = Arc::new(Box::new(hook));
    // SAFETY: the functions of the table keep the count of an `Arc` that came from `into_raw`, and
    // are safe for any thread, as it is.
    unsafe { Waker::from_raw(RawWaker::new(Arc::into_raw(hook).cast(), &TABLE)) }
}

static TABLE: RawWakerVTable = RawWakerVTable::new(clone, wake, wake_by_ref, drop_it);

unsafe fn clone(data: *const ()) -> RawWaker {
    let data = data.cast::<Box<Hook>>();
    // SAFETY: the waker that is being cloned has a reference.
    (unsafe { &*data })(Event::Clone);
    // SAFETY: likewise.
    unsafe { Arc::increment_strong_count(data) };
    RawWaker::new(data.cast(), &TABLE)
}

unsafe fn wake(data: *const ()) {
    // SAFETY: the waker's reference, which is given up.
    let hook = unsafe { Arc::from_raw(data.cast::<Box<Hook>>()) };
    hook(Event::Wake);
}

unsafe fn wake_by_ref(data: *const ()) {
    // SAFETY: the waker has a reference.
    (unsafe { &*data.cast::<Box<Hook>>() })(Event::Wake);
}

unsafe fn drop_it(data: *const ()) {
    // SAFETY: the waker's reference, which is given up.
    let hook = unsafe { Arc::from_raw(data.cast::<Box<Hook>>()) };
    hook(Event::Drop);
}
