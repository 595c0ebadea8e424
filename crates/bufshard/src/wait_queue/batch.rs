//! The sleepers that are woken together, when the lock of the queue is given up.

use bufkit::Waiter;

/// How many are woken between two looks at the queue.
const BATCH: usize = 8;

/// Some that are to be woken when the lock is given up.
#[derive(Default)]
pub(crate) struct Batch([Option<Waiter>; BATCH]);

impl Batch {
    /// Returns the place for one more sleeper, if there is any.
    pub(super) fn room(&mut self) -> Option<&mut Option<Waiter>> {
        self.0.iter_mut().find(|place| place.is_none())
    }

    /// Wakes them all, whatever their wakers do: releases at the end of a thread, and those behind,
    /// do not depend on it.
    pub(crate) fn wake(self) {
        self.0.into_iter().flatten().for_each(Waiter::wake_caught);
    }
}
