//! How a thread sleeps in models.

use alloc::sync::Arc;
use core::task::Waker;
use core::time::Duration;

use bufkit::Waiter;
use bufkit::sync::checker;
use testkit::models::Signal;

checker::thread_local! {
    static SIGNAL: Arc<Signal> = Signal::new();
}

pub(crate) fn sleeper() -> Waiter {
    Waiter::task(Waker::from(SIGNAL.with(Arc::clone)))
}

/// Lets other threads go on.
pub(crate) fn pause(_: u32) {
    checker::thread::yield_now();
}

/// Sleeps until it was woken since the last time; there is no time in models.
pub(crate) fn park(_: Option<Duration>) {
    SIGNAL.with(Arc::clone).take();
}
