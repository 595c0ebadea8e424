//! Ends in one process: what they see of each other is in ordinary memory, and they wake tasks and
//! threads.

use alloc::boxed::Box;
use core::ptr::NonNull;
use core::time::Duration;

use bufkit::Waiter;
use bufkit::sync::AtomicU32;

use super::header::Header;
use super::transport::Transport;
use crate::lock::Lock;
use crate::parking;

/// The transport of a channel.
pub(super) struct Threads {
    header: Box<Header>,
    /// Of the consumer and of the producer. Set before `SLEEPS` is.
    sleepers: [Lock<Option<Waiter>>; 2],
}

impl Threads {
    pub(super) fn new() -> Self {
        Self { header: Box::default(), sleepers: [Lock::new(None), Lock::new(None)] }
    }
}

// SAFETY: a box of the transport's own, which is lent as shared only.
unsafe impl Transport for Threads {
    fn header(&self) -> NonNull<Header> {
        NonNull::from(&*self.header)
    }

    fn is_in_process(&self) -> bool {
        true
    }

    fn arm(&self, producer: bool, sleeper: Waiter) {
        let mut place = self.sleepers[usize::from(producer)].lock();
        let old = place.replace(sleeper);
        drop(place);
        // A waker's drop is the user's code: not under the lock.
        drop(old);
    }

    fn disarm(&self, producer: bool) {
        let old = self.sleepers[usize::from(producer)].lock().take();
        drop(old);
    }

    fn sleep(&self, _state: &AtomicU32, limit: Option<Duration>) {
        parking::park(limit);
    }

    fn wake(&self, producer: bool, _state: &AtomicU32) {
        let sleeper = self.sleepers[usize::from(producer)].lock().take();
        if let Some(sleeper) = sleeper {
            sleeper.wake_caught();
        }
    }
}
