//! The settings of a ring, checked once.

use bufcore::author::{check_alignment, check_setting};
use bufcore::{BuildInError, ConfigError, Region, size};

use crate::RingPool;
use crate::ring::{
    Grid, MAX_BYTES, Ring, blocks_bytes, most_buffers, most_capacity, note_region, overhead_bytes,
};

/// The capacity over heap memory unless another is asked for. Pages that no buffer needed are not
/// touched, so where there are addresses for it, there is room for a burst.
#[cfg(feature = "alloc")]
const DEFAULT_CAPACITY: usize = if usize::BITS < 64 { 1 << 20 } else { 8 << 20 };

bufkit::settings! {
    /// The settings of a [`RingPool`]. They can be given in any order and are checked when the ring
    /// is built.
    ///
    /// ```
    /// # #[cfg(feature = "alloc")] {
    /// use bufring::RingPool;
    ///
    /// let ring = RingPool::builder().capacity(64 * 1500).buffers(64).alignment(64).build()?;
    /// assert!(ring.capacity() >= 64 * 1500);
    /// # }
    /// # Ok::<(), bufcore::ConfigError>(())
    /// ```
    ///
    /// With the `serde` feature they can be in a configuration file, each under the name of its
    /// method:
    ///
    /// ```
    /// # #[cfg(feature = "serde")] {
    /// use bufring::Builder;
    ///
    /// let text = r#"{"capacity": 65536, "buffers": 16}"#;
    /// let builder: Builder = serde_json::from_str(text).unwrap();
    /// assert_eq!(builder, Builder::new().capacity(65536).buffers(16));
    /// let text = serde_json::to_string(&builder).unwrap();
    /// assert_eq!(serde_json::from_str::<Builder>(&text).unwrap(), builder);
    /// assert!(serde_json::from_str::<Builder>(r#"{"no_such_setting": 1}"#).is_err());
    /// # }
    /// ```
    pub struct Builder {
        new {
            /// Returns the defaults: 8 MiB, room for the guard of one buffer, no alignment beyond
            /// 16.
            ///
            /// ```
            /// use bufring::Builder;
            ///
            /// // A constant can have the settings, for any number of rings.
            /// const SETTINGS: Builder = Builder::new().capacity(64 << 10).buffers(32);
            /// assert_eq!(SETTINGS.to_string(), "capacity=64KiB,buffers=32"); // shows what differs
            /// ```
        }
        unset {
            /// Sets the bytes that the buffers share. The default is 8 MiB, or 1 MiB if addresses
            /// have fewer than 64 bits. Over a given region the default is all bytes except the
            /// bookkeeping, up to 64 GiB.
            ///
            /// ```
            /// # #[cfg(feature = "alloc")] {
            /// use bufring::RingPool;
            ///
            /// let ring = RingPool::builder().capacity(64 << 10).build()?;
            /// assert_eq!(ring.capacity(), 64 << 10);
            /// # }
            /// # Ok::<(), Box<dyn std::error::Error>>(())
            /// ```
            bytes capacity(bytes);
        }
        set {
            /// Sets how many buffers share the capacity; the default is 1.
            ///
            /// In addition to the capacity, the ring gets room for the guard of each and for
            /// rounding its size up. More buffers may be in use, if they leave room for their
            /// guards.
            ///
            /// An idle ring has room for this number of buffers of equal size. They can be released
            /// and acquired again in any order while no other buffer is in use. Buffers of
            /// different sizes may leave gaps that are too small until the ring is idle again.
            ///
            /// ```
            /// # #[cfg(feature = "alloc")] {
            /// use bufring::RingPool;
            ///
            /// let mut ring = RingPool::builder().capacity(8 * 100).buffers(8).build()?;
            /// let eight: Result<Vec<_>, _> = (0..8).map(|_| ring.acquire(100)).collect();
            /// assert_eq!(eight?.len(), 8);
            /// # }
            /// # Ok::<(), Box<dyn std::error::Error>>(())
            /// ```
            count buffers(buffers) = 1;
            /// Makes every buffer start at a multiple of `bytes`, a power of two of at least 16.
            /// The size of blocks, guard included, is then a multiple of that: a page-aligned
            /// buffer of one page takes two pages. For buffers of whole pages, use a slot pool of
            /// `bufslot`, which wastes no memory.
            ///
            /// ```
            /// # #[cfg(feature = "alloc")] {
            /// use bufring::RingPool;
            ///
            /// let mut ring = RingPool::builder().alignment(64).build()?;
            /// assert_eq!(ring.acquire(100)?.as_ptr().addr() % 64, 0);
            /// # }
            /// # Ok::<(), Box<dyn std::error::Error>>(())
            /// ```
            bytes alignment(bytes) = 1;
        }
        wipe {
            /// Sets whether the bytes of a buffer are zeroed when it is released.
            ///
            /// Cost: zeroing the capacity of every buffer.
            ///
            /// ```
            /// # #[cfg(feature = "alloc")] {
            /// use bufring::RingPool;
            ///
            /// let mut ring = RingPool::builder().capacity(1024).wipe(true).build()?;
            /// let mut key = ring.acquire(32)?;
            /// key.extend_from_slice(&[0xa5; 32])?;
            /// drop(key);
            /// assert_eq!(ring.acquire(32)?.spare_mut(), [0; 32]); // no key
            /// # }
            /// # Ok::<(), bufring::Error>(())
            /// ```
        }
    }
}

