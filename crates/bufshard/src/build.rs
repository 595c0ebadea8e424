//! How a pool is built: its settings, and what they are checked against.

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;

use core::fmt;

use bufcore::ConfigError;
#[cfg(feature = "mmap")]
use bufcore::MapOptions;
use bufcore::author::check_alignment;
use bufkit::{PoolProvider, SettingsText};

use crate::block::{LEAST_ALIGNMENT, MOST_ALIGNMENT, Mapped};
use crate::class::{self, MAX_CLASSES, NO_CLASS};
use crate::pool::ShardPool;
use crate::settings::{self, MOST_SHARDS, Settings};

const DEFAULT_THREAD_CACHE: usize = MOST_THREAD_CACHE;
const DEFAULT_LARGEST_BYTES: usize = 64 << 20;
const MOST_THREAD_CACHE: usize = 1024;
const MOST_SHARD_BUFFERS: usize = 1 << 16;

/// The settings of a [`ShardPool`]. They can be given in any order and are checked when the pool is
/// built.
///
/// ```
/// use bufshard::ShardPool;
///
/// let pool = ShardPool::builder().thread_cache(8).largest_pooled(1 << 20).build()?;
/// assert_eq!(pool.largest_pooled(), 1 << 20);
/// # Ok::<(), bufshard::bufcore::ConfigError>(())
/// ```
///
/// With the `serde` feature they can be in a configuration file, each under the name of its method:
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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default, deny_unknown_fields))]
pub struct Builder {
    thread_cache: usize,
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    max_cached_bytes: Option<usize>,
    smallest_pooled: usize,
    largest_pooled: usize,
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    shard_buffers: Option<usize>,
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    shards: Option<usize>,
    // Formats whose integers are signed cannot say "no limit" as a number.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "is_unlimited"))]
    max_bytes: usize,
    pub(crate) alignment: usize,
    // Not a setting without the feature: a file that asks for it is refused.
    #[cfg_attr(all(feature = "serde", not(feature = "wipe")), serde(skip))]
    wipe: bool,
    #[cfg(feature = "mmap")]
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub(crate) mapped_from: Option<usize>,
    #[cfg(feature = "mmap")]
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "is_plain"))]
    pub(crate) map_options: MapOptions,
}

#[cfg(feature = "serde")]
#[allow(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
fn is_unlimited(budget: &usize) -> bool {
    *budget == usize::MAX
}

#[cfg(all(feature = "serde", feature = "mmap"))]
#[allow(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
fn is_plain(options: &MapOptions) -> bool {
    *options == MapOptions::new()
}

impl Default for Builder {
    fn default() -> Self {
        Self {
            thread_cache: DEFAULT_THREAD_CACHE,
            max_cached_bytes: None,
            smallest_pooled: 1,
            largest_pooled: DEFAULT_LARGEST_BYTES,
            shard_buffers: None,
            shards: None,
            max_bytes: usize::MAX,
            alignment: LEAST_ALIGNMENT,
            wipe: false,
            #[cfg(feature = "mmap")]
            mapped_from: None,
            #[cfg(feature = "mmap")]
            map_options: MapOptions::new(),
        }
    }
}

impl Builder {
    /// Returns the defaults.
    ///
    /// A thread keeps as many buffers of a size class as it needs, up to 1024, and all threads
    /// together 1 MiB for each processor, or 8 MiB. A shard keeps 128, and there are as many shards
    /// as processors (4 to 64). Sizes up to 64 MiB are pooled, without a budget. Buffers start at
    /// multiples of 16, and of 64 from 256 bytes on.
    ///
    /// ```
    /// use bufshard::Builder;
    ///
    /// assert_eq!(Builder::new().to_string(), ""); // it prints what differs from the defaults
    /// assert_eq!(Builder::new().shards(8).to_string(), "shards=8");
    /// ```
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the most buffers of a size class that a thread keeps for itself; 1024 unless set, which
    /// is the most.
    ///
    /// It is a bound. A thread begins with none, and keeps more when its requests and releases show
    /// that it would use them. Of large classes it keeps at most 4 MiB, or one buffer. Beside these
    /// it keeps the one that it released first after it took the last such one, of whatever class.
    /// With 0, threads keep nothing.
    ///
    /// A thread that has more of a class out at once, and releases them all, exchanges them with
    /// the shards, up to 32 or 256 KiB at a time.
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
    #[must_use]
    pub fn thread_cache(mut self, buffers: usize) -> Self {
        self.thread_cache = buffers;
        self
    }

    /// Sets the most bytes that the caches of all threads are given room for. Unless set, it is
    /// 1 MiB for each thread that the machine runs at once, and at least 8 MiB.
    ///
    /// It counts the room that caches have, as the sizes of their classes, not what is in it. Where
    /// nothing is left of it, caches do not grow, and their threads exchange buffers with the
    /// shards more often. The one buffer that each thread keeps apart is not counted.
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
    #[must_use]
    pub fn max_cached_bytes(mut self, bytes: usize) -> Self {
        // No more is ever counted, and formats whose integers are signed have a number for it.
        self.max_cached_bytes = Some(bytes.min(isize::MAX as usize));
        self
    }

