//! Backing memory: the only place of the workspace that allocates, maps or frees raw bytes for
//! pools.

use core::fmt;
use core::ptr::NonNull;

#[cfg(feature = "alloc")]
use crate::RegionError;
#[cfg(feature = "alloc")]
use core::alloc::Layout;

/// Owns one contiguous piece of initialised bytes, exclusively. A strategy carves its buffers from
/// it.
///
/// Contents: zero when it comes from the heap or a mapping; as found when it is the caller's.
///
/// Ownership: dropping it gives the memory back, on any thread. A `&'static mut` region is never
/// given back.
///
/// ```
/// # #[cfg(feature = "alloc")] {
/// let region = bufcore::Region::heap(1 << 20, 64)?;
/// assert_eq!((region.len(), region.as_ptr().addr().get() % 64), (1 << 20, 0));
/// # }
/// # Ok::<(), bufcore::RegionError>(())
/// ```
pub struct Region {
    /// `len` bytes from here are valid, initialised and ours until `backing` is dropped (I1).
    ptr: NonNull<u8>,
    /// At least one, at most `isize::MAX`.
    len: usize,
    backing: Backing,
}

enum Backing {
    /// The caller's for ever: nothing to give back.
    Static,
    /// From the global allocator: the start of the allocation, at most an alignment before the
    /// region's, and its layout.
    #[cfg(feature = "alloc")]
    Heap(NonNull<u8>, Layout),
    /// From the operating system; unmapped, and with that unlocked, when it drops.
    #[cfg(feature = "mmap")]
    Mapped(#[allow(dead_code, reason = "kept for its Drop")] memmap2::MmapMut),
}

// SAFETY: a region owns its bytes exclusively (I1), as a `Box<[u8]>` does.
unsafe impl Send for Region {}
// SAFETY: a shared region gives out its address and its length only.
unsafe impl Sync for Region {}

impl Region {
    /// Makes a region over memory of the caller's. It needs no allocator.
    ///
    /// Slots and bookkeeping live in it for ever, so the exclusive borrow is for ever too. A slice
    /// of no bytes makes a region that every pool refuses.
    ///
    /// ```
    /// # #[cfg(feature = "alloc")] {
    /// use bufcore::Region;
    ///
    /// // Or a `static`, taken once.
    /// let memory: &'static mut [u8] = Box::leak(vec![0; 4096].into());
    /// let region = Region::from_static(memory);
    /// assert!(region.len() == 4096 && region.is_static());
    /// # }
    /// # Ok::<(), bufcore::Error>(())
    /// ```
    #[must_use]
    pub fn from_static(bytes: &'static mut [u8]) -> Self {
        let len = bytes.len();
        Self { ptr: NonNull::from(bytes).cast(), len, backing: Backing::Static }
    }

    /// Allocates a zeroed region of `len` bytes from the global allocator, its start aligned to
    /// `alignment`.
    ///
    /// Cost: one allocation; the system hands out large ones zeroed already.
    ///
    /// # Errors
    ///
    /// - [`RegionError::Empty`]: `len` is 0.
    /// - [`RegionError::BadAlignment`]: `alignment` is no power of two.
    /// - [`RegionError::TooLarge`]: no region of this size can exist.
    /// - [`RegionError::OutOfMemory`]: the allocator refused.
    ///
    /// ```
    /// # #[cfg(feature = "alloc")] {
    /// use bufcore::Region;
    ///
    /// let region = Region::heap(64 << 10, 64)?;
    /// assert_eq!((region.len(), region.as_ptr().addr().get() % 64), (64 << 10, 0));
    /// # }
    /// # Ok::<(), bufcore::RegionError>(())
    /// ```
    #[cfg(feature = "alloc")]
    pub fn heap(len: usize, alignment: usize) -> Result<Self, RegionError> {
        if len == 0 {
            return Err(RegionError::Empty);
        }
        if !alignment.is_power_of_two() {
            return Err(RegionError::BadAlignment { alignment });
        }
        // Aligned here: asked for more than its usual alignment, an allocator has no zeroed memory
        // and writes all of it.
        let layout = len
            .checked_add(alignment - 1)
            .and_then(|bytes| Layout::from_size_align(bytes, 1).ok())
            .ok_or(RegionError::TooLarge { requested: len })?;
        // SAFETY: the layout is not of zero size.
        let start = unsafe { alloc::alloc::alloc_zeroed(layout) };
        let start = NonNull::new(start).ok_or(RegionError::OutOfMemory { requested: len })?;
        let skip = start.addr().get().wrapping_neg() & (alignment - 1);
        // SAFETY: `skip < alignment`, so `len` bytes are left behind it in the allocation.
        let ptr = unsafe { start.add(skip) };
        Ok(Self { ptr, len, backing: Backing::Heap(start, layout) })
    }

