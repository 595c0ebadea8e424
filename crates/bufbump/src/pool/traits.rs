//! The traits by which others use a pool: one that a keeper trims, and a handle.

use core::fmt;
use core::task::Waker;

use super::BumpPool;

bufkeeper::trimmed_pool!(impl BumpPool, |handle| BumpPool::over(handle), {
    fn wake_when_grown(&self, waker: &Waker) -> bool {
        self.shared().growth.register(waker)
    }
});

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
