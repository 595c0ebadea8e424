//! How a pool is built: its settings, and what they are checked against.

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;

use alloc::sync::Arc;

use bufcore::author::{check_alignment, check_setting};
use bufcore::{ConfigError, MemoryProvider};
use bufkit::{PageSource, PoolProvider};

use crate::block::{LEAST_ALIGNMENT, MOST_ALIGNMENT};
use crate::class::{self, MAX_CLASSES};
use crate::pool::ShardPool;
use crate::settings::{self, MOST_SHARDS, MOST_THREAD_CACHE, Settings};

const DEFAULT_THREAD_CACHE: usize = MOST_THREAD_CACHE;
const DEFAULT_LARGEST_BYTES: usize = 64 << 20;
const MOST_SHARD_BUFFERS: usize = 1 << 16;

bufkit::settings! {
    /// The settings of a [`ShardPool`]. They can be given in any order and are checked when the
    /// pool is built.
    ///
    /// ```
    /// use bufshard::ShardPool;
    ///
    /// let pool = ShardPool::builder().thread_cache(8).largest_pooled(1 << 20).build()?;
    /// assert_eq!(pool.largest_pooled(), 1 << 20);
    /// # Ok::<(), bufshard::bufcore::ConfigError>(())
    /// ```
    ///
    /// With the `serde` feature they can be in a configuration file, each under the name of its
    /// method:
    ///
    /// ```
    /// # #[cfg(feature = "serde")] {
    /// use bufshard::Builder;
    ///
    /// let text = r#"{"largest_pooled": 65536, "thread_cache": 8}"#;
    /// let builder: Builder = serde_json::from_str(text).unwrap();
    /// assert_eq!(builder, Builder::new().largest_pooled(65536).thread_cache(8));
    /// let text = serde_json::to_string(&builder).unwrap();
    /// assert_eq!(serde_json::from_str::<Builder>(&text).unwrap(), builder);
    /// assert!(serde_json::from_str::<Builder>(r#"{"no_such_setting": 1}"#).is_err());
    /// # }
    /// ```
    pub struct Builder {
        new {
            /// Returns the defaults.
            ///
            /// A thread keeps as many buffers of a size class as it needs, up to 1024; all threads
            /// together keep at most 1 MiB for each processor, or 8 MiB. A shard keeps 128, and
            /// there are as many shards as processors (4 to 64). Sizes up to 64 MiB are pooled,
            /// without a budget. Buffers start at multiples of 16, and of 64 from 256 bytes on.
            ///
            /// ```
            /// use bufshard::Builder;
            ///
            /// assert_eq!(Builder::new().to_string(), ""); // it prints what differs from the defaults
            /// assert_eq!(Builder::new().shards(8).to_string(), "shards=8");
            /// ```
        }
        unset {
            /// Sets the total capacity of the caches of all threads, in bytes. The default is 1 MiB
            /// for each hardware thread, and at least 8 MiB.
            ///
            /// It counts the capacity of the caches, by size class, not their current contents.
            /// When it is used up, caches do not grow, and their threads exchange buffers with the
            /// shards more often. The one buffer that each thread keeps separately is not counted.
            ///
            /// ```
            /// use bufshard::ShardPool;
            ///
            /// let pool = ShardPool::builder().max_cached_bytes(64 << 10).build()?;
            /// for _ in 0..10 {
            ///     let burst: Result<Vec<_>, _> = (0..100).map(|_| pool.acquire(4096)).collect();
            ///     drop(burst?);
            /// }
            /// let idle: usize = pool.class_stats().iter().map(|class| class.thread_idle).sum();
            /// assert!(idle <= 16 + 1); // the shards have the others
            /// # Ok::<(), Box<dyn std::error::Error>>(())
            /// ```
            bound max_cached_bytes(bytes);
            /// Sets how many buffers of each size class a shard keeps, at most 65,536. Of each
            /// class it keeps at most 16 MiB, and none from 256 KiB on. The default is
            /// 1 MiB of each class, but 16 to 128 buffers.
            ///
            /// ```
            /// use bufshard::ShardPool;
            ///
            /// // Threads cache nothing here, so released buffers are kept by the one shard.
            /// let pool = ShardPool::builder().thread_cache(0).shards(1).shard_buffers(2).build()?;
            /// let burst: Result<Vec<_>, _> = (0..5).map(|_| pool.acquire(1500)).collect();
            /// drop(burst?);
            /// let idle: usize = pool.class_stats().iter().map(|class| class.shard_idle).sum();
            /// assert_eq!(idle, 2); // there was no room for three of them
            /// # Ok::<(), Box<dyn std::error::Error>>(())
            /// ```
            count shard_buffers(buffers);
            /// Sets how many shards there are, rounded up to a power of two, at most 64. The
            /// default is the number of hardware threads, and at least 4.
            ///
            /// More shards help if more threads pass buffers to each other. Each keeps its own
            /// [`shard_buffers`](Self::shard_buffers).
            ///
            /// ```
            /// use bufshard::ShardPool;
            ///
            /// let pool = ShardPool::builder().shards(2).shard_buffers(4).thread_cache(0).build()?;
            /// assert_eq!(pool.preallocate(100, 1500)?, 8); // what two shards have room for
            /// # Ok::<(), Box<dyn std::error::Error>>(())
            /// ```
            count shards(shards);
            /// Sets the most bytes of memory that the pool holds; the default is no limit.
            ///
            /// It counts the resident pages of the pool: of buffers in use and their headers, idle
            /// buffers, and free pages; not the tables. Up to 64 small buffers of a size share
            /// pages, which count until all of them are idle. It is rounded down to whole pages. A
            /// budget of less than a page is an error when the pool is built. A request that does
            /// not fit fails with [`AcquireError::Exhausted`](bufcore::AcquireError). In a process
            /// that locks all its memory (`mlockall`), all reserved addresses of the pool are
            /// resident.
            ///
            /// Waiting requests have priority: until they are served every other request that needs
            /// new memory fails, however small it is, with `available: 0`.
            ///
            /// ```
            /// use bufshard::ShardPool;
            /// use bufshard::bufcore::AcquireError;
            ///
            /// let pool = ShardPool::builder().max_bytes(32 << 20).build()?;
            /// let mut held: Vec<_> = std::iter::from_fn(|| pool.acquire(4 << 20).ok()).collect();
            /// assert_eq!(held.len(), 7); // each has a page more, for its header
            /// assert!(matches!(pool.acquire(4 << 20), Err(AcquireError::Exhausted { .. })));
            /// held.pop();
            /// assert!(pool.acquire(4 << 20).is_ok());
            /// # Ok::<(), Box<dyn std::error::Error>>(())
            /// ```
            bound max_bytes(bytes);
        }
        set {
            /// Sets the most buffers of a size class that a thread caches; the default and the
            /// maximum is 1024.
            ///
            /// It is a bound. A thread starts with an empty cache, which grows if its requests and
            /// releases show that it would use more. It keeps at most 4 MiB of a class, and one
            /// buffer from 256 KiB on. In addition it keeps one buffer, of any class, that it
            /// released while it acquired one of that class after the other. With 0, threads cache
            /// nothing.
            ///
            /// A thread that uses more buffers of a class at once, and releases them all, exchanges
            /// them with the shards, up to 32 or 64 KiB at a time.
            ///
            /// ```
            /// use bufshard::ShardPool;
            ///
            /// let pool = ShardPool::builder().thread_cache(16).build()?;
            /// for _ in 0..10 {
            ///     let burst: Result<Vec<_>, _> = (0..12).map(|_| pool.acquire(1500)).collect();
            ///     drop(burst?);
            /// }
            /// let idle: usize = pool.class_stats().iter().map(|class| class.thread_idle).sum();
            /// assert_eq!(idle, 12); // by now the thread keeps all of them
            /// # Ok::<(), Box<dyn std::error::Error>>(())
            /// ```
            count thread_cache(buffers) = DEFAULT_THREAD_CACHE;
            /// Sets the smallest request that is pooled; the default is 1: all are pooled. It is
            /// rounded down to a size class.
            ///
            /// The memory of smaller requests is free for others as soon as the buffer is released,
            /// as is that of requests for more than [`largest_pooled`](Self::largest_pooled).
            ///
            /// ```
            /// use bufshard::ShardPool;
            ///
            /// let pool = ShardPool::builder().smallest_pooled(1024).build()?;
            /// drop((pool.acquire(100)?, pool.acquire(1500)?));
            /// let idle: usize = pool.class_stats().iter().map(|class| class.thread_idle).sum();
            /// assert_eq!(idle, 1); // the small one is not kept
            /// # Ok::<(), bufshard::bufcore::Error>(())
            /// ```
            bytes smallest_pooled(bytes) = 1;
            /// Sets the largest request that is pooled; the default is 64 MiB, the maximum 1 GiB.
            /// It is rounded up to a size class.
            ///
            /// ```
            /// use bufshard::ShardPool;
            ///
            /// let pool = ShardPool::builder().largest_pooled(1 << 20).build()?;
            /// drop(pool.acquire(8 << 20)?); // its pages are free at once
            /// assert!(pool.page_stats().dirty_bytes >= 8 << 20);
            /// # Ok::<(), Box<dyn std::error::Error>>(())
            /// ```
            bytes largest_pooled(bytes) = DEFAULT_LARGEST_BYTES;
            /// Makes every buffer start at a multiple of `bytes`, a power of two of at least 16,
            /// the default.
            ///
            /// Buffers of size classes from 256 bytes on are always aligned to cache lines of 64
            /// bytes.
            ///
            /// Cost: `bytes - 16` bytes for each buffer, up to 2048. From 4096 on, a buffer has
            /// whole pages, and its header is in a table.
            ///
            /// ```
            /// use bufshard::ShardPool;
            ///
            /// let pool = ShardPool::builder().alignment(4096).build()?;
            /// assert_eq!(pool.acquire(100)?.as_ptr().addr() % 4096, 0);
            /// # Ok::<(), Box<dyn std::error::Error>>(())
            /// ```
            bytes alignment(bytes) = LEAST_ALIGNMENT;
        }
        mmap {
            /// Places the pool's memory in mappings with these options: which pages they have,
            /// whether they are faulted in at once, and whether they are locked in memory.
            ///
            /// Each large buffer, and each group of small ones of a size, has its own mapping, or
            /// the rest of an earlier one. A mapping is returned to the system as a whole. With
            /// huge pages it is a multiple of 2 MiB, which the budget counts. The `available` bytes
            /// of an error may be lower than the real ones. If the system refuses a mapping, the
            /// request fails with [`AcquireError::OutOfMemory`](bufcore::AcquireError).
            ///
            /// The text form of a builder joins the options with `+`: `map_options=advise+lock`. In
            /// a configuration file they are a table of their own, as [`MapOptions`] shows.
            ///
            /// ```
            /// use bufshard::{HugePages, MapOptions, ShardPool};
            ///
            /// let options = MapOptions::new().huge_pages(HugePages::Advise);
            /// let pool = ShardPool::builder().map_options(options).build()?;
            /// let buf = pool.acquire(1_500_000)?;
            /// assert_eq!(pool.stats().reserved_bytes, 2 << 20); // one huge page
            /// # drop(buf);
            /// # Ok::<(), bufshard::bufcore::Error>(())
            /// ```
            map_options(options);
        }
        wipe {
            /// Sets whether the bytes of a buffer are zeroed on release. The bytes of a split
            /// buffer are zeroed on the release of its last part.
            ///
            /// Cost: zeroing the size class of every buffer.
            ///
            /// ```
            /// use bufshard::ShardPool;
            ///
            /// let pool = ShardPool::builder().wipe(true).build()?;
            /// let mut key = pool.acquire(32)?;
            /// key.extend_from_slice(b"a secret")?;
            /// drop(key);
            /// let mut next = pool.acquire(32)?; // the same memory
            /// assert!(next.spare_mut().iter().all(|byte| *byte == 0));
            /// # Ok::<(), Box<dyn std::error::Error>>(())
            /// ```
        }
    }
}

