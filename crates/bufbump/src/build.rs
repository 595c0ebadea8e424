//! How a pool is built: its settings, and what they are checked against.

use alloc::sync::Arc;

use bufcore::author::{check_alignment, check_setting};
use bufcore::{ConfigError, MemoryProvider};
use bufkit::{DedicatedPages, PoolProvider};

use crate::pool::BumpPool;
use crate::settings::{MAX_SPARES, Settings};
use crate::shard::MAX_SHARD_BYTES;

const DEFAULT_SHARD_BYTES: usize = 256 << 10;
const DEFAULT_PROBES: usize = 2;
const DEFAULT_IDLE_BYTES: usize = 16 << 20;
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
            /// Returns the defaults: shards of 256 KiB, 2 probes, 16 MiB of idle memory, starts at
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
            /// Sets the bytes of a shard, 256 KiB unless set: the largest request that does not
            /// need a piece of memory of its own. At most 1 GiB. Where the
            /// [alignment](Self::alignment) makes a shard larger than that, its buffers can have
            /// what is over, and statistics count it.
            ///
            /// A shard is used again when all its buffers have been released. A shard of good size
            /// holds several buffers of the usual size, and less traffic than the pool sees while a
            /// buffer lives. A shard for one buffer is too small, a shard for a day's traffic too
            /// large.
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
            /// Sets how many other shards of the thread a request looks at when it does not fit
            /// into the current one; 2 unless set. After them it takes an idle or a new one.
            ///
            /// A probe finds room in an older shard, which then is free again later. The example
            /// `probes` prints what each number of them costs and saves.
            ///
            /// ```
            /// use bufbump::BumpPool;
            ///
            /// for (probes, shards) in [(0, 3), (2, 2)] {
            ///     let pool = BumpPool::builder().shard_size(4096).max_probes(probes).build()?;
            ///     let (old, newer) = (pool.acquire(3000)?, pool.acquire(3500)?); // a shard for each
            ///     let third = pool.acquire(800)?; // fits beside the oldest, if the pool looks there
            ///     assert_eq!(pool.stats().pinned_bytes, shards * 4096);
            /// #   drop((old, newer, third));
            /// }
            /// # Ok::<(), bufbump::Error>(())
            /// ```
            count max_probes(probes) = DEFAULT_PROBES;
            /// Sets the bytes of idle memory that the pool keeps for later: of shards of which no
            /// buffer is out, and of larger pieces; 16 MiB unless set. Memory over it is freed.
            ///
            /// On top of it, each thread that acquires keeps the shard that it carves, and up to
            /// four more that fit into this budget.
            ///
            /// ```
            /// use bufbump::BumpPool;
            ///
            /// let pool = BumpPool::builder().shard_size(64 << 10).max_idle_bytes(128 << 10).build()?;
            /// let burst: Result<Vec<_>, _> = (0..100).map(|_| pool.acquire(60 << 10)).collect();
            /// assert_eq!(burst?.len(), 100); // then all are released
            /// // Two shards are the pool's, one is carved, two more are the thread's.
            /// assert!(pool.stats().idle_bytes <= 5 * (64 << 10));
            /// # Ok::<(), bufbump::Error>(())
            /// ```
            bytes max_idle_bytes(bytes) = DEFAULT_IDLE_BYTES;
            /// Makes every buffer start at a multiple of `bytes`, a power of two; 16 unless set,
            /// and never less than 8.
            ///
            /// The header of a buffer, 16 bytes, is in front of it. So a buffer takes its bytes and
            /// 16 more, rounded up to the alignment. A buffer of a page that starts at a page takes
            /// two pages, and one of 16 bytes less takes one. `bufslot` and `bufshard` lay pages
            /// end to end.
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
            /// Sets how many shards the pool has from the start; none unless set. They are idle
            /// memory: shards over the budget of [`max_idle_bytes`](Self::max_idle_bytes) are not
            /// taken.
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
        mapped {
            /// Gives each shard, and each larger piece, of `bytes` bytes or more a mapping of its
            /// own from the system, in place of memory of the global allocator. Those of a pool
            /// whose alignment is more than a page, 4096 bytes, have none.
            ///
            /// Unless set, those of 128 KiB and more have one, or memory of the allocator where the
            /// system refuses it. They count as the bytes that were asked for then. With this
            /// setting a request fails for which the system refuses a mapping, as
            /// [`AcquireError::OutOfMemory`](bufcore::AcquireError). With `usize::MAX` none has
            /// one.
            ///
            /// Memory of these that the pool frees reaches the system at once, under any allocator.
            /// Where the system has no room for another mapping (`vm.max_map_count`, on Linux),
            /// some of their addresses may stay taken. Shards have mappings if
            /// [`shard_size`](Self::shard_size) is `bytes` or more. A request larger than a shard
            /// has a piece of up to a quarter more than it asks for, whose size decides.
            ///
            /// The buffers of a shard can have all of its mapping, with the rest of its last page.
            /// Statistics and [`max_idle_bytes`](Self::max_idle_bytes) count whole mappings.
            ///
            /// Cost: two system calls in the life of a mapping, none while it is used again. Pages
            /// count as 4096 bytes. Where those of the system are larger, a mapping takes up to one
            /// of them more than is counted.
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
            bytes mapped_from(bytes);
            /// Sets which pages the mappings of [`mapped_from`](Self::mapped_from) have, whether
            /// they are there from the start, and whether they are locked in memory. Without
            /// `mapped_from`, shards and larger pieces of 128 KiB and more have such mappings.
            ///
            /// With huge pages a mapping is a multiple of 2 MiB, and a shard has all of it. So
            /// [`shard_size`](Self::shard_size) should be near such a multiple, with some bytes
            /// left for the headers. A mapping that the system refuses fails the request, as
            /// [`AcquireError::OutOfMemory`](bufcore::AcquireError).
            ///
            /// In the text of a builder they are words with `+` between: `map_options=advise+lock`.
            /// In a configuration file they are a table of their own, as [`MapOptions`] shows.
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
            map_options(options);
        }
        wipe {
            /// Sets whether the bytes of a buffer are zeroed when it is released; of one that was
            /// split, when its last part is.
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
    /// - [`ConfigError::TooLarge`] for shards or an alignment over 1 GiB, and for more shards from
    ///   the start than a process has addresses for.
    /// - [`ConfigError::BadAlignment`] for one that is no power of two.
    /// - [`ConfigError::Region`] when the allocator refuses memory, or the system a mapping.
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
        let (settings, preallocate) = self.check(self.dedicated_pages())?;
        BumpPool::with(settings, PoolProvider::none(), preallocate)
    }

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

    /// Checks the settings, and returns them with the number of shards from the start. `mapped`
    /// says from how many bytes on memory has which pages of its own.
    fn check(&self, mapped: Option<(usize, DedicatedPages)>) -> Result<(Settings, usize), ConfigError> {
        check_setting("shard_size", self.shard_size, MAX_SHARD_BYTES)?;
        check_alignment(self.alignment, MAX_SHARD_BYTES)?;
        let mut settings = Settings {
            shard_bytes: self.shard_size,
            max_probes: self.max_probes,
            max_idle_bytes: self.max_idle_bytes,
            shard_idle_bytes: self.shard_size,
            mapped,
            spare_shards: 0,
            alignment: self.alignment.max(LEAST_ALIGNMENT),
            wipe: self.wipe,
        };
        settings.shard_idle_bytes = settings.idle_bytes(self.shard_size).unwrap_or(self.shard_size);
        let idle_shards = self.max_idle_bytes / settings.shard_idle_bytes;
        settings.spare_shards = idle_shards.min(MAX_SPARES);
        let shards = self.preallocate.min(idle_shards);
        let limit = ADDRESSES / self.shard_size;
        if shards > limit {
            return Err(ConfigError::TooLarge { setting: "preallocate", requested: self.preallocate, limit });
        }
        Ok((settings, shards))
    }
}

impl BumpPool {
    /// Makes a pool with the default settings.
    ///
    /// Cost: one small allocation; the first shard is taken by the first acquire.
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
    /// assert_eq!(pool.stats().reserved_bytes, pool.shard_size());
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
