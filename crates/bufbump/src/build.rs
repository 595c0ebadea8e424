//! How a pool is built: its settings, and what they are checked against.

use core::fmt;

use bufcore::ConfigError;
#[cfg(feature = "mmap")]
use bufcore::MapOptions;
use bufcore::author::check_alignment;
use bufkit::{PoolProvider, SettingsText};

use crate::pool::BumpPool;
use crate::settings::{MAX_SPARES, Mapped, Settings};
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

/// The settings of a [`BumpPool`]. They can be given in any order and are checked when the pool is
/// built.
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
/// With the `serde` feature they can be in a configuration file, each under the name of its method:
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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default, deny_unknown_fields))]
pub struct Builder {
    #[cfg_attr(feature = "serde", serde(rename = "shard_size"))]
    shard_bytes: usize,
    max_probes: usize,
    max_idle_bytes: usize,
    alignment: usize,
    preallocate: usize,
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

#[cfg(all(feature = "serde", feature = "mmap"))]
#[allow(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
fn is_plain(options: &MapOptions) -> bool {
    *options == MapOptions::new()
}

impl Default for Builder {
    fn default() -> Self {
        Self {
            shard_bytes: DEFAULT_SHARD_BYTES,
            max_probes: DEFAULT_PROBES,
            max_idle_bytes: DEFAULT_IDLE_BYTES,
            alignment: DEFAULT_ALIGNMENT,
            preallocate: 0,
            wipe: false,
            #[cfg(feature = "mmap")]
            mapped_from: None,
            #[cfg(feature = "mmap")]
            map_options: MapOptions::new(),
        }
    }
}

impl Builder {
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
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the bytes of a shard, 256 KiB unless set: the largest request that does not need a
    /// piece of memory of its own. At most 1 GiB. Where the [alignment](Self::alignment) makes a
    /// shard larger than that, its buffers can have what is over, and statistics count it.
    ///
    /// A shard is used again when all its buffers have been released. A shard of good size holds
    /// several buffers of the usual size, and less traffic than the pool sees while a buffer
    /// lives. A shard for one buffer is too small, a shard for a day's traffic too large.
    ///
    /// ```
    /// use bufbump::BumpPool;
    ///
    /// let pool = BumpPool::builder().shard_size(1 << 20).build()?;
    /// assert_eq!(pool.acquire(900 << 10)?.lease().is_fallback(), false);
    /// assert_eq!(pool.acquire(2 << 20)?.lease().is_fallback(), true);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn shard_size(mut self, bytes: usize) -> Self {
        self.shard_bytes = bytes;
        self
    }

    /// Sets how many other shards of the thread a request looks at when it does not fit into the
    /// current one; 2 unless set. After them it takes an idle or a new one.
    ///
    /// A probe finds room in an older shard, which then is free again later. The example `probes`
    /// prints what each number of them costs and saves.
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
    #[must_use]
    pub fn max_probes(mut self, probes: usize) -> Self {
        self.max_probes = probes;
        self
    }

    /// Sets the bytes of idle memory that the pool keeps for later: of shards of which no buffer is
    /// out, and of larger pieces; 16 MiB unless set. Memory over it is freed.
    ///
    /// On top of it, each thread that acquires keeps the shard that it carves, and up to four more
    /// that fit into this budget.
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
    #[must_use]
    pub fn max_idle_bytes(mut self, bytes: usize) -> Self {
        self.max_idle_bytes = bytes;
        self
    }

    /// Makes every buffer start at a multiple of `bytes`, a power of two; 16 unless set, and never
    /// less than 8.
    ///
    /// The header of a buffer, 16 bytes, is in front of it. So a buffer takes its bytes and 16
    /// more, rounded up to the alignment. A buffer of a page that starts at a page takes two pages,
    /// and one of 16 bytes less takes one. `bufslot` and `bufshard` lay pages end to end.
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
    #[must_use]
    pub fn alignment(mut self, bytes: usize) -> Self {
        self.alignment = bytes;
        self
    }

    /// Sets how many shards the pool has from the start; none unless set. They are idle memory:
    /// shards over the budget of [`max_idle_bytes`](Self::max_idle_bytes) are not taken.
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
    #[must_use]
    pub fn preallocate(mut self, shards: usize) -> Self {
        self.preallocate = shards;
        self
    }

    /// Sets whether the bytes of a buffer are zeroed when it is released; of one that was split,
    /// when its last part is.
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
    #[cfg(feature = "wipe")]
    #[must_use]
    pub fn wipe(mut self, wipe: bool) -> Self {
        self.wipe = wipe;
        self
    }

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
        let (settings, preallocate) = self.check(self.mapped())?;
        BumpPool::with(settings, PoolProvider::none(), preallocate)
    }

    /// Checks the settings, and returns them with the number of shards from the start. `mapped` is
    /// the memory that has pages of its own.
    pub(crate) fn check(&self, mapped: Option<Mapped>) -> Result<(Settings, usize), ConfigError> {
        if self.shard_bytes == 0 {
            return Err(ConfigError::Zero { setting: "shard_size" });
        }
        if self.shard_bytes > MAX_SHARD_BYTES {
            return Err(ConfigError::TooLarge {
                setting: "shard_size",
                requested: self.shard_bytes,
                limit: MAX_SHARD_BYTES,
            });
        }
        check_alignment(self.alignment, MAX_SHARD_BYTES)?;
        let mut settings = Settings {
            shard_bytes: self.shard_bytes,
            max_probes: self.max_probes,
            max_idle_bytes: self.max_idle_bytes,
            shard_idle_bytes: self.shard_bytes,
            mapped,
            spare_shards: 0,
            alignment: self.alignment.max(LEAST_ALIGNMENT),
            wipe: self.wipe,
        };
        settings.shard_idle_bytes = settings.idle_bytes(self.shard_bytes).unwrap_or(self.shard_bytes);
        let idle_shards = self.max_idle_bytes / settings.shard_idle_bytes;
        settings.spare_shards = idle_shards.min(MAX_SPARES);
        let shards = self.preallocate.min(idle_shards);
        let limit = ADDRESSES / self.shard_bytes;
        if shards > limit {
            return Err(ConfigError::TooLarge { setting: "preallocate", requested: self.preallocate, limit });
        }
        Ok((settings, shards))
    }
}

/// The settings that differ from the defaults, as `AnyBuilder` of `bufworks` reads them:
/// `shard_size=64KiB,max_probes=4`.
impl fmt::Display for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let default = Self::default();
        let mut text = SettingsText::new(f);
        text.bytes("shard_size", self.shard_bytes, default.shard_bytes)?;
        text.count("max_probes", self.max_probes, default.max_probes)?;
        text.bytes("max_idle_bytes", self.max_idle_bytes, default.max_idle_bytes)?;
        text.bytes("alignment", self.alignment, default.alignment)?;
        text.count("preallocate", self.preallocate, default.preallocate)?;
        #[cfg(feature = "mmap")]
        text.bytes("mapped_from", self.mapped_from, default.mapped_from)?;
        #[cfg(feature = "mmap")]
        text.text("map_options", self.map_options, default.map_options)?;
        text.switch("wipe", self.wipe, default.wipe)
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
    pub fn builder() -> Builder {
        Builder::default()
    }
}
