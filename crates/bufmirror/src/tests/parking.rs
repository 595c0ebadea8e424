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

/// Sleeps until it was woken since the last time; there is no time in models.
pub(crate) fn park(_: Option<Duration>) {
    SIGNAL.with(Arc::clone).take();
}
