//! The memory of a shard: how a header comes by it, and how it goes.

use core::ptr;

use bufcore::RegionError;
use bufkit::PoolProvider;
use bufkit::sync::Ordering;

use super::{Layout, Shard};

impl Shard {
    /// Gives a free header memory, as `layout` says; `source` is the pool's.
    pub(crate) fn furnish(
        &self,
        layout: &Layout,
        source: &PoolProvider,
        generation: usize,
    ) -> Result<(), RegionError> {
        let region = layout.region(source)?;
        let (own, rare) = (&self.own, &self.own.rare);
        own.base.set(layout.base(&region).as_ptr());
        own.limit.set(layout.limit(&region));
        rare.data.set(layout.data(&region));
        rare.shift.set(layout.shift());
        self.region.set(Some(region));
        self.own.rare.generation.set(generation);
        rare.is_single.set(false);
        // Regions are zeroed, wherever they come from.
        rare.is_new.set(true);
        // ORDER: Relaxed, for all: others read them for `stats` only.
        own.taken.store(0, Ordering::Relaxed);
        self.bytes.store(layout.room(), Ordering::Relaxed);
        rare.held.store(layout.held(), Ordering::Relaxed);
        Ok(())
    }

    /// Gives the memory of a free shard that nobody needs to the allocator, and its pages to the
    /// system, since the allocator may keep them: that of `least` bytes or more. To be followed by
    /// `strip`.
    pub(crate) fn free_to_system(&self, least: usize) {
        if let Some(region) = self.region.take().filter(|region| region.len() >= least) {
            region.free_to_system();
        }
    }

    /// Frees the memory of a free shard.
    pub(crate) fn strip(&self) {
        // ORDER: Relaxed, for both, as in `furnish`.
        self.bytes.store(0, Ordering::Relaxed);
        self.own.rare.held.store(0, Ordering::Relaxed);
        #[cfg(all(test, loom))]
        crate::tests::loom::goes(&self.shadow);
        drop(self.region.take());
    }

    /// Makes a header without memory one that can be carved from, and has no room.
    pub(crate) fn bare(&self) {
        self.own.base.set(ptr::null_mut());
        self.own.limit.set(0);
        self.own.rare.data.set(ptr::null_mut());
        self.own.rare.is_single.set(false);
    }
}
