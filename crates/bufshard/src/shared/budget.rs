//! The budget of a pool: the pages of its heap.

use super::Shared;

impl Shared {
    /// Returns the bytes of the pages that blocks have, idle and out.
    pub(crate) fn held(&self) -> usize {
        self.heap.used()
    }

    /// Returns how many bytes there are for new blocks.
    pub(crate) fn room(&self) -> usize {
        self.heap.room()
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