    /// Sets the smallest request that is pooled; 1 unless set: all are pooled. It is rounded down
    /// to a size class.
    ///
    /// Smaller requests are allocations of their own, as are those for more than
    /// [`largest_pooled`](Self::largest_pooled).
    ///
    /// ```
    /// use bufshard::ShardPool;
    ///
    /// let pool = ShardPool::builder().smallest_pooled(1024).build()?;
    /// drop((pool.acquire(100)?, pool.acquire(1500)?));
    /// let idle: usize = pool.class_stats().iter().map(|class| class.thread_idle).sum();
    /// assert_eq!(idle, 1); // the small one went back to the allocator
    /// # Ok::<(), bufshard::bufcore::Error>(())
    /// ```
    #[must_use]
    pub fn smallest_pooled(mut self, bytes: usize) -> Self {
        self.smallest_pooled = bytes;
        self
    }

    /// Sets the largest request that is pooled; 64 MiB unless set, at most 1 GiB. It is rounded up
    /// to a size class.
    ///
    /// ```
    /// use bufshard::ShardPool;
    ///
    /// let pool = ShardPool::builder().largest_pooled(1 << 20).build()?;
    /// drop(pool.acquire(8 << 20)?); // goes back to the allocator at once
    /// assert_eq!(pool.stats().idle_bytes, 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn largest_pooled(mut self, bytes: usize) -> Self {
        self.largest_pooled = bytes;
        self
    }

    /// Sets how many buffers of each size class a shard keeps, at most 65,536. Of large classes it
    /// keeps fewer: 16 MiB of each, or one buffer. Unless set, it keeps 128, within 1 MiB of each
    /// class, or 16. Until a class needed more, it keeps 1 MiB of it, or one buffer.
    ///
    /// ```
    /// use bufshard::ShardPool;
    ///
    /// // Threads keep nothing here, so all that is released goes to the one shard.
    /// let pool = ShardPool::builder().thread_cache(0).shards(1).shard_buffers(2).build()?;
    /// let burst: Result<Vec<_>, _> = (0..5).map(|_| pool.acquire(1500)).collect();
    /// drop(burst?);
    /// let idle: usize = pool.class_stats().iter().map(|class| class.shard_idle).sum();
    /// assert_eq!(idle, 2); // there was no room for three of them
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn shard_buffers(mut self, buffers: usize) -> Self {
        self.shard_buffers = Some(buffers);
        self
    }

    /// Sets how many shards there are, rounded up to a power of two, at most 64. Unless set, they
    /// are as many as the machine runs threads at once, and at least 4.
    ///
    /// More shards are for more threads that hand buffers to each other. Each keeps its own
    /// [`shard_buffers`](Self::shard_buffers).
    ///
    /// ```
    /// use bufshard::ShardPool;
    ///
    /// let pool = ShardPool::builder().shards(2).shard_buffers(4).thread_cache(0).build()?;
    /// assert_eq!(pool.preallocate(100, 1500)?, 8); // what two shards have room for
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn shards(mut self, shards: usize) -> Self {
        self.shards = Some(shards);
        self
    }

    /// Sets the most bytes of memory that the pool holds; no limit unless set.
    ///
    /// It counts idle memory and memory that is out, with the headers of the blocks and what
    /// aligning them takes, but without the pool's bookkeeping. A budget in which no request fits,
    /// not even for one byte, is refused when the pool is built. A request that does not fit is
    /// refused as [`AcquireError::Exhausted`](bufcore::AcquireError).
    ///
    /// ```
    /// use bufshard::ShardPool;
    /// use bufshard::bufcore::AcquireError;
    ///
    /// let pool = ShardPool::builder().max_bytes(1 << 20).build()?;
    /// let held = pool.acquire(700 << 10)?;
    /// assert!(matches!(pool.acquire(700 << 10), Err(AcquireError::Exhausted { .. })));
    /// drop(held);
    /// assert!(pool.acquire(700 << 10).is_ok());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn max_bytes(mut self, bytes: usize) -> Self {
        self.max_bytes = bytes;
        self
    }

    /// Makes every buffer start at a multiple of `bytes`, a power of two; 16 unless set, and never
    /// less.
    ///
    /// Buffers of size classes from 256 bytes on start at multiples of a cache line, 64, at least.
    ///
    /// Cost: for each buffer `bytes - 16` bytes, up to 2048. From 4096 on, the header of a buffer
    /// is in an allocation of its own, of 64 bytes, and the allocator aligns the bytes. The bytes
    /// that it takes for that are not counted. For buffers of 64 KiB and more, or with an alignment
    /// of 64 KiB and more, it is `bytes - 1`, which is counted, and mostly never touched.
    ///
    /// ```
    /// use bufshard::ShardPool;
    ///
    /// let pool = ShardPool::builder().alignment(4096).build()?;
    /// assert_eq!(pool.acquire(100)?.as_ptr().addr() % 4096, 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn alignment(mut self, bytes: usize) -> Self {
        self.alignment = bytes;
        self
    }

    /// Sets whether the bytes of a buffer are zeroed when it is released; of one that was split,
    /// when its last part is.
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
    #[cfg(feature = "wipe")]
    #[must_use]
    pub fn wipe(mut self, wipe: bool) -> Self {
        self.wipe = wipe;
        self
    }

    /// Builds the pool.
    ///
    /// Cost: an allocation. The first pool of a process on Linux also registers
    /// `membarrier(2)`. The kernel may take some milliseconds for that when the process has other
    /// threads already. Unless both [`shards`](Self::shards) and
    /// [`max_cached_bytes`](Self::max_cached_bytes) are set, the standard library counts the
    /// processors. It allocates some bytes for that, and ends the process when it gets none.
    ///
    /// # Errors
    ///
    /// - [`ConfigError::Zero`] for no shards, no budget and a largest size of 0.
    /// - [`ConfigError::TooSmall`] for a budget that can serve nothing. It names the smallest that
    ///   can.
    /// - [`ConfigError::TooLarge`] for settings over the limits named above, and for an alignment
    ///   over 1 GiB.
    /// - [`ConfigError::BadAlignment`] for one that is no power of two.
    /// - [`ConfigError::Region`] when the allocator refuses.
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
        ShardPool::with(self.check(self.mapped())?, PoolProvider::none())
    }

    /// Checks the settings and returns them; `mapped` says which blocks have pages of their own.
    pub(crate) fn check(&self, mapped: Option<Mapped>) -> Result<Settings, ConfigError> {
        let shards = self.shards.unwrap_or_else(settings::default_shards);
        for (setting, value) in
            [("shards", shards), ("max_bytes", self.max_bytes), ("largest_pooled", self.largest_pooled)]
        {
            if value == 0 {
                return Err(ConfigError::Zero { setting });
            }
        }
        let largest = if cfg!(any(loom, shuttle)) { class::LEAST_BYTES } else { self.largest_pooled };
        let limits = [
            ("shards", shards, MOST_SHARDS),
            ("thread_cache", self.thread_cache, MOST_THREAD_CACHE),
            ("shard_buffers", self.shard_buffers.unwrap_or(0), MOST_SHARD_BUFFERS),
            ("largest_pooled", largest, class::bytes_of(MAX_CLASSES - 1)),
        ];
        for (setting, requested, limit) in limits {
            if requested > limit {
                return Err(ConfigError::TooLarge { setting, requested, limit });
            }
        }
        check_alignment(self.alignment, MOST_ALIGNMENT)?;
        let settings = Settings {
            thread_cache: self.thread_cache,
            max_cached_bytes: self.max_cached_bytes.unwrap_or_else(settings::default_cached_bytes),
            smallest_class: class::class_of(self.smallest_pooled.max(1)),
            classes: class::class_of(largest) + 1,
            shards: shards.next_power_of_two(),
            shard_buffers: self.shard_buffers,
            max_bytes: self.max_bytes,
            alignment: self.alignment,
            mapped,
            wipe: self.wipe,
        };
        let classes = (0..settings.classes).take_while(|&class| settings.has_room(class)).count();
        let settings = Settings { classes, ..settings };
        if settings.max_capacity() == 0 {
            let least = settings.layout_of(NO_CLASS, 1).total();
            return Err(ConfigError::TooSmall { setting: "max_bytes", requested: self.max_bytes, least });
        }
        Ok(settings)
    }
}

