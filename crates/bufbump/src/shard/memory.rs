//! The memory of a shard: how a header comes by it, and how it goes.

use bufcore::RegionError;
use bufkit::PoolProvider;
use bufkit::sync::Ordering;

use super::{Layout, Shard};

impl Shard {
    /// Gives a free header memory, as `layout` says; `source` is the pool's.
    pub(crate) fn attach_memory(&self, layout: &Layout, source: &PoolProvider) -> Result<(), RegionError> {
        let region = layout.region(source)?;
        let (own, cold) = (&self.own, &self.own.cold);
        own.base.set(layout.base(&region).as_ptr());
        own.limit.set(layout.limit(&region));
        self.region.set(Some(region));
        cold.is_dedicated.set(false);
        // ORDER: Relaxed, for all: others read them for `stats` only.
        own.allocated.store(0, Ordering::Relaxed);
        self.bytes.store(layout.room(), Ordering::Relaxed);
        cold.held.store(layout.held(), Ordering::Relaxed);
        Ok(())
    }

    /// Gives the memory of a free shard that nobody needs to the allocator, and its pages to the
    /// system, since the allocator may keep them: that of `least` bytes or more. To be followed by
    /// `detach_memory`.
    pub(crate) fn free_to_system(&self, least: usize) {
        if let Some(region) = self.region.take().filter(|region| region.len() >= least) {
            region.free_to_system();
        }
    }

    /// Frees the memory of a free shard.
    pub(crate) fn detach_memory(&self) {
        // ORDER: Relaxed, for both, as in `attach_memory`.
        self.bytes.store(0, Ordering::Relaxed);
        self.own.cold.held.store(0, Ordering::Relaxed);
        #[cfg(all(test, loom))]
        crate::tests::loom::goes(&self.shadow);
        drop(self.region.take());
    }
}
