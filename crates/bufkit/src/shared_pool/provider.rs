//! The provider that a pool has its memory from; see [`PoolProvider`].

use alloc::sync::Arc;
use core::alloc::Layout;
use core::fmt;
use core::ptr::NonNull;

use bufcore::author::catch_user_panic;
use bufcore::{MemoryProvider, Provided, Region, RegionError};

/// What memory of a provider starts at a multiple of.
const PAGE_BYTES: usize = 4096;

/// Keeps the provider of a pool's memory, if it has one.
///
/// Threads that allocate or free such memory may be using other pools. Panics of the provider are
/// therefore caught after their hooks ran.
///
/// ```
/// use std::sync::Arc;
///
/// use bufcore::MemoryProvider;
/// use bufkit::{PageHeap, PageSource, PoolProvider};
///
/// fn heap_of(source: Arc<dyn MemoryProvider>) -> PageHeap {
///     PageHeap::new(PageSource::Provider(PoolProvider::new(source)), usize::MAX)
/// }
/// let nobody = PageHeap::new(PageSource::Provider(PoolProvider::none()), usize::MAX);
/// assert!(nobody.take(100, 1).is_err()); // nobody supplies it
/// ```
pub struct PoolProvider {
    source: Option<Arc<dyn MemoryProvider>>,
}

impl PoolProvider {
    /// Keeps a source.
    #[must_use]
    pub fn new(source: Arc<dyn MemoryProvider>) -> Self {
        Self { source: Some(source) }
    }

    /// Makes the value of a pool without a provider.
    #[must_use]
    pub const fn none() -> Self {
        Self { source: None }
    }

    /// Makes a region that keeps the source.
    pub(crate) fn take(&self, len: usize) -> Result<Region, RegionError> {
        let refused = RegionError::OutOfMemory { requested: len };
        let Some(source) = &self.source else { return Err(refused) };
        let share = Self { source: Some(Arc::clone(source)) };
        catch_user_panic(|| Region::from_provider(share, len, PAGE_BYTES)).unwrap_or(Err(refused))
    }
}

impl fmt::Debug for PoolProvider {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PoolProvider").field("is_some", &self.source.is_some()).finish_non_exhaustive()
    }
}

// SAFETY: as the source that it shares, which is there as long as this is. A source that panics
// has given the memory up: it is not used again in either case. Without a source it supplies
// nothing.
unsafe impl MemoryProvider for PoolProvider {
    fn allocate(&self, layout: Layout) -> Result<Provided, RegionError> {
        match &self.source {
            Some(source) => source.allocate(layout),
            None => Err(RegionError::OutOfMemory { requested: layout.size() }),
        }
    }

    unsafe fn deallocate(&self, start: NonNull<u8>, layout: Layout) {
        if let Some(source) = &self.source {
            // SAFETY: the caller's promise; this shares the source's memory.
            catch_user_panic(|| unsafe { source.deallocate(start, layout) });
        }
    }

    fn returns_pages(&self) -> bool {
        self.source.as_ref().is_some_and(|source| source.returns_pages())
    }
}

impl Drop for PoolProvider {
    fn drop(&mut self) {
        // The last share drops the source, which is the user's code.
        catch_user_panic(|| drop(self.source.take()));
    }
}