/// The settings that differ from the defaults, as `AnyBuilder` of `bufworks` reads them:
/// `thread_cache=8,max_bytes=256MiB`.
impl fmt::Display for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let default = Self::default();
        let mut text = SettingsText::new(f);
        text.count("thread_cache", self.thread_cache, default.thread_cache)?;
        text.bytes("max_cached_bytes", self.max_cached_bytes, default.max_cached_bytes)?;
        text.bytes("smallest_pooled", self.smallest_pooled, default.smallest_pooled)?;
        text.bytes("largest_pooled", self.largest_pooled, default.largest_pooled)?;
        text.count("shard_buffers", self.shard_buffers, default.shard_buffers)?;
        text.count("shards", self.shards, default.shards)?;
        text.bytes("max_bytes", self.max_bytes, default.max_bytes)?;
        text.bytes("alignment", self.alignment, default.alignment)?;
        #[cfg(feature = "mmap")]
        text.bytes("mapped_from", self.mapped_from, default.mapped_from)?;
        #[cfg(feature = "mmap")]
        text.text("map_options", self.map_options, default.map_options)?;
        text.switch("wipe", self.wipe, default.wipe)
    }
}

impl ShardPool {
    /// Makes a pool with the default settings.
    ///
    /// Cost: see [`Builder::build`]; memory for buffers is taken when it is first needed.
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
    #[must_use]
    pub fn builder() -> Builder {
        Builder::default()
    }
}
