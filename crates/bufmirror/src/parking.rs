//! How a thread sleeps. Models have another of these, by the checker's locks.

use core::time::Duration;
use std::thread;

use bufkit::Waiter;

/// Returns the sleeper to wake when this thread is to go on.
pub(crate) fn sleeper() -> Waiter {
    Waiter::this_thread()
}

/// Sleeps until it was woken since the last time, or for so long, or for no reason.
pub(crate) fn park(timeout: Option<Duration>) {
    thread::park_timeout(timeout.unwrap_or(Duration::MAX));
}