impl Builder {
    /// Returns the bytes that a region needs for these settings, wherever it starts.
    ///
    /// ```
    /// let bytes = bufring::Builder::new().capacity(256).buffers(4).required_bytes().unwrap();
    /// assert!(bytes > 256);
    /// ```
    ///
    /// # Errors
    ///
    /// Returns an error for settings that no region can serve.
    pub fn required_bytes(&self) -> Result<usize, ConfigError> {
        let grid = self.check()?;
        let blocks = self.blocks(self.capacity.unwrap_or(1))?;
        overhead_bytes(grid)
            .and_then(|overhead| overhead.checked_add(blocks))
            .filter(|&bytes| bytes <= size::MAX_BYTES)
            .ok_or_else(|| self.too_large())
    }

    /// Builds the ring over heap memory.
    ///
    /// # Errors
    ///
    /// - [`ConfigError::Zero`] for no buffers or a capacity of 0.
    /// - [`ConfigError::TooLarge`] if the capacity and the guards exceed 64 GiB, and for an
    ///   alignment of 64 GiB and more.
    /// - [`ConfigError::BadAlignment`] for an alignment that is not a power of two.
    /// - [`ConfigError::Region`] if the allocator fails.
    ///
    /// ```
    /// # #[cfg(feature = "alloc")] {
    /// use bufring::RingPool;
    ///
    /// let ring = RingPool::builder().capacity(1 << 20).buffers(256).build()?;
    /// assert!(ring.is_idle());
    /// let refused = RingPool::builder().capacity(0).build().unwrap_err();
    /// println!("{refused}"); // names the setting
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[cfg(feature = "alloc")]
    pub fn build(self) -> Result<RingPool, ConfigError> {
        let builder = self.capacity(self.capacity.unwrap_or(DEFAULT_CAPACITY));
        let region = Region::heap(builder.required_bytes()?, size::CACHE_LINE_BYTES)?;
        builder.build_over(region).map_err(|refused| refused.error)
    }