    /// Maps a zeroed region of at least `len` bytes from the operating system.
    ///
    /// Its length is `len` rounded up to whole pages, or whole huge pages where those were asked
    /// for.
    ///
    /// # Errors
    ///
    /// - [`RegionError::Empty`]: `len` is 0.
    /// - [`RegionError::TooLarge`]: no region of this size can exist.
    /// - [`RegionError::Refused`]: the system refused the mapping or, where asked for, its lock.
    ///   The error names the call. Nothing stays mapped.
    ///
    /// ```
    /// use bufcore::{MapOptions, Region};
    ///
    /// let region = Region::mapped(1 << 20, MapOptions::new().populate(true))?;
    /// assert!(region.len() >= 1 << 20);
    /// # Ok::<(), bufcore::RegionError>(())
    /// ```
    #[cfg(feature = "mmap")]
    pub fn mapped(len: usize, options: MapOptions) -> Result<Self, RegionError> {
        map::map(len, options)
    }

    /// Returns the number of bytes.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether the region has no bytes, as only a caller's slice can.
    ///
    /// ```
    /// use bufcore::Region;
    ///
    /// let region = Region::from_static(&mut []);
    /// assert!(region.is_empty() && region.is_static());
    /// ```
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the address of the first byte. Strategies build buffers from here, and keep them
    /// apart from each other.
    ///
    /// ```
    /// # #[cfg(feature = "alloc")] {
    /// use bufcore::Region;
    ///
    /// let region = Region::heap(4096, 64)?;
    /// // A strategy marks where its second slot of 1024 bytes starts.
    /// // SAFETY: 1024 bytes from the start is within the region.
    /// let second = unsafe { region.as_ptr().add(1024) };
    /// assert!(second.addr().get() % 64 == 0 && region.len() - 1024 >= 1024);
    /// # }
    /// # Ok::<(), bufcore::Error>(())
    /// ```
    #[inline]
    #[must_use]
    pub fn as_ptr(&self) -> NonNull<u8> {
        self.ptr
    }

    /// Returns whether the memory is the caller's for ever, so that dropping the region frees
    /// nothing.
    #[inline]
    #[must_use]
    pub fn is_static(&self) -> bool {
        matches!(self.backing, Backing::Static)
    }

    /// Rebuilds the region that [`heap`](Self::heap)`(len, 1)` returned and that was forgotten,
    /// from its address.
    ///
    /// It is for strategies that keep what they know of a block in the block itself.
    ///
    /// # Safety
    ///
    /// `start` and `len` are those of such a region, which is rebuilt once.
    ///
    /// ```
    /// # #[cfg(feature = "alloc")] {
    /// use std::mem::ManuallyDrop;
    ///
    /// use bufcore::Region;
    ///
    /// let region = ManuallyDrop::new(Region::heap(4096, 1)?);
    /// let (start, len) = (region.as_ptr(), region.len()); // in the block's header, say
    /// // SAFETY: of a region of `heap(len, 1)`, which is forgotten and rebuilt once.
    /// let region = unsafe { Region::from_forgotten_heap(start, len) };
    /// assert_eq!(region.len(), 4096); // freed when it drops
    /// # }
    /// # Ok::<(), bufcore::Error>(())
    /// ```
    #[cfg(feature = "alloc")]
    #[must_use]
    pub unsafe fn from_forgotten_heap(start: NonNull<u8>, len: usize) -> Self {
        // SAFETY: a region of this size was made, so the layout is right; its alignment was 1.
        let layout = unsafe { Layout::from_size_align_unchecked(len, 1) };
        Self { ptr: start, len, backing: Backing::Heap(start, layout) }
    }
}

impl fmt::Debug for Region {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let backing = match &self.backing {
            Backing::Static => "static",
            #[cfg(feature = "alloc")]
            Backing::Heap(..) => "heap",
            #[cfg(feature = "mmap")]
            Backing::Mapped(_) => "mapped",
        };
        f.debug_struct("Region").field("len", &self.len).field("backing", &backing).finish_non_exhaustive()
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        match &mut self.backing {
            Backing::Static => {}
            #[cfg(feature = "alloc")]
            Backing::Heap(start, layout) => {
                // SAFETY: `start` came from `alloc_zeroed` with this layout and is given back once,
                // here.
                unsafe { alloc::alloc::dealloc(start.as_ptr(), *layout) }
            }
            #[cfg(feature = "mmap")]
            Backing::Mapped(_) => {}
        }
    }
}

/// Chooses the pages that back a mapped region.
///
/// ```
/// use bufcore::{HugePages, MapOptions, Region, RegionError};
///
/// /// Maps huge pages, or ordinary ones where the administrator set none aside.
/// fn map(len: usize) -> Result<Region, RegionError> {
///     let options = MapOptions::new();
///     Region::mapped(len, options.huge_pages(HugePages::Require))
///         .or_else(|_| Region::mapped(len, options.huge_pages(HugePages::Advise)))
/// }
/// assert!(map(1 << 20)?.len() >= 1 << 20);
/// # Ok::<(), bufcore::RegionError>(())
/// ```
#[cfg(feature = "mmap")]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum HugePages {
    /// Ordinary pages.
    #[default]
    No,
    /// Ordinary pages that the kernel is asked to merge into huge ones (`madvise`). A hint: never
    /// fails.
    Advise,
    /// Huge pages set aside by the administrator (`MAP_HUGETLB`, 2 MiB); fails where there are
    /// none.
    Require,
}

