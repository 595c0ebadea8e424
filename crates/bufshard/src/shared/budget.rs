//! The budget of a pool: the bytes of all its blocks, idle and out.

use bufcore::AcquireError;
use core::ptr::NonNull;

use super::Shared;
use crate::sync::Ordering;
use crate::wait_queue::Event;

impl Shared {
    /// Returns the bytes of all blocks.
    pub(crate) fn reserved(&self) -> usize {
        // ORDER: Relaxed: a count.
        self.reserved.load(Ordering::Relaxed)
    }

    /// Adds to the bytes of all blocks, within the budget; what is left of it otherwise.
    pub(crate) fn reserve(&self, bytes: usize) -> Result<(), usize> {
        let budget = self.settings.max_bytes;
        // ORDER: Relaxed, for all: a count.
        let mut reserved = self.reserved.load(Ordering::Relaxed);
        loop {
            let left = budget.saturating_sub(reserved);
            if bytes > left {
                return Err(left);
            }
            // ORDER: Relaxed, for both, as above.
            let exchange = self.reserved.compare_exchange_weak(
                reserved,
                reserved + bytes,
                Ordering::Relaxed,
                Ordering::Relaxed,
            );
            match exchange {
                Ok(_) => return Ok(()),
                Err(now) => reserved = now,
            }
        }
    }

    /// Returns the error of a request for which `left` bytes of the budget are not enough, with
    /// nothing idle.
    pub(crate) fn exhausted(&self, requested: usize, left: usize) -> AcquireError {
        AcquireError::Exhausted { requested, available: self.settings.most_within(left) }
    }

    /// Returns what is left of the budget.
    pub(crate) fn free(&self) -> usize {
        self.settings.max_bytes.saturating_sub(self.reserved())
    }

    /// Takes from the bytes of all blocks.
    ///
    /// # Safety
    ///
    /// As for [`notify`](Self::notify).
    pub(crate) unsafe fn unreserve(this: NonNull<Self>, bytes: usize) {
        // SAFETY: the caller's promise.
        let shared = unsafe { this.as_ref() };
        // ORDER: Relaxed: a count; for those who wait, the fence in `notify` orders it.
        shared.reserved.fetch_sub(bytes, Ordering::Relaxed);
        if shared.has_budget() {
            // SAFETY: the caller's promise.
            unsafe { Self::notify(this, Event::Freed) };
        }
    }

    /// Returns whether anybody may ever wait.
    pub(crate) fn has_budget(&self) -> bool {
        self.settings.max_bytes != usize::MAX
    }

    /// Returns whether somebody waits for what is released.
    pub(crate) fn is_waited_for(&self) -> bool {
        self.has_budget() && self.wait_queue.any()
    }
}