impl Builder {
    /// Builds the pool.
    ///
    /// Cost: an allocation. The first pool of a process on Linux also registers `membarrier(2)`.
    /// The kernel may take some milliseconds for that if the process already has other threads.
    /// Unless both [`shards`](Self::shards) and [`max_cached_bytes`](Self::max_cached_bytes) are
    /// set, the standard library counts the processors. It allocates some bytes for that, and
    /// aborts the process on failure.
    ///
    /// # Errors
    ///
    /// - [`ConfigError::Zero`] for no shards, no budget and a largest size of 0.
    /// - [`ConfigError::TooSmall`] for a budget that can serve no request. It contains the smallest
    ///   one that can.
    /// - [`ConfigError::TooLarge`] for settings over the limits above, and for an alignment over 1
    ///   GiB.
    /// - [`ConfigError::BadAlignment`] for one that is no power of two.
    /// - [`ConfigError::Region`] if the allocator fails.
    ///
    /// ```
    /// use bufshard::ShardPool;
    ///
    /// let pool = ShardPool::builder().thread_cache(8).max_bytes(256 << 20).build()?;
    /// assert_eq!(pool.acquire(1500)?.capacity(), 1500);
    /// let refused = ShardPool::builder().alignment(3).build().unwrap_err();
    /// println!("{refused}"); // names what is wrong
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn build(self) -> Result<ShardPool, ConfigError> {
        let source = self.page_source();
        ShardPool::with(self.check(&source)?, source)
    }

