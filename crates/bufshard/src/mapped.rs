//! Blocks with pages of their own: mappings, memory of a source, or of the allocator.

use alloc::sync::Arc;

#[cfg(feature = "mmap")]
use bufcore::MapOptions;
use bufcore::{ConfigError, MemoryProvider, Region};
use bufkit::{DedicatedPages, PoolProvider};

use crate::block::Mapped;
use crate::{Builder, ShardPool};

#[cfg(feature = "mmap")]
impl Builder {
    /// Gives each buffer of `bytes` bytes or more a mapping of its own from the system, in place of
    /// memory of the global allocator.
    ///
    /// Unless set, those of 128 KiB and more have one, or memory of the allocator where the system
    /// refuses it. With this setting a request fails for which the system refuses a mapping, as
    /// [`AcquireError::OutOfMemory`](bufcore::AcquireError). With `usize::MAX` no buffer has one.
    ///
    /// Memory of these that the pool frees reaches the system at once, under any allocator. Where
    /// the system has no room for another mapping (`vm.max_map_count`, on Linux), some of their
    /// addresses may stay taken. The size is that of the size class, or of a request that is not
    /// pooled. `bytes` is rounded up to whole pages, and is at most 64 KiB where
    /// [`alignment`](Self::alignment) is a page. Buffers with an alignment of more than a page,
    /// 4096 bytes, come from the allocator all the same.
    ///
    /// Cost: two system calls in the life of a buffer's memory, none while it is used again. A page
    /// for the header, which [`max_bytes`](Self::max_bytes) counts. With an alignment of a page, 64
    /// bytes of the allocator's instead. Pages count as 4096 bytes. Where those of the system are
    /// larger, a mapping takes up to one of them more than is counted.
    ///
    /// ```
    /// use bufshard::ShardPool;
    ///
    /// // Pages as close as they can be.
    /// let pool = ShardPool::builder().alignment(4096).mapped_from(4096).build()?;
    /// let pages: Result<Vec<_>, _> = (0..32).map(|_| pool.acquire(4096)).collect();
    /// let pages = pages?;
    /// assert!(pool.stats().reserved_bytes <= 32 * (4096 + 64));
    /// # drop(pages);
    /// # Ok::<(), bufshard::bufcore::Error>(())
    /// ```
    #[must_use]
    pub fn mapped_from(mut self, bytes: usize) -> Self {
        self.mapped_from = Some(bytes);
        self
    }

    /// Sets which pages the mappings of [`mapped_from`](Self::mapped_from) have, whether they are
    /// there from the start, and whether they are locked in memory. Without `mapped_from`, buffers
    /// of 128 KiB and more have such mappings.
    ///
    /// With huge pages a mapping is a multiple of 2 MiB, which the budget counts. A mapping that
    /// the system refuses fails the request, as
    /// [`AcquireError::OutOfMemory`](bufcore::AcquireError).
    ///
    /// In the text of a builder they are words with `+` between: `map_options=advise+lock`. In a
    /// configuration file they are a table of their own, as [`MapOptions`] shows.
    ///
    /// ```
    /// use bufshard::{HugePages, MapOptions, ShardPool};
    ///
    /// let options = MapOptions::new().huge_pages(HugePages::Advise);
    /// let pool = ShardPool::builder().mapped_from(1 << 20).map_options(options).build()?;
    /// let buf = pool.acquire(1_500_000)?;
    /// assert_eq!(pool.stats().reserved_bytes, 2 << 20); // one huge page
    /// # drop(buf);
    /// # Ok::<(), bufshard::bufcore::Error>(())
    /// ```
    #[must_use]
    pub fn map_options(mut self, options: MapOptions) -> Self {
        self.map_options = options;
        self
    }
}

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
        #[cfg(feature = "mmap")]
        if self.mapped_from.is_some() || self.map_options != MapOptions::new() {
            let from = self.mapped_from.unwrap_or(Region::LARGE_BYTES);
            return Mapped::new(from, self.alignment, DedicatedPages::mapped(self.map_options));
        }
        Mapped::new(Region::LARGE_BYTES, self.alignment, DedicatedPages::large())
    }
}
