//! How a pool is built: its settings, and what they are checked against.

use alloc::sync::Arc;

use bufcore::author::{check_alignment, check_setting};
use bufcore::{ConfigError, MemoryProvider};
use bufkit::{PageSource, PoolProvider};

use crate::pool::BumpPool;
use crate::settings::Settings;
use crate::shard::MAX_SHARD_BYTES;

const DEFAULT_SHARD_BYTES: usize = 256 << 10;
const DEFAULT_PROBES: usize = 2;
const DEFAULT_IDLE_BYTES: usize = 32 << 20;
/// What `malloc` gives on 64-bit systems.
const DEFAULT_ALIGNMENT: usize = 16;
/// Blocks' headers have a pointer in them.
const LEAST_ALIGNMENT: usize = 8;

/// More bytes than this are not addressable in any process: 48 bits, or half of 32.
const ADDRESSES: usize = if usize::BITS > 48 { (1_u64 << 48) as usize } else { isize::MAX as usize };

bufkit::settings! {
    /// The settings of a [`BumpPool`]. They can be given in any order and are checked when the pool
    /// is built.
    ///
    /// ```
    /// use bufbump::BumpPool;
    ///
    /// let settings = BumpPool::builder().shard_size(64 << 10).max_probes(8);
    /// let pool = settings.max_idle_bytes(1 << 20).build()?;
    /// assert_eq!(pool.shard_size(), 64 << 10);
    /// # Ok::<(), bufbump::bufcore::ConfigError>(())
    /// ```
    ///
    /// With the `serde` feature they can be in a configuration file, each under the name of its
    /// method:
    ///
    /// ```
    /// # #[cfg(feature = "serde")] {
    /// use bufbump::Builder;
    ///
    /// let file = r#"{"shard_size": 65536, "max_probes": 4}"#;
    /// let builder: Builder = serde_json::from_str(file).unwrap();
    /// assert_eq!(builder, Builder::new().shard_size(65536).max_probes(4));
    /// let text = serde_json::to_string(&builder).unwrap();
    /// assert_eq!(serde_json::from_str::<Builder>(&text).unwrap(), builder);
    /// assert!(serde_json::from_str::<Builder>(r#"{"no_such_setting": 1}"#).is_err());
    /// # }
    /// ```
    pub struct Builder {
        new {
            /// Returns the defaults: shards of 256 KiB, 2 probes, 32 MiB of idle memory, starts at
            /// multiples of 16.
            ///
            /// ```
            /// use bufbump::Builder;
            ///
            /// let defaults = Builder::new();
            /// assert_eq!(defaults, Builder::new().shard_size(256 << 10).max_probes(2).alignment(16));
            /// assert_eq!(defaults.max_probes(8).to_string(), "max_probes=8"); // shows what differs
            /// ```
        }
        set {
            /// Sets the bytes of a shard: the largest request that does not need pages of its own.
            /// The default is 256 KiB. At most 1 GiB. A shard takes 64 bytes more, or as many as
            /// the [alignment](Self::alignment) needs, in whole pages. Its buffers can use these
            /// bytes too, and statistics count them.
            ///
            /// A shard is used again when all its buffers have been released. A good size holds
            /// several buffers of the usual size, and less than the bytes that the pool serves
            /// during the lifetime of one buffer. A shard that holds one buffer is too small; a
            /// shard that holds a day's traffic is too large.
            ///
            /// ```
            /// use bufbump::BumpPool;
            ///
            /// let pool = BumpPool::builder().shard_size(1 << 20).build()?;
            /// assert_eq!(pool.acquire(900 << 10)?.lease().is_fallback(), false);
            /// assert_eq!(pool.acquire(2 << 20)?.lease().is_fallback(), true);
            /// # Ok::<(), Box<dyn std::error::Error>>(())
            /// ```
            bytes shard_size(bytes) = DEFAULT_SHARD_BYTES;
            /// Sets how many other shards of the thread a request checks when it does not fit into
            /// the current one. The default is 2. If none has room, the request takes an idle shard
            /// or a new one.
            ///
            /// A successful probe fills an older shard, which then becomes free later. The example
            /// `probes` prints what each number of probes costs and saves.
            ///
            /// ```
            /// use bufbump::BumpPool;
            ///
            /// for (probes, shards) in [(0, 3), (2, 2)] {
            ///     let pool = BumpPool::builder().shard_size(60_000).max_probes(probes).build()?;
            ///     let old = pool.acquire(40_000)?;
            ///     let one = pool.stats().pinned_bytes;
            ///     let newer = pool.acquire(58_000)?; // a shard for each
            ///     let third = pool.acquire(10_000)?; // fits into the first shard, if that is probed
            ///     assert_eq!(pool.stats().pinned_bytes, shards * one);
            /// #   drop((old, newer, third));
            /// }
            /// # Ok::<(), bufbump::Error>(())
            /// ```
            count max_probes(probes) = DEFAULT_PROBES;
            /// Sets the bytes of idle memory that the pool keeps: shards without live buffers, and
            /// free pages, which serve requests of any size. The default is 32 MiB. Memory over the
            /// limit is returned to the system.
            ///
            /// In addition, each thread that acquires keeps the shard that it carves, up to four
            /// more within this budget, and one larger buffer within it.
            ///
            /// ```
            /// use bufbump::BumpPool;
            ///
            /// let pool = BumpPool::builder().shard_size(64 << 10).max_idle_bytes(128 << 10).build()?;
            /// let burst: Result<Vec<_>, _> = (0..100).map(|_| pool.acquire(60 << 10)).collect();
            /// assert_eq!(burst?.len(), 100); // then all are released
            /// // 128 KiB are the pool's; one shard is carved, and one more is the thread's.
            /// assert!(pool.stats().idle_bytes <= (128 << 10) + 2 * (80 << 10));
            /// # Ok::<(), bufbump::Error>(())
            /// ```
            bytes max_idle_bytes(bytes) = DEFAULT_IDLE_BYTES;
            /// Makes every buffer start at a multiple of `bytes`, a power of two; 16 unless set,
            /// and never less than 8.
            ///
            /// The 16-byte header of a buffer is in front of it. A buffer therefore takes its bytes
            /// and 16 more, rounded up to the alignment. With an alignment of a page, a buffer of
            /// one page takes two pages of a shard; a buffer 16 bytes shorter takes one. `bufslot`
            /// and `bufshard` place pages end to end. The header of a buffer larger than a shard is
            /// in a table instead.
            ///
            /// ```
            /// use bufbump::BumpPool;
            ///
            /// let pool = BumpPool::builder().alignment(4096).shard_size(32 * 4096).build()?;
            /// let bufs: Vec<_> = (0..32).map(|_| pool.acquire(4096 - 16)).collect::<Result<_, _>>()?;
            /// assert!(bufs.iter().all(|buf| buf.as_ptr().addr() % 4096 == 0));
            /// assert!(pool.stats().pinned_bytes < 2 * pool.shard_size()); // one shard
            /// # Ok::<(), Box<dyn std::error::Error>>(())
            /// ```
            bytes alignment(bytes) = DEFAULT_ALIGNMENT;
            /// Sets how many shards the pool has from the start; none unless set. They count as
            /// idle memory: shards over the budget of [`max_idle_bytes`](Self::max_idle_bytes) are
            /// not allocated.
            ///
            /// ```
            /// use bufbump::BumpPool;
            ///
            /// let pool = BumpPool::builder().shard_size(64 << 10).preallocate(4).build()?;
            /// let reserved = pool.stats().reserved_bytes;
            /// let four: Vec<_> = (0..4).map(|_| pool.acquire(60 << 10)).collect::<Result<_, _>>()?;
            /// assert_eq!(pool.stats().reserved_bytes, reserved); // the allocator was not asked again
            /// # drop(four);
            /// # Ok::<(), bufbump::Error>(())
            /// ```
            count preallocate(shards) = 0;
        }
        mmap {
            /// Sets which pages the pool uses, whether they are faulted in at once, and whether
            /// they are locked in memory.
            ///
            /// Each span of pages that the pool takes is then a mapping with these options. With
            /// huge pages a span is a multiple of 2 MiB, divided into shards and larger buffers.
            /// Free pages are returned as whole mappings. If the system refuses a mapping, the
            /// request fails with [`AcquireError::OutOfMemory`](bufcore::AcquireError).
            ///
            /// The text form of a builder joins the options with `+`: `map_options=advise+lock`. In
            /// a configuration file they are a table of their own, as [`MapOptions`] shows.
            ///
            /// ```
            /// use bufbump::{BumpPool, HugePages, MapOptions};
            ///
            /// let options = MapOptions::new().huge_pages(HugePages::Advise);
            /// let pool = BumpPool::builder().shard_size(256 << 10).map_options(options).build()?;
            /// let buf = pool.acquire(1500)?;
            /// assert_eq!(pool.stats().reserved_bytes, 2 << 20); // one huge page
            /// # drop(buf);
            /// # Ok::<(), bufbump::Error>(())
            /// ```
            ///
            /// [`MapOptions`]: crate::MapOptions
            map_options(options);
        }
        wipe {
            /// Sets whether the bytes of a buffer are zeroed on release. The bytes of a split
            /// buffer are zeroed on the release of its last part.
            ///
            /// Cost: zeroing the capacity of every buffer.
            ///
            /// ```
            /// use bufbump::BumpPool;
            ///
            /// let pool = BumpPool::builder().wipe(true).build()?;
            /// let mut login = pool.acquire(16)?;
            /// login.extend_from_slice(b"ada:a passphrase")?;
            /// let name = login.split_to(3);
            /// drop(login); // the memory is shared with `name`
            /// assert_eq!(name, *b"ada");
            /// drop(name); // now the passphrase is overwritten
            /// assert_eq!(pool.acquire(16)?.spare_mut(), [0; 16]);
            /// # Ok::<(), bufbump::Error>(())
            /// ```
        }
    }
}

