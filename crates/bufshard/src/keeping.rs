//! The methods of a pool that a keeper needs.

use alloc::boxed::Box;
use core::task::Waker;
use core::time::Duration;

use bufcore::PoolStats;
use bufkeeper::{Trim, Watch, WeakPool};

use crate::cache::ThreadCache;
use crate::pool::ShardPool;
use crate::shared::Shared;

impl Trim for ShardPool {
    fn trim(&mut self) {
        Self::trim(self);
    }

    fn trim_idle(&mut self, age: Duration) {
        Self::trim_idle(self, age);
    }

    /// Returns a snapshot of the pool's counters, and of the memory that it holds.
    ///
    /// Cost: as that of `ShardPool::stats`.
    fn stats(&self) -> Option<PoolStats> {
        Some(Self::stats(self))
    }

    /// Returns a number that changes when the pool is used.
    ///
    /// Cost: a look at every cache. It stops no thread.
    fn uses(&self) -> usize {
        self.shared().uses()
    }

    fn wake_when_grown(&self, waker: &Waker) -> bool {
        self.shared().growth.register(waker)
    }
}

impl Watch for ShardPool {
    fn downgrade(&self) -> Box<dyn WeakPool> {
        bufkeeper::watched(self.weak(), Self::over)
    }
}

impl Shared {
    /// Returns a number that changes when a thread's cache is used.
    fn uses(&self) -> usize {
        self.caches().map(ThreadCache::uses).fold(0, usize::wrapping_add)
    }
}
