//! The traits by which others use a pool: one that a keeper trims, and a handle.

use core::fmt;
use core::task::Waker;

use super::BumpPool;

bufkeeper::trimmed_pool!(impl BumpPool, |handle| BumpPool::over(handle), {
    fn wake_when_grown(&self, waker: &Waker) -> bool {
        self.shared().growth.register(waker)
    }
});

impl Clone for BumpPool {
    /// Makes another handle of the same pool.
    ///
    /// Cost: one locked instruction.
    ///
    /// # Panics
    ///
    /// With more handles than half of what a `usize` counts, nearly all of which were forgotten
    /// (`mem::forget`).
    fn clone(&self) -> Self {
        Self { handle: self.handle.clone(), ..*self }
    }
}

impl fmt::Debug for BumpPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stats = self.stats();
        f.debug_struct("BumpPool")
            .field("shard_size", &self.shard_size())
            .field("in_use", &stats.in_use)
            .field("reserved_bytes", &stats.reserved_bytes)
            .field("pinned_bytes", &stats.pinned_bytes)
            .finish_non_exhaustive()
    }
}
