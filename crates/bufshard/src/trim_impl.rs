//! The methods of a pool that a keeper needs.

use core::task::Waker;
use core::time::Duration;

use crate::cache::ThreadCache;
use crate::pool::ShardPool;

bufkeeper::trimmed_pool!(impl ShardPool, |handle| ShardPool::over(handle), {
    /// Returns a number that changes when the pool is used.
    ///
    /// Cost: a visit of every cache. It stops no thread.
    fn uses(&self) -> usize {
        self.shared().caches().map(ThreadCache::uses).fold(0, usize::wrapping_add)
    }

    fn wake_when_grown(&self, waker: &Waker) -> bool {
        self.shared().growth.register(waker)
    }

    fn stalled(&self) -> Option<Duration> {
        Self::stalled(self)
    }
});