impl Builder {
    /// Builds the pool.
    ///
    /// # Errors
    ///
    /// - [`ConfigError::Zero`] for shards of no bytes.
    /// - [`ConfigError::TooLarge`] for shards or an alignment over 1 GiB, and for more initial
    ///   shards than the address space can hold.
    /// - [`ConfigError::BadAlignment`] for one that is no power of two.
    /// - [`ConfigError::Region`] if the allocator fails, or the system refuses a mapping.
    ///
    /// ```
    /// use bufbump::BumpPool;
    ///
    /// let pool = BumpPool::builder().shard_size(256 << 10).max_idle_bytes(4 << 20).build()?;
    /// assert_eq!(pool.acquire(1500)?.capacity(), 1500);
    /// let refused = BumpPool::builder().alignment(3).build().unwrap_err();
    /// println!("{refused}"); // names what is wrong
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn build(self) -> Result<BumpPool, ConfigError> {
        self.build_over(self.page_source())
    }

    /// Builds the pool over memory of a [`MemoryProvider`]: all buffers are in it.
    ///
    /// The provider supplies whole pages of 4096 bytes, aligned to 4096. The pool's bookkeeping is
    /// allocated by the allocator. The setting `map_options` is ignored.
    ///
    /// The pool keeps the provider and its memory until the pool and all its buffers are dropped.
    /// Any thread that acquires, releases or trims may call the provider; no lock is held. The
    /// provider must not use the pool that it supplies. Its panics are caught after their hooks
    /// ran. If the provider has no memory, or panics, the request fails with
    /// [`AcquireError::OutOfMemory`](bufcore::AcquireError).
    ///
    /// # Errors
    ///
    /// As for [`build`](Self::build); [`ConfigError::Region`] also if the provider fails.
    ///
    /// ```
    /// use std::alloc::{Layout, alloc_zeroed, dealloc};
    /// use std::ptr::NonNull;
    /// use std::sync::Arc;
    ///
    /// use bufbump::bufcore::{MemoryProvider, Provided};
    /// use bufbump::{BumpPool, RegionError};
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
    /// let pool = BumpPool::builder().build_from(Arc::new(Registered))?;
    /// let mut buf = pool.acquire(1500)?;
    /// buf.extend_from_slice(b"for the device")?;
    /// # Ok::<(), bufbump::Error>(())
    /// ```
    pub fn build_from(self, source: Arc<dyn MemoryProvider>) -> Result<BumpPool, ConfigError> {
        self.build_over(PageSource::Provider(PoolProvider::new(source)))
    }

