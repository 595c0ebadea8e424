//! The settings of a ring.

use core::fmt;

use bufcore::Region;

use crate::map::{Mirror, Options};
use crate::{MapError, MirrorRing};

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
/// # Ok::<(), bufmirror::MapError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Builder {
    capacity: Option<usize>,
    options: Options,
}

impl Builder {
    /// Returns the defaults: ordinary pages that come when they are touched, and that forked
    /// processes share.
    #[must_use]
    pub const fn new() -> Self {
        let options = Options { huge_pages: false, populate: false, dont_fork: false };
        Self { capacity: None, options }
    }

    /// Sets the least number of bytes that the ring holds. Over a given region the default is half
    /// of it.
    #[must_use]
    pub const fn capacity(mut self, bytes: usize) -> Self {
        self.capacity = Some(bytes);
        self
    }

    /// Sets whether to use huge pages where the system has some to give. The capacity is then a
    /// multiple of 2 MiB, with huge pages and without.
    ///
    /// On Linux: those that the administrator has set aside (`vm.nr_hugepages`); else ordinary
    /// pages that the kernel is asked to merge, which it does where `shmem_enabled` of transparent
    /// huge pages lets it. Elsewhere ordinary pages.
    #[must_use]
    pub const fn huge_pages(mut self, huge_pages: bool) -> Self {
        self.options.huge_pages = huge_pages;
        self
    }

    /// Sets whether to fault all pages in now, so that no later access does. It matters for mapped
    /// rings only.
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
        self.options.populate = populate;
        self
    }

    /// Sets whether to leave the ring's memory out of processes that are forked off
    /// (`MADV_DONTFORK`, Linux only).
    ///
    /// A child would otherwise share the pages, not have a copy of them; either way it must not
    /// touch the ring. It matters for mapped rings only.
    #[must_use]
    pub const fn dont_fork(mut self, dont_fork: bool) -> Self {
        self.options.dont_fork = dont_fork;
        self
    }

    /// Builds the ring, mapped twice where the system can, else on the heap.
    ///
    /// # Errors
    ///
    /// [`MapError::Empty`] without a capacity or with one of 0, and as [`MirrorRing::new`].
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
    pub fn build(self) -> Result<MirrorRing, MapError> {
        Mirror::new(self.capacity.unwrap_or(0), self.options).map(MirrorRing::over)
    }

    /// Builds the ends of a channel over such a ring; see [`channel`](fn@crate::channel).
    ///
    /// # Errors
    ///
    /// As [`build`](Self::build).
    #[cfg(feature = "std")]
    pub fn channel(self) -> Result<(crate::Producer, crate::Consumer), MapError> {
        Mirror::new(self.capacity.unwrap_or(0), self.options).map(crate::channel::over)
    }

    /// The memory alone, of a multiple of `granule` bytes where nothing is mapped; pages are a
    /// multiple of all that is asked for.
    #[cfg(feature = "std")]
    pub(crate) fn mirror(self, granule: usize) -> Result<Mirror, MapError> {
        let requested = self.capacity.unwrap_or(0);
        let bytes = bufcore::size::align_up(requested, granule).ok_or(MapError::TooLarge { requested })?;
        Mirror::new(bytes, self.options)
    }

    /// Builds the ring over a region of the caller's, which holds its bytes twice: nothing is
    /// mapped, see [`MirrorRing::is_mapped`]. It needs no allocator.
    ///
    /// ```
    /// use bufmirror::{Builder, bufcore::Region};
    ///
    /// # fn memory() -> &'static mut [u8] { Box::leak(vec![0; 2000].into()) }
    /// let region = Region::from_static(memory()); // a `static_cell`, a linker section, …
    /// let mut ring = Builder::new().build_in(region).map_err(|refused| refused.error)?;
    /// assert_eq!(ring.capacity(), 1000);
    /// ring.put(b"hello").unwrap();
    /// # Ok::<(), bufmirror::MapError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`MapError::Empty`], [`MapError::TooLarge`], [`MapError::RegionTooSmall`]; the region comes
    /// back in the error.
    pub fn build_in(self, region: Region) -> Result<MirrorRing, BuildInError> {
        match Mirror::over(region, self.capacity) {
            Ok(mirror) => Ok(MirrorRing::over(mirror)),
            Err((error, region)) => Err(BuildInError { error, region }),
        }
    }

    /// Builds the ring over memory that is the caller's for ever. It needs no allocator.
    ///
    /// # Errors
    ///
    /// As [`build_in`](Self::build_in).
    ///
    /// ```
    /// # #[cfg(feature = "alloc")] {
    /// use bufmirror::MirrorRing;
    ///
    /// let memory: &'static mut [u8] = Box::leak(vec![0; 8192].into()); // or a `static`, taken once
    /// let ring = MirrorRing::builder().build_static(memory)?;
    /// assert!(!ring.is_mapped() && ring.capacity() <= 4096);
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn build_static(self, memory: &'static mut [u8]) -> Result<MirrorRing, MapError> {
        self.build_in(Region::from_static(memory)).map_err(|refused| refused.error)
    }
}

/// A ring that could not be built, with the region that was given for it.
pub struct BuildInError {
    /// Why.
    pub error: MapError,
    /// The region, unchanged.
    pub region: Region,
}

impl fmt::Debug for BuildInError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BuildInError").field("error", &self.error).field("region", &self.region).finish()
    }
}

impl fmt::Display for BuildInError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl core::error::Error for BuildInError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        core::error::Error::source(&self.error)
    }
}

impl From<BuildInError> for MapError {
    fn from(refused: BuildInError) -> Self {
        refused.error
    }
}