    /// Builds the pool over memory of a [`MemoryProvider`]: all buffers are in it, and it is freed
    /// to it.
    ///
    /// The provider supplies pages of 4096 bytes, aligned to that size: for each large buffer, and
    /// for each group of small ones of a size. The rest of such pages serves other requests. The
    /// pool's bookkeeping is allocated by the allocator. The setting `map_options` is ignored.
    ///
    /// The pool keeps the provider, and so does all memory in use after the pool was dropped. Any
    /// thread that acquires, releases or trims may call it; no lock is held. The provider must not
    /// use the pool that it supplies. Its panics are caught after their hooks ran. If the provider
    /// has no memory, or panics, the request fails with
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
    /// /// Memory that is registered with a device.
    /// struct Registered;
    ///
    /// // SAFETY: the allocator's block is valid, exclusive and not moved until it is freed.
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
    ///         // SAFETY: from `allocate`, with this layout, and freed once.
    ///         unsafe { dealloc(start.as_ptr(), layout) };
    ///     }
    /// }
    ///
    /// let pool = ShardPool::builder().build_from(Arc::new(Registered))?;
    /// let mut frame = pool.acquire(100_000)?; // from the source
    /// frame.extend_from_slice(b"for the device")?;
    /// # Ok::<(), bufshard::bufcore::Error>(())
    /// ```
    pub fn build_from(self, source: Arc<dyn MemoryProvider>) -> Result<ShardPool, ConfigError> {
        let source = PageSource::Provider(PoolProvider::new(source));
        ShardPool::with(self.check(&source)?, source)
    }

