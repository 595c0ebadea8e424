//! How a thread sleeps. Models have another of these, by the checker's locks.

use core::time::Duration;
use std::thread;

use bufkit::Waiter;

/// Yields before a sleep.
const YIELDS: u32 = 100;

/// Returns the sleeper to wake when this thread is to go on.
pub(crate) fn sleeper() -> Waiter {
    Waiter::this_thread()
}

/// Lets other threads go on, for the `n`-th time: those that have to wait for this one as well.
pub(crate) fn pause(n: u32) {
    if n < YIELDS {
        thread::yield_now();
    } else {
        thread::sleep(Duration::from_micros(100));
    }
}

/// Sleeps until it was woken since the last time, or for so long, or for no reason.
pub(crate) fn park(timeout: Option<Duration>) {
    thread::park_timeout(timeout.unwrap_or(Duration::MAX));
}
