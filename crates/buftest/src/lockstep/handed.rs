//! Handles that are handed over, and come back.

use std::mem;

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

    /// Hands all handles over.
    pub fn take_all(&mut self) -> Vec<Live<P::Lease>> {
        mem::take(&mut self.live)
    }

    /// Takes handles back that were handed over.
    pub fn put_back(&mut self, live: impl IntoIterator<Item = Live<P::Lease>>) {
        self.live.extend(live);
    }

    /// Counts the bytes that are out, also of handles that were handed over, and of buffers of
    /// which parts are left.
    pub fn claimed_bytes(&self) -> usize {
        self.shadow.bytes()
    }

    /// Hands the pool and all handles over.
    pub fn into_parts(self) -> (P, Vec<Live<P::Lease>>) {
        (self.pool, self.live)
    }
}
