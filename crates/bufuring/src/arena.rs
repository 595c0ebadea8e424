//! The memory that pools share and the kernel knows; see [`Arena`].

use core::alloc::Layout;
use core::fmt;
use core::ops::Deref;
use core::ptr::NonNull;

use bufcore::{HugePages, MapOptions, MemoryProvider, Provided, Region, RegionError, SharedRegion};

/// Holds one mapped region of which several pools use parts.
///
/// Clones share the region. It is unmapped when the last clone, the last part and the last buffer
/// are dropped.
///
/// It is a [`MemoryProvider`], so growing pools (`bufshard`, `bufbump`) allocate from it with
/// `build_from(Arc::new(arena.clone()))`.
///
/// Threads: any number at the same time.
///
/// ```
/// use bufcore::{HugePages, MapOptions, NoFallback};
/// use bufuring::Arena;
///
/// let options = MapOptions::new().huge_pages(HugePages::Advise).populate(true).lock(true);
/// let arena = Arena::mapped(8 << 20, options)?;
/// if let Some(refused) = arena.refused() {
///     println!("{refused}: the arena has {}", arena.granted()); // ordinary memory will do
/// }
/// // Two pools in one arena.
/// let pages = bufslot::Builder::new().alignment(4096).build_in(arena.part(4 << 20, 4096)?, NoFallback)?;
/// let ring = bufring::Builder::new().build_in(arena.part(1 << 20, 64)?)?;
/// assert!(pages.capacity() > 3 << 20 && ring.is_idle());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Arena {
    shared: SharedRegion,
    granted: MapOptions,
    refused: Option<RegionError>,
}

impl Arena {
    /// Maps an arena of at least `len` bytes, rounded up to whole pages.
    ///
    /// Options that the system refuses are dropped: first the lock, then reserved huge pages, then
    /// both. [`refused`](Self::refused) returns the refusal.
    ///
    /// Contents: zero.
    /// Cost: a mapping; with `populate`, each page is touched.
    ///
    /// # Errors
    ///
    /// - [`RegionError::Empty`]: `len` is 0.
    /// - [`RegionError::TooLarge`]: no mapping can have this size.
    /// - [`RegionError::Refused`]: the system refuses even an ordinary mapping of this size.
    ///
    /// # Panics
    ///
    /// Never.
    ///
    /// ```
    /// use bufcore::MapOptions;
    /// use bufuring::Arena;
    ///
    /// let arena = Arena::mapped(100_000, MapOptions::new())?;
    /// assert_eq!((arena.len(), arena.refused()), (25 * 4096, None));
    /// # Ok::<(), bufcore::RegionError>(())
    /// ```
    pub fn mapped(len: usize, options: MapOptions) -> Result<Self, RegionError> {
        let mut refused = None;
        for granted in Self::degrees(options) {
            match Region::mapped(len, granted) {
                Ok(region) => return Ok(Self { shared: SharedRegion::new(region), granted, refused }),
                Err(error @ RegionError::Refused { .. }) => {
                    refused.get_or_insert(error);
                }
                Err(error) => return Err(error),
            }
        }
        Err(refused.unwrap_or(RegionError::OutOfMemory { requested: len }))
    }

    /// Makes an arena of an existing region.
    ///
    /// ```
    /// use bufcore::Region;
    /// use bufuring::Arena;
    ///
    /// let arena = Arena::from_region(Region::heap(1 << 20, 4096)?);
    /// assert_eq!(arena.spare_bytes(), 1 << 20);
    /// # Ok::<(), bufcore::RegionError>(())
    /// ```
    #[must_use]
    pub fn from_region(region: Region) -> Self {
        Self { shared: SharedRegion::new(region), granted: MapOptions::new(), refused: None }
    }

    /// What to ask the system for, from all of `options` down to ordinary memory.
    fn degrees(options: MapOptions) -> Vec<MapOptions> {
        let advised = match options == options.huge_pages(HugePages::Require) {
            true => options.huge_pages(HugePages::Advise),
            false => options,
        };
        let mut degrees = vec![options, options.lock(false), advised, advised.lock(false)];
        degrees.dedup();
        degrees
    }

    /// Returns the options of the mapping, which may be fewer than requested.
    #[must_use]
    pub fn granted(&self) -> MapOptions {
        self.granted
    }

    /// Returns the first call that the system refused, if any.
    #[must_use]
    pub fn refused(&self) -> Option<RegionError> {
        self.refused
    }
}

/// Pools use parts of the shared region.
impl Deref for Arena {
    type Target = SharedRegion;

    fn deref(&self) -> &SharedRegion {
        &self.shared
    }
}

impl fmt::Debug for Arena {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Arena")
            .field("len", &self.len())
            .field("granted", &format_args!("{}", self.granted))
            .field("refused", &self.refused)
            .finish_non_exhaustive()
    }
}

// SAFETY: as the shared region, which every clone of this shares.
unsafe impl MemoryProvider for Arena {
    fn allocate(&self, layout: Layout) -> Result<Provided, RegionError> {
        self.shared.allocate(layout)
    }

    unsafe fn deallocate(&self, start: NonNull<u8>, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { self.shared.deallocate(start, layout) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_left_out_one_by_one() {
        let all = MapOptions::new().huge_pages(HugePages::Require).lock(true);
        let texts: Vec<_> = Arena::degrees(all).iter().map(ToString::to_string).collect();
        assert_eq!(texts, ["require+lock", "require", "advise+lock", "advise"]);
        assert_eq!(Arena::degrees(MapOptions::new()).len(), 1);
        assert_eq!(Arena::degrees(MapOptions::new().lock(true)).len(), 4);
    }
}
