//! The sleepers that are woken together, when the lock of the queue is given up.

use core::mem;

use bufcore::strategy::Sleeper;

/// How many are woken between two looks at the queue.
const BATCH: usize = 8;

/// Some that are to be woken when the lock is given up.
#[derive(Default)]
pub(crate) struct Batch([Option<Sleeper>; BATCH]);

impl Batch {
    /// Room for one, if there is any.
    pub(super) fn room(&mut self) -> Option<&mut Option<Sleeper>> {
        self.0.iter_mut().find(|place| place.is_none())
    }

    /// Wakes them all. A waker that panics has done what it was to do as well as it can.
    pub(crate) fn wake(self) {
        for sleeper in self.0.into_iter().flatten() {
            wake(sleeper);
        }
    }
}

/// Wakes one, whatever its waker does: releases at the end of a thread, and those behind, do not
/// depend on it.
fn wake(sleeper: Sleeper) {
    // What the model checker finds is not to be caught.
    if cfg!(any(loom, shuttle)) {
        return sleeper.wake();
    }
    let wake = core::panic::AssertUnwindSafe(|| sleeper.wake());
    if let Err(payload) = std::panic::catch_unwind(wake) {
        // Its drop might panic too.
        mem::forget(payload);
    }
}
