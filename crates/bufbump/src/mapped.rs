//! Shards and larger pieces with pages of their own: mappings, or memory of a source.

use alloc::sync::Arc;

#[cfg(feature = "mmap")]
use bufcore::MapOptions;
#[cfg(feature = "mmap")]
use bufcore::Region;
use bufcore::{ConfigError, MemoryProvider};
use bufkit::{DedicatedPages, PoolProvider};

use crate::settings::Mapped;
use crate::{Builder, BumpPool};

#[cfg(feature = "mmap")]
impl Builder {
    /// Gives each shard, and each larger piece, of `bytes` bytes or more a mapping of its own from
    /// the system, in place of memory of the global allocator. Those of a pool whose alignment is
    /// more than a page, 4096 bytes, have none.
    ///
    /// Unless set, those of 128 KiB and more have one, or memory of the allocator where the system
    /// refuses it. They count as the bytes that were asked for then. With this setting a request
    /// fails for which the system refuses a mapping, as
    /// [`AcquireError::OutOfMemory`](bufcore::AcquireError). With `usize::MAX` none has one.
    ///
    /// Memory of these that the pool frees reaches the system at once, under any allocator. Where
    /// the system has no room for another mapping (`vm.max_map_count`, on Linux), some of their
    /// addresses may stay taken. Shards have mappings if [`shard_size`](Self::shard_size) is
    /// `bytes` or more. A request larger than a shard has a piece of up to a quarter more than it
    /// asks for, whose size decides.
    ///
    /// The buffers of a shard can have all of its mapping, with the rest of its last page.
    /// Statistics and [`max_idle_bytes`](Self::max_idle_bytes) count whole mappings.
    ///
    /// Cost: two system calls in the life of a mapping, none while it is used again. Pages count as
    /// 4096 bytes. Where those of the system are larger, a mapping takes up to one of them more
    /// than is counted.
    ///
    /// ```
    /// use bufbump::BumpPool;
    ///
    /// // Whatever the allocator is, what is trimmed is the system's again.
    /// let pool = BumpPool::builder().shard_size(128 << 10).mapped_from(64 << 10).build()?;
    /// drop((pool.acquire(1500)?, pool.acquire(8 << 20)?));
    /// pool.trim();
    /// assert!(pool.stats().reserved_bytes < 256 << 10); // the shard that the thread carves
    /// # Ok::<(), bufbump::Error>(())
    /// ```
    #[must_use]
    pub fn mapped_from(mut self, bytes: usize) -> Self {
        self.mapped_from = Some(bytes);
        self
    }

    /// Sets which pages the mappings of [`mapped_from`](Self::mapped_from) have, whether they are
    /// there from the start, and whether they are locked in memory. Without `mapped_from`, shards
    /// and larger pieces of 128 KiB and more have such mappings.
    ///
    /// With huge pages a mapping is a multiple of 2 MiB, and a shard has all of it. So
    /// [`shard_size`](Self::shard_size) should be near such a multiple, with some bytes left for
    /// the headers. A mapping that the system refuses fails the request, as
    /// [`AcquireError::OutOfMemory`](bufcore::AcquireError).
    ///
    /// In the text of a builder they are words with `+` between: `map_options=advise+lock`. In a
    /// configuration file they are a table of their own, as [`MapOptions`] shows.
    ///
    /// ```
    /// use bufbump::{BumpPool, HugePages, MapOptions};
    ///
    /// let options = MapOptions::new().huge_pages(HugePages::Advise);
    /// let pool = BumpPool::builder().shard_size(2_000_000).mapped_from(1 << 20).map_options(options);
    /// let pool = pool.build()?;
    /// let buf = pool.acquire(1500)?;
    /// assert_eq!(pool.stats().reserved_bytes, 2 << 20); // one huge page
    /// # drop(buf);
    /// # Ok::<(), bufbump::Error>(())
    /// ```
    #[must_use]
    pub fn map_options(mut self, options: MapOptions) -> Self {
        self.map_options = options;
        self
    }
}

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
        let mapped = Mapped { from: bytes, pages: DedicatedPages::of_source() };
        let (settings, preallocate) = self.check(Some(mapped))?;
        BumpPool::with(settings, PoolProvider::new(source), preallocate)
    }

    /// Returns which shards and pieces have mappings of their own.
    #[cfg(feature = "mmap")]
    pub(crate) fn mapped(&self) -> Option<Mapped> {
        if self.mapped_from.is_none() && self.map_options == MapOptions::new() {
            return None;
        }
        let from = self.mapped_from.unwrap_or(Region::LARGE_BYTES);
        Some(Mapped { from, pages: DedicatedPages::mapped(self.map_options) })
    }

    /// Returns `None`: nothing has a mapping of its own.
    #[cfg(not(feature = "mmap"))]
    #[allow(clippy::unused_self, reason = "there is no such setting")]
    pub(crate) fn mapped(&self) -> Option<Mapped> {
        None
    }
}
