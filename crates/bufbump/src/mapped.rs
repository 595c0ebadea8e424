//! Shards and larger pieces with pages of their own, which a source supplies.

use alloc::sync::Arc;

use bufcore::{ConfigError, MemoryProvider};
use bufkit::{DedicatedPages, PoolProvider};

use crate::{Builder, BumpPool};

impl Builder {
    /// Builds the pool over memory of a [`MemoryProvider`]: each shard and each larger piece of
    /// `bytes` bytes or more comes from there, and goes back there.
    ///
    /// The source supplies whole pages of 4096 bytes, at multiples of that. Smaller shards and
    /// pieces come from the allocator, as does the pool's bookkeeping, and all memory of a pool
    /// whose alignment is more than a page. A setting `mapped_from` is ignored.
    ///
    /// The pool keeps the source, and so does all memory that buffers are still in when the pool
    /// has ended. Any thread that acquires, releases or trims may call it, with nothing locked. Its
    /// use of the pool that it supplies is not supported. Its panics end when their hooks have
    /// reported them. One that has nothing to supply, or panics, fails the request as
    /// [`AcquireError::OutOfMemory`](bufcore::AcquireError).
    ///
    /// # Errors
    ///
    /// As for [`build`](Self::build); [`ConfigError::Region`] also when the source refuses.
    ///
    /// ```
    /// use std::alloc::{Layout, alloc_zeroed, dealloc};
    /// use std::ptr::NonNull;
    /// use std::sync::Arc;
    ///
    /// use bufbump::bufcore::{MemoryProvider, Provided};
    /// use bufbump::{BumpPool, RegionError};
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
    /// let pool = BumpPool::builder().build_from(Arc::new(Registered), 0)?; // all of it
    /// let mut buf = pool.acquire(1500)?;
    /// buf.extend_from_slice(b"for the device")?;
    /// # Ok::<(), bufbump::Error>(())
    /// ```
    pub fn build_from(self, source: Arc<dyn MemoryProvider>, bytes: usize) -> Result<BumpPool, ConfigError> {
        let (settings, preallocate) = self.check(Some((bytes, DedicatedPages::of_source())))?;
        BumpPool::with(settings, PoolProvider::new(source), preallocate)
    }
}
