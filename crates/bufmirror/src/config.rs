//! The settings of a ring.

use bufcore::{BuildInError, ConfigError, Region};

use crate::MirrorRing;
use crate::map::Mirror;

/// The settings of a [`MirrorRing`]. They can be given in any order and are checked when the ring
/// is built.
///
/// ```
/// # #[cfg(feature = "alloc")] {
/// use bufmirror::MirrorRing;
///
/// let ring = MirrorRing::builder().capacity(64 * 1024).populate(true).build()?;
/// assert!(ring.capacity() >= 64 * 1024);
/// # }
/// # Ok::<(), bufmirror::ConfigError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Builder {
    capacity: Option<usize>,
    populate: bool,
}

impl Builder {
    /// Returns the defaults: pages that the system provides when they are touched.
    ///
    /// ```
    /// # #[cfg(feature = "alloc")] {
    /// use bufmirror::{Builder, ConfigError};
    ///
    /// const SETTINGS: Builder = Builder::new().capacity(64 << 10);
    /// assert!(SETTINGS.build()?.capacity() >= 64 << 10);
    /// let refused = Builder::new().build().unwrap_err(); // there is no default capacity
    /// assert_eq!(refused, ConfigError::Zero { setting: "capacity" });
    /// # }
    /// # Ok::<(), bufmirror::ConfigError>(())
    /// ```
    #[must_use]
    pub const fn new() -> Self {
        Self { capacity: None, populate: false }
    }

    /// Sets the least number of bytes that the ring holds. Over a given region the default is half
    /// of the region.
    ///
    /// ```
    /// # #[cfg(feature = "alloc")] {
    /// use bufmirror::MirrorRing;
    ///
    /// let ring = MirrorRing::builder().capacity(5000).build()?;
    /// if ring.is_mapped() {
    ///     assert!(ring.capacity() >= 8192); // whole pages
    /// }
    /// # assert!(ring.capacity() >= 5000);
    /// # }
    /// # Ok::<(), bufmirror::ConfigError>(())
    /// ```
    #[must_use]
    pub const fn capacity(mut self, bytes: usize) -> Self {
        self.capacity = Some(bytes);
        self
    }

    /// Sets whether to fault in all pages at once, so that no later access does. It applies to
    /// mapped rings only.
    ///
    /// ```
    /// # #[cfg(feature = "alloc")] {
    /// use bufmirror::MirrorRing;
    ///
    /// let ring = MirrorRing::builder().capacity(64 << 10).populate(true).build()?;
    /// assert!(ring.capacity() >= 64 << 10);
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub const fn populate(mut self, populate: bool) -> Self {
        self.populate = populate;
        self
    }

    /// Builds the ring, mapped twice if the system supports it, else on the heap.
    ///
    /// # Errors
    ///
    /// [`ConfigError::Zero`] without a capacity or with one of 0, and as [`MirrorRing::new`].
    ///
    /// ```
    /// # #[cfg(feature = "alloc")] {
    /// use bufmirror::MirrorRing;
    ///
    /// let ring = MirrorRing::builder().capacity(64 << 10).build()?;
    /// assert!(ring.capacity() >= 64 << 10);
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[cfg(feature = "alloc")]
    pub fn build(self) -> Result<MirrorRing, ConfigError> {
        self.mirror(1).map(MirrorRing::over)
    }

    /// Makes the memory alone, of a multiple of `granule` bytes where nothing is mapped. Pages are
    /// a multiple of all that is asked for.
    #[cfg(feature = "alloc")]
    pub(crate) fn mirror(self, granule: usize) -> Result<Mirror, ConfigError> {
        let requested = self.capacity.unwrap_or(0);
        Mirror::new(bufcore::size::align_up(requested, granule).unwrap_or(requested), self.populate)
    }

    /// Builds the ring over the caller's `region`, which stores each byte twice: nothing is mapped,
    /// see [`MirrorRing::is_mapped`]. It needs no allocator.
    ///
    /// ```
    /// use bufmirror::{Builder, bufcore::Region};
    ///
    /// # fn memory() -> &'static mut [u8] { Box::leak(vec![0; 2000].into()) }
    /// let region = Region::from_static(memory()); // a `static_cell`, a linker section, …
    /// let mut ring = Builder::new().build_in(region)?;
    /// assert_eq!(ring.capacity(), 1000);
    /// ring.put(b"hello").unwrap();
    /// # Ok::<(), bufmirror::ConfigError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ConfigError::Zero`], [`ConfigError::TooLarge`], [`ConfigError::RegionTooSmall`]; the error
    /// returns the region.
    ///
    /// ```
    /// use bufmirror::{BuildInError, Builder, ConfigError, Region};
    ///
    /// # fn memory() -> &'static mut [u8] { Box::leak(vec![0; 2000].into()) }
    /// let region = Region::from_static(memory());
    /// let large = Builder::new().capacity(1500);
    /// let BuildInError { error, region, .. } = large.build_in(region).unwrap_err();
    /// // A ring over a region needs its bytes twice.
    /// assert_eq!(error, ConfigError::RegionTooSmall { required: 3000, available: 2000 });
    /// assert_eq!(Builder::new().build_in(region)?.capacity(), 1000); // the region is not lost
    /// # Ok::<(), ConfigError>(())
    /// ```
    pub fn build_in(self, region: Region) -> Result<MirrorRing, BuildInError> {
        Mirror::over(region, self.capacity).map(MirrorRing::over)
    }

    /// Builds the ring over `'static` `memory`. It needs no allocator.
    ///
    /// # Errors
    ///
    /// As [`build_in`](Self::build_in).
    ///
    /// ```
    /// # #[cfg(feature = "alloc")] {
    /// use bufmirror::MirrorRing;
    ///
    /// // Or a `static`, taken once.
    /// let memory: &'static mut [u8] = Box::leak(vec![0; 8192].into());
    /// let ring = MirrorRing::builder().build_static(memory)?;
    /// assert!(!ring.is_mapped() && ring.capacity() <= 4096);
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn build_static(self, memory: &'static mut [u8]) -> Result<MirrorRing, ConfigError> {
        self.build_in(Region::from_static(memory)).map_err(|refused| refused.error)
    }
}
