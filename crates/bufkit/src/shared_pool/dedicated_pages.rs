//! Pages that a block or a shard of a pool has to itself; see [`DedicatedPages`].

use alloc::sync::Arc;
use core::alloc::Layout;
use core::fmt;
use core::ptr::NonNull;

#[cfg(feature = "mmap")]
use bufcore::MapOptions;
use bufcore::author::catch_user_panic;
use bufcore::{MemoryProvider, Provided, Region, RegionError, size};

/// Says where the memory comes from that a block or a shard has to itself, in whole pages.
///
/// It is a plain value, which the settings of a pool can contain. The [`PoolProvider`] that some of
/// it comes from is beside it.
///
/// ```
/// # #[cfg(feature = "mmap")] {
/// use bufcore::MapOptions;
/// use bufkit::{DedicatedPages, PoolProvider};
///
/// let pages = DedicatedPages::mapped(MapOptions::new());
/// let region = pages.take(5000, &PoolProvider::none())?;
/// assert_eq!(Some(region.len()), pages.rounded(5000)); // two pages
/// # }
/// # Ok::<(), bufcore::Error>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct DedicatedPages {
    kind: Kind,
}

#[derive(Debug, Clone, Copy)]
enum Kind {
    /// Each has a mapping.
    #[cfg(feature = "mmap")]
    Mapped(MapOptions),
    /// The pool's source supplies them.
    Source,
    /// A mapping, or the global allocator's memory.
    Large,
}

impl DedicatedPages {
    /// The least that such memory starts at a multiple of.
    pub const ALIGNMENT: usize = 4096;

    /// Says that each has a mapping of its own.
    #[cfg(feature = "mmap")]
    #[must_use]
    pub fn mapped(options: MapOptions) -> Self {
        Self { kind: Kind::Mapped(options) }
    }

    /// Says that the pool's source supplies them, in pages of 4096 bytes.
    #[must_use]
    pub fn of_source() -> Self {
        Self { kind: Kind::Source }
    }

    /// Says where large memory comes from that a program said nothing of: from
    /// [`Region::LARGE_BYTES`] on.
    ///
    /// With the feature `mmap` each has a mapping of its own. Without it, or where the system
    /// refuses one, it has pages of the global allocator's, on which nothing else is: they can go
    /// to the system before, with [`Region::free_to_system`]. An allocator may keep what it gets
    /// back otherwise. It also has bookkeeping for each page that it ever had.
    ///
    /// ```
    /// use bufkit::{DedicatedPages, PoolProvider};
    ///
    /// let region = DedicatedPages::large().take(500_000, &PoolProvider::none())?;
    /// assert_eq!((region.len(), region.as_ptr().addr().get() % 4096), (123 * 4096, 0));
    /// # Ok::<(), bufcore::RegionError>(())
    /// ```
    #[must_use]
    pub const fn large() -> Self {
        Self { kind: Kind::Large }
    }

    /// Takes zeroed memory of [`rounded`](Self::rounded)`(len)` bytes; `source` is the pool's.
    ///
    /// # Errors
    ///
    /// As for `Region::mapped`, [`Region::from_provider`] and [`Region::heap`]. A panic of the
    /// source ends when its hook has reported it, and counts as a refusal.
    pub fn take(self, len: usize, source: &PoolProvider) -> Result<Region, RegionError> {
        match self.kind {
            #[cfg(feature = "mmap")]
            Kind::Mapped(options) => Region::mapped(len, options),
            Kind::Source => source.take(self.rounded(len).unwrap_or(len)),
            Kind::Large => {
                #[cfg(feature = "mmap")]
                if let Ok(region) = Region::mapped(len, MapOptions::new()) {
                    return Ok(region);
                }
                Region::heap(self.rounded(len).unwrap_or(len), Self::ALIGNMENT)
            }
        }
    }

    /// Returns the bytes of the pages that `len` bytes have, or `None` when no memory is so large.
    #[must_use]
    pub fn rounded(self, len: usize) -> Option<usize> {
        size::align_up(len, self.page_bytes())
    }

    /// Returns the bytes of a page, a power of two.
    #[must_use]
    pub fn page_bytes(self) -> usize {
        match self.kind {
            #[cfg(feature = "mmap")]
            Kind::Mapped(options) => options.page_bytes(),
            Kind::Source | Kind::Large => Self::ALIGNMENT,
        }
    }

    /// Returns the bytes that [`take`](Self::take) asks for beyond those of the pages, to start at
    /// one. Nobody writes to them.
    ///
    /// It is 0 for mappings, also for memory that the allocator supplied because the system refused
    /// one.
    #[must_use]
    pub fn aligning_bytes(self) -> usize {
        match self.kind {
            Kind::Large if cfg!(not(feature = "mmap")) => Self::ALIGNMENT - 1,
            _ => 0,
        }
    }
}

/// Keeps the source that a pool has its memory from, if it has one.
///
/// Threads that take memory from such a pool, or give it back, may have to do with other pools too.
/// So panics of the source end when their hooks have reported them.
///
/// ```
/// use std::sync::Arc;
///
/// use bufcore::MemoryProvider;
/// use bufkit::{DedicatedPages, PoolProvider};
///
/// fn page_of(source: Arc<dyn MemoryProvider>) -> Result<bufcore::Region, bufcore::RegionError> {
///     DedicatedPages::of_source().take(100, &PoolProvider::new(source))
/// }
/// assert!(DedicatedPages::of_source().take(100, &PoolProvider::none()).is_err()); // nobody supplies it
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

    /// Makes what a pool without a source has.
    #[must_use]
    pub const fn none() -> Self {
        Self { source: None }
    }

    /// Makes a region that keeps the source.
    pub(crate) fn take(&self, len: usize) -> Result<Region, RegionError> {
        let refused = RegionError::OutOfMemory { requested: len };
        let Some(source) = &self.source else { return Err(refused) };
        let share = Self { source: Some(Arc::clone(source)) };
        catch_user_panic(|| Region::from_provider(share, len, DedicatedPages::ALIGNMENT))
            .unwrap_or(Err(refused))
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