/// Holds the options of a mapped region.
///
/// ```
/// # use bufcore::{HugePages, MapOptions};
/// let options = MapOptions::new().huge_pages(HugePages::Advise).populate(true);
/// # let _ = options;
/// ```
#[cfg(feature = "mmap")]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MapOptions {
    huge_pages: HugePages,
    populate: bool,
    lock: bool,
}

#[cfg(feature = "mmap")]
impl MapOptions {
    /// Returns the defaults: ordinary pages, faulted in on first touch, not locked.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets which pages to use.
    ///
    /// ```
    /// use bufcore::{HugePages, MapOptions, Region};
    ///
    /// // A hint to the kernel, which never fails. The length is rounded up to huge pages.
    /// let options = MapOptions::new().huge_pages(HugePages::Advise);
    /// assert_eq!(Region::mapped(3 << 20, options)?.len(), 4 << 20);
    /// # Ok::<(), bufcore::RegionError>(())
    /// ```
    #[must_use]
    pub fn huge_pages(mut self, huge_pages: HugePages) -> Self {
        self.huge_pages = huge_pages;
        self
    }

    /// Sets whether to fault all pages in now, so that no later touch does.
    ///
    /// ```
    /// use bufcore::{MapOptions, Region};
    ///
    /// // Every page is there before the first request comes.
    /// let region = Region::mapped(64 << 10, MapOptions::new().populate(true))?;
    /// assert_eq!(region.len(), 64 << 10);
    /// # Ok::<(), bufcore::RegionError>(())
    /// ```
    #[must_use]
    pub fn populate(mut self, populate: bool) -> Self {
        self.populate = populate;
        self
    }

    /// Sets whether to lock the pages in memory (`mlock`); they stay locked until the region is
    /// dropped.
    ///
    /// ```
    /// use bufcore::{MapOptions, Region, RegionError};
    ///
    /// // Keys must not reach the swap file. The system may refuse: its limit is small.
    /// match Region::mapped(4096, MapOptions::new().lock(true)) {
    ///     Ok(region) => assert_eq!(region.len(), 4096),
    ///     Err(refused) => assert!(matches!(refused, RegionError::Refused { call: "mlock", .. })),
    /// }
    /// ```
    #[must_use]
    pub fn lock(mut self, lock: bool) -> Self {
        self.lock = lock;
        self
    }
}

#[cfg(feature = "mmap")]
mod map {
    use core::ptr::NonNull;

    use super::{Backing, HugePages, MapOptions, Region, RegionError};
    use crate::size::{MAX_BYTES, align_up};

    const PAGE_BYTES: usize = 4096;
    const HUGE_PAGE_BYTES: usize = 2 << 20;

    pub(super) fn map(len: usize, options: MapOptions) -> Result<Region, RegionError> {
        if len == 0 {
            return Err(RegionError::Empty);
        }
        let page = if options.huge_pages == HugePages::No { PAGE_BYTES } else { HUGE_PAGE_BYTES };
        let bytes = align_up(len, page)
            .filter(|&bytes| bytes <= MAX_BYTES)
            .ok_or(RegionError::TooLarge { requested: len })?;
        let mut request = memmap2::MmapOptions::new();
        request.len(bytes);
        if options.huge_pages == HugePages::Require {
            request.huge(Some(HUGE_PAGE_BYTES.trailing_zeros() as u8));
        }
        // Populating before the advice would fault ordinary pages in.
        let populate_by_touch = options.populate && options.huge_pages == HugePages::Advise;
        if options.populate && !populate_by_touch {
            request.populate();
        }
        let mut mapping = request.map_anon().map_err(|error| refused("mmap", &error))?;
        #[cfg(target_os = "linux")]
        if options.huge_pages == HugePages::Advise {
            // A hint: a kernel built without huge pages refuses it, and ordinary pages do.
            let _ = mapping.advise(memmap2::Advice::HugePage);
        }
        if populate_by_touch {
            for page in mapping.chunks_mut(PAGE_BYTES) {
                // SAFETY: the first byte of a chunk is valid to write; volatile so that the store
                // of zero over zero stays.
                unsafe { page.as_mut_ptr().write_volatile(0) }
            }
        }
        #[cfg(unix)]
        if options.lock {
            mapping.lock().map_err(|error| refused("mlock", &error))?;
        }
        #[cfg(not(unix))]
        if options.lock {
            return Err(RegionError::Refused { call: "mlock", errno: 0 });
        }
        let ptr =
            NonNull::new(mapping.as_mut_ptr()).ok_or(RegionError::Refused { call: "mmap", errno: 0 })?;
        Ok(Region { ptr, len: bytes, backing: Backing::Mapped(mapping) })
    }

    fn refused(call: &'static str, error: &std::io::Error) -> RegionError {
        RegionError::Refused { call, errno: error.raw_os_error().unwrap_or(0) }
    }
}
