//! Blocks with pages of their own: mappings, memory of a source, or of the allocator.

use alloc::sync::Arc;

use bufcore::{ConfigError, MemoryProvider, Region};
use bufkit::{DedicatedPages, PoolProvider};

use crate::block::Mapped;
use crate::{Builder, ShardPool};

impl Builder {
    /// Builds the pool over memory of a [`MemoryProvider`]: each buffer of `bytes` bytes or more
    /// has its memory from there, and that goes back there.
    ///
    /// The size is that of the size class, or of a request that is not pooled. `bytes` is rounded
    /// up to whole pages of 4096 bytes, and is at most 64 KiB where [`alignment`](Self::alignment)
    /// is a page. The source supplies such pages, at multiples of that size, one of them for the
    /// header. Smaller buffers, those with an alignment of more than a page, and the pool's
    /// bookkeeping come from the allocator. A setting `mapped_from` is ignored.
    ///
    /// The pool keeps the source, and so does all memory that buffers are still in when the pool
    /// has ended. Any thread that acquires, releases or trims may call it, with nothing locked. Its
    /// use of the pool that it supplies is not supported. Its panics end when their hooks have
    /// reported them. One that has nothing to supply, or panics, fails the request as
    /// [`AcquireError::OutOfMemory`](bufcore::AcquireError).
    ///
    /// # Errors
    ///
    /// As for [`build`](Self::build).
    ///
    /// ```
    /// use std::alloc::{Layout, alloc_zeroed, dealloc};
    /// use std::ptr::NonNull;
    /// use std::sync::Arc;
    ///
    /// use bufshard::bufcore::{MemoryProvider, Provided};
    /// use bufshard::{RegionError, ShardPool};
    ///
    /// /// Memory that a device is told of.
    /// struct Registered;
    ///
    /// // SAFETY: what the allocator returns is valid until it is freed, for nobody else, and stays.
    /// unsafe impl MemoryProvider for Registered {
    ///     fn allocate(&self, layout: Layout) -> Result<Provided, RegionError> {
    ///         // SAFETY: the layout is not of zero size.
    ///         let start = NonNull::new(unsafe { alloc_zeroed(layout) })
    ///             .ok_or(RegionError::OutOfMemory { requested: layout.size() })?;
    ///         // Here a program would register the bytes.
    ///         Ok(Provided { start, is_zeroed: true })
    ///     }
    ///
    ///     unsafe fn deallocate(&self, start: NonNull<u8>, layout: Layout) {
    ///         // SAFETY: from `allocate`, with this layout, and given back once.
    ///         unsafe { dealloc(start.as_ptr(), layout) };
    ///     }
    /// }
    ///
    /// let pool = ShardPool::builder().build_from(Arc::new(Registered), 64 << 10)?;
    /// let mut frame = pool.acquire(100_000)?; // from the source
    /// frame.extend_from_slice(b"for the device")?;
    /// # Ok::<(), bufshard::bufcore::Error>(())
    /// ```
    pub fn build_from(self, source: Arc<dyn MemoryProvider>, bytes: usize) -> Result<ShardPool, ConfigError> {
        let mapped = Mapped::new(bytes, self.alignment, DedicatedPages::of_source());
        ShardPool::with(self.check(mapped)?, PoolProvider::new(source))
    }

    /// Returns which blocks have pages of their own: those that the settings name, or the large
    /// ones.
    pub(crate) fn mapped(&self) -> Option<Mapped> {
        let large = (Region::LARGE_BYTES, DedicatedPages::large());
        let (from, pages) = self.dedicated_pages().unwrap_or(large);
        Mapped::new(from, self.alignment, pages)
    }
}