    /// Builds the ring over the caller's `region`. It needs no allocator.
    ///
    /// ```
    /// use bufring::{Builder, Region};
    ///
    /// # fn memory() -> &'static mut [u8] { Box::leak(vec![0; 1024].into()) }
    /// let region = Region::from_static(memory()); // a `static_cell`, a linker section, …
    /// let mut ring = Builder::new().build_in(region)?;
    /// let buf = ring.acquire(100)?;
    /// assert_eq!(buf.capacity(), 100);
    /// # Ok::<(), bufring::Error>(())
    /// ```
    ///
    /// The error returns the region:
    ///
    /// ```
    /// use bufring::{BuildInError, Builder, ConfigError, Region};
    ///
    /// # fn memory() -> &'static mut [u8] { Box::leak(vec![0; 1024].into()) }
    /// let region = Region::from_static(memory());
    /// let large = Builder::new().capacity(1 << 20);
    /// let BuildInError { error, region, .. } = large.build_in(region).unwrap_err();
    /// assert!(matches!(error, ConfigError::RegionTooSmall { available: 1024, .. }));
    ///
    /// // The region is not lost: it serves for a smaller ring.
    /// assert!(large.capacity(512).build_in(region).is_ok());
    /// ```
    ///
    /// # Errors
    ///
    /// As [`build`](Self::build), and [`ConfigError::RegionTooSmall`]; the error returns the
    /// region.
    pub fn build_in(self, region: Region) -> Result<RingPool, BuildInError> {
        note_region();
        self.build_over(region)
    }

    fn build_over(self, region: Region) -> Result<RingPool, BuildInError> {
        let checked = self.check().and_then(|grid| {
            let blocks = self.capacity.map(|capacity| self.blocks(capacity)).transpose()?;
            Ok((grid, blocks))
        });
        match checked {
            Ok((grid, blocks)) => {
                Ring::build(region, grid, blocks, self.wipe).map(|ring| RingPool::over(ring, grid))
            }
            Err(error) => Err(BuildInError { error, region, fallback: () }),
        }
    }

    /// Builds the ring over `'static` `memory`. It needs no allocator.
    ///
    /// # Errors
    ///
    /// As [`build_in`](Self::build_in).
    ///
    /// ```
    /// # #[cfg(feature = "alloc")] {
    /// use bufring::Builder;
    ///
    /// // Or a `static`, taken once.
    /// let memory: &'static mut [u8] = Box::leak(vec![0; 4096].into());
    /// let mut ring = Builder::new().build_static(memory)?;
    /// assert_eq!(ring.acquire(256)?.capacity(), 256);
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn build_static(self, memory: &'static mut [u8]) -> Result<RingPool, ConfigError> {
        self.build_in(Region::from_static(memory)).map_err(|refused| refused.error)
    }

    fn check(&self) -> Result<Grid, ConfigError> {
        check_setting("buffers", self.buffers, usize::MAX)?;
        check_setting("capacity", self.capacity.unwrap_or(1), usize::MAX)?;
        // A ring counts one block at the least.
        check_alignment(self.alignment, MAX_BYTES.min(size::MAX_BYTES / 4))?;
        Ok(Grid::new(self.alignment))
    }

    /// Returns the bytes of blocks and their guards for `capacity` bytes.
    fn blocks(&self, capacity: usize) -> Result<usize, ConfigError> {
        let grid = Grid::new(self.alignment);
        blocks_bytes(capacity, self.buffers, grid)
            .filter(|&bytes| bytes <= MAX_BYTES)
            .ok_or_else(|| self.too_large())
    }

    /// Returns which of capacity and buffers is too large. A capacity that one buffer can have is
    /// not.
    fn too_large(&self) -> ConfigError {
        let (grid, capacity) = (Grid::new(self.alignment), self.capacity.unwrap_or(1));
        let possible = if capacity > most_capacity(1, grid) { 1 } else { capacity };
        let limit = most_buffers(possible, grid);
        if self.buffers > limit {
            return ConfigError::TooLarge { setting: "buffers", requested: self.buffers, limit };
        }
        let limit = most_capacity(self.buffers, grid);
        ConfigError::TooLarge { setting: "capacity", requested: capacity, limit }
    }
}