    /// Checks the settings and returns them.
    fn check(&self, source: &PageSource) -> Result<Settings, ConfigError> {
        let max_bytes = self.max_bytes.unwrap_or(usize::MAX);
        let shards = self.shards.unwrap_or_else(settings::default_shards);
        let largest = if cfg!(any(loom, shuttle)) { class::LEAST_BYTES } else { self.largest_pooled };
        check_setting("shards", shards, MOST_SHARDS)?;
        check_setting("max_bytes", max_bytes, usize::MAX)?;
        check_setting("largest_pooled", largest, class::bytes_of(MAX_CLASSES - 1))?;
        // They may be 0.
        check_setting("thread_cache", self.thread_cache.max(1), MOST_THREAD_CACHE)?;
        check_setting("shard_buffers", self.shard_buffers.unwrap_or(1).max(1), MOST_SHARD_BUFFERS)?;
        check_alignment(self.alignment, MOST_ALIGNMENT)?;
        let settings = Settings {
            thread_cache: self.thread_cache,
            max_cached_bytes: self.max_cached_bytes.unwrap_or_else(settings::default_cached_bytes),
            smallest_class: class::class_of(self.smallest_pooled.max(1)),
            classes: class::class_of(largest) + 1,
            shards: shards.next_power_of_two(),
            shard_buffers: self.shard_buffers,
            max_bytes,
            alignment: self.alignment,
            page_bytes: source.page_bytes(),
            unit_bytes: source.unit_bytes(),
            aligning_bytes: if source.is_reserved() {
                0
            } else {
                self.alignment.saturating_sub(source.page_bytes())
            },
            wipe: self.wipe,
        };
        let classes = (0..settings.classes).take_while(|&class| settings.has_room(class)).count();
        let settings = Settings { classes, ..settings };
        if settings.max_capacity() == 0 {
            let least = settings.total(settings.class_layout(0));
            return Err(ConfigError::TooSmall { setting: "max_bytes", requested: max_bytes, least });
        }
        Ok(settings)
    }
}

impl ShardPool {
    /// Makes a pool with the default settings.
    ///
    /// Cost: see [`Builder::build`]; memory for buffers is allocated when it is first needed.
    ///
    /// # Errors
    ///
    /// See [`Builder::build`].
    ///
    /// ```
    /// use bufshard::ShardPool;
    ///
    /// let pool = ShardPool::new()?;
    /// assert_eq!(pool.stats().reserved_bytes, 0); // nothing is allocated yet
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn new() -> Result<Self, ConfigError> {
        Self::builder().build()
    }

    /// Returns the builder, which has all settings.
    ///
    /// ```
    /// use bufshard::ShardPool;
    ///
    /// let pool = ShardPool::builder().max_bytes(64 << 20).build()?;
    /// assert!(pool.acquire(65 << 20).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    #[must_use]
    pub const fn builder() -> Builder {
        Builder::new()
    }
}
