//! Whom to wake.

use core::task::Waker;
use std::thread::Thread;

/// One that waits: a task of whatever executor, or a thread that parks.
#[derive(Debug)]
pub enum Sleeper {
    /// Is polled again when it is woken.
    Task(Waker),
    /// Comes back from `std::thread::park`, perhaps for another reason.
    Thread(Thread),
}

impl Sleeper {
    /// Returns the calling thread.
    #[must_use]
    pub fn this_thread() -> Self {
        Self::Thread(std::thread::current())
    }

    /// Wakes it. A waker is the user's code: no lock should be held.
    pub fn wake(self) {
        match self {
            Self::Task(waker) => waker.wake(),
            Self::Thread(thread) => thread.unpark(),
        }
    }
}
