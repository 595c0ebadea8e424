//! The heap of the large blocks as a keeper of the program sees it.

use alloc::boxed::Box;
use core::any::TypeId;
use core::time::Duration;

use bufkeeper::bufcore::PoolStats;
use bufkeeper::{Trim, Watch, WeakPool};
use bufkit::PageHeap;

use crate::{Large, heap};

/// The heap of the process, which does not end.
struct LargeBlocks;

impl Trim for LargeBlocks {
    fn trim(&mut self) {
        heap::trim();
    }

    fn trim_idle(&mut self, _: Duration) {
        heap::get().into_iter().for_each(|heap| heap.trim_unused(0));
    }

    fn stats(&self) -> Option<PoolStats> {
        let pages = heap::get().map(PageHeap::stats).unwrap_or_default();
        let mut stats = PoolStats::default();
        (stats.reserved_bytes, stats.idle_bytes) = (pages.resident_bytes, pages.dirty_bytes);
        Some(stats)
    }
}

impl WeakPool for LargeBlocks {
    fn with(&self, look: &mut dyn FnMut(&mut dyn Trim)) -> bool {
        look(&mut Self);
        true
    }

    fn id(&self) -> Option<(TypeId, usize)> {
        Some((TypeId::of::<Self>(), 0))
    }
}

/// A keeper of the program returns the idle pages together with those of its pools, after its
/// `purge_delay`. [`Upkeep::Ticks`](crate::Upkeep::Ticks) leaves the work to the keeper alone. An
/// allocator does not wake a keeper: a keeper that sleeps because nothing was idle checks again
/// after eight purge delays.
///
/// ```
/// use bufalloc::{Large, Upkeep};
/// use bufkeeper::Keeper;
///
/// #[global_allocator]
/// static ALLOC: Large = Large::new().upkeep(Upkeep::Ticks);
///
/// let _keeper = Keeper::new().watch(&ALLOC).spawn()?; // and `.watch(&pool)`
/// # Ok::<(), std::io::Error>(())
/// ```
impl<A> Watch for Large<A> {
    fn downgrade(&self) -> Box<dyn WeakPool> {
        Box::new(LargeBlocks)
    }
}
