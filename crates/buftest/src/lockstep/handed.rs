//! Handles that are handed over.

use bufcore::{BufferPool, SplitLease};

use super::{Live, Lockstep};

impl<P: BufferPool<Lease: SplitLease>> Lockstep<P> {
    /// Hands one of the handles over, which `at` picks.
    pub fn take(&mut self, at: usize) -> Option<Live<P::Lease>> {
        if self.live.is_empty() {
            return None;
        }
        let at = at % self.live.len();
        Some(self.live.swap_remove(at))
    }

    /// Counts the bytes that are out, also of handles that were handed over, and of buffers of
    /// which parts are left.
    pub fn claimed_bytes(&self) -> usize {
        self.shadow.bytes()
    }
}