    fn build_over(self, source: PageSource) -> Result<BumpPool, ConfigError> {
        check_setting("shard_size", self.shard_size, MAX_SHARD_BYTES)?;
        check_alignment(self.alignment, MAX_SHARD_BYTES)?;
        let mut settings = Settings {
            shard_bytes: self.shard_size,
            max_probes: self.max_probes,
            max_idle_bytes: self.max_idle_bytes,
            alignment: self.alignment.max(LEAST_ALIGNMENT),
            page_bytes: source.page_bytes(),
            wipe: self.wipe,
            ..Settings::default()
        };
        settings.complete();
        let shards = self.preallocate.min(self.max_idle_bytes / settings.span_bytes);
        let limit = ADDRESSES / settings.span_bytes;
        if shards > limit {
            return Err(ConfigError::TooLarge { setting: "preallocate", requested: self.preallocate, limit });
        }
        BumpPool::with(settings, source, shards)
    }
}

impl BumpPool {
    /// Makes a pool with the default settings.
    ///
    /// Cost: one small allocation; the first acquire allocates the first shard.
    ///
    /// # Errors
    ///
    /// See [`Builder::build`].
    ///
    /// ```
    /// use bufbump::BumpPool;
    ///
    /// let pool = BumpPool::new()?;
    /// assert_eq!(pool.stats().reserved_bytes, 0); // nothing yet
    /// let mut reply = pool.acquire(512)?;
    /// reply.extend_from_slice(b"220 ready\r\n")?;
    /// assert!(pool.stats().reserved_bytes > pool.shard_size()); // a shard, in whole pages
    /// # Ok::<(), bufbump::Error>(())
    /// ```
    pub fn new() -> Result<Self, ConfigError> {
        Self::builder().build()
    }

    /// Returns the builder, which has all settings.
    ///
    /// ```
    /// use bufbump::BumpPool;
    ///
    /// let pool = BumpPool::builder().shard_size(1 << 20).alignment(4096).build()?;
    /// assert_eq!(pool.acquire(512)?.as_ptr().addr() % 4096, 0); // for direct I/O
    /// # Ok::<(), bufbump::Error>(())
    /// ```
    #[must_use]
    pub const fn builder() -> Builder {
        Builder::new()
    }
}
