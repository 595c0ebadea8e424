//! Backing memory: the only place of the workspace that allocates, maps or frees raw bytes for
//! pools.

#[cfg(feature = "mmap")]
mod map;

use core::fmt;
use core::ptr::NonNull;

#[cfg(feature = "alloc")]
use crate::RegionError;
#[cfg(feature = "mmap")]
use crate::memory::map_options::MapOptions;
#[cfg(feature = "alloc")]
use crate::memory::provider::FromProvider;
#[cfg(feature = "alloc")]
use core::alloc::Layout;

/// Owns one contiguous piece of initialised bytes, exclusively. A strategy carves its buffers from
/// it.
///
/// Contents: zero if it is from the heap, a mapping or a [`MemoryProvider`](crate::MemoryProvider);
/// unchanged if it is the caller's.
///
/// Ownership: dropping it frees the memory, on any thread. A `&'static mut` region is never freed.
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
    /// Whether all bytes are zero since nobody has written to them: see
    /// [`mark_used`](Region::mark_used).
    #[cfg_attr(not(feature = "std"), allow(dead_code, reason = "for regions that are shared"))]
    is_fresh: bool,
    /// The least unit, as a power of two, in which pages of it may go back to the system.
    page_shift: Option<u8>,
    backing: Backing,
}

enum Backing {
    /// The caller's for ever: nothing to give back.
    Static,
    /// From the global allocator: the start of the allocation, at most an alignment before the
    /// region's, and its layout.
    #[cfg(feature = "alloc")]
    Heap(NonNull<u8>, Layout),
    /// From a provider of the program's, to which it goes back.
    #[cfg(feature = "alloc")]
    Provider(#[allow(dead_code, reason = "kept for its Drop")] FromProvider),
    /// From the operating system; unmapped, and with that unlocked, when it drops, or at least
    /// emptied.
    #[cfg(feature = "mmap")]
    Mapped(#[allow(dead_code, reason = "kept for its Drop")] map::Mapping),
}

// SAFETY: a region owns its bytes exclusively (I1), as a `Box<[u8]>` does; a provider is `Send` and
// `Sync`.
unsafe impl Send for Region {}
// SAFETY: a shared region gives out its address and its length only.
unsafe impl Sync for Region {}

impl Region {
    /// Makes a region over the caller's memory. It needs no allocator.
    ///
    /// The pool's buffers and bookkeeping stay in it, so the exclusive borrow is `'static`. A slice
    /// of no bytes makes a region that no pool can be built in.
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
        Self {
            ptr: NonNull::from(bytes).cast(),
            len,
            is_fresh: false,
            page_shift: None,
            backing: Backing::Static,
        }
    }

    /// Allocates a zeroed region of `len` bytes from the global allocator, its start aligned to
    /// `alignment`.
    ///
    /// Cost: one allocation; the system supplies large ones already zeroed.
    ///
    /// # Errors
    ///
    /// - [`RegionError::Empty`]: `len` is 0.
    /// - [`RegionError::BadAlignment`]: `alignment` is no power of two.
    /// - [`RegionError::TooLarge`]: no region of this size can exist.
    /// - [`RegionError::OutOfMemory`]: the allocator failed.
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
        Self::layout(len, alignment)?;
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
        Ok(Self { ptr, len, is_fresh: true, page_shift: Some(0), backing: Backing::Heap(start, layout) })
    }

    /// Allocates a zeroed region of exactly `len` bytes, whose start the allocator itself aligns to
    /// `alignment`.
    ///
    /// [`heap`](Self::heap) allocates `alignment - 1` bytes more instead. The cost depends on how
    /// the allocator aligns: nothing for its default alignment.
    ///
    /// Cost: one allocation. For an alignment over 16, most allocators zero all bytes by writing
    /// them, so this is for small regions then.
    ///
    /// # Errors
    ///
    /// As for [`heap`](Self::heap).
    ///
    /// ```
    /// # #[cfg(feature = "alloc")] {
    /// use bufcore::Region;
    ///
    /// let page = Region::heap_aligned(4096, 4096)?;
    /// assert_eq!((page.len(), page.as_ptr().addr().get() % 4096), (4096, 0));
    /// # }
    /// # Ok::<(), bufcore::RegionError>(())
    /// ```
    #[cfg(feature = "alloc")]
    pub fn heap_aligned(len: usize, alignment: usize) -> Result<Self, RegionError> {
        let layout = Self::layout(len, alignment)?;
        // SAFETY: the layout is not of zero size.
        let start = unsafe { alloc::alloc::alloc_zeroed(layout) };
        let ptr = NonNull::new(start).ok_or(RegionError::OutOfMemory { requested: len })?;
        Ok(Self { ptr, len, is_fresh: true, page_shift: Some(0), backing: Backing::Heap(ptr, layout) })
    }

    /// Returns the layout of a region that can exist.
    #[cfg(feature = "alloc")]
    pub(crate) fn layout(len: usize, alignment: usize) -> Result<Layout, RegionError> {
        if len == 0 {
            return Err(RegionError::Empty);
        }
        if !alignment.is_power_of_two() {
            return Err(RegionError::BadAlignment { alignment });
        }
        Layout::from_size_align(len, alignment).map_err(|_error| RegionError::TooLarge { requested: len })
    }

    /// Makes a region of memory that a provider keeps.
    ///
    /// # Safety
    ///
    /// `len` bytes from `ptr` are valid, zero, and nobody else's until `kept` is dropped.
    #[cfg(feature = "alloc")]
    pub(crate) unsafe fn of_provider(
        ptr: NonNull<u8>,
        len: usize,
        kept: FromProvider,
        returns_pages: bool,
    ) -> Self {
        Self {
            ptr,
            len,
            is_fresh: true,
            page_shift: returns_pages.then_some(0),
            backing: Backing::Provider(kept),
        }
    }

    /// Returns whether all bytes are zero since nobody has written to them.
    #[cfg(feature = "std")]
    pub(crate) fn is_fresh(&self) -> bool {
        self.is_fresh
    }

    /// Records that the region's bytes may have been written.
    ///
    /// A strategy calls this before it returns a region. Otherwise a
    /// [`SharedRegion`](crate::SharedRegion) would assume that new memory of the heap or of the
    /// system is still zero, and its parts would show the old bytes.
    ///
    /// ```
    /// # #[cfg(feature = "std")] {
    /// use bufcore::{Region, SharedRegion};
    ///
    /// let mut region = Region::heap(4096, 64)?;
    /// // SAFETY: the first byte of the region, which no other code uses.
    /// unsafe { region.as_ptr().write(7) };
    /// region.mark_used();
    /// let part = SharedRegion::new(region).part(4096, 64)?;
    /// // SAFETY: the first byte of the part, which is initialised.
    /// assert_eq!(unsafe { part.as_ptr().read() }, 0);
    /// # }
    /// # Ok::<(), bufcore::RegionError>(())
    /// ```
    pub fn mark_used(&mut self) {
        self.is_fresh = false;
    }

    /// Returns the least that may go back to the system as one, while the region is in use, or
    /// `None` where nothing may.
    pub(crate) fn pages(&self) -> Option<usize> {
        self.page_shift.map(|shift| 1 << shift)
    }

    /// Returns whether dropping the region gives its pages to the system, as they are.
    pub(crate) fn is_mapped(&self) -> bool {
        #[cfg(feature = "mmap")]
        return matches!(self.backing, Backing::Mapped(_));
        #[cfg(not(feature = "mmap"))]
        false
    }

    /// Maps a zeroed region of at least `len` bytes from the operating system.
    ///
    /// Its length is `len` rounded up to whole pages, or to whole huge pages if those are required.
    ///
    /// # Errors
    ///
    /// - [`RegionError::Empty`]: `len` is 0.
    /// - [`RegionError::TooLarge`]: no region of this size can exist.
    /// - [`RegionError::Refused`]: the system refused the mapping, or its lock if requested. The
    ///   error names the system call. Nothing remains mapped.
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

    /// Returns whether the region has no bytes, which only a caller's slice can be.
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
    /// disjoint. A strategy that has written to the bytes and returns the region calls
    /// [`mark_used`](Self::mark_used) first.
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

    /// Returns whether the memory is the caller's `'static` memory, so that dropping the region
    /// frees nothing.
    #[inline]
    #[must_use]
    pub fn is_static(&self) -> bool {
        matches!(self.backing, Backing::Static)
    }

    /// Rebuilds a region of [`heap_aligned`](Self::heap_aligned)`(len, alignment)` that was
    /// forgotten, from its address.
    ///
    /// It is for strategies that keep the description of a block in the block itself.
    ///
    /// # Safety
    ///
    /// `start`, `len` and `alignment` are those of such a region, which is rebuilt once.
    ///
    /// ```
    /// # #[cfg(feature = "alloc")] {
    /// use std::mem::ManuallyDrop;
    ///
    /// use bufcore::Region;
    ///
    /// let region = ManuallyDrop::new(Region::heap_aligned(4096, 16)?);
    /// let (start, len) = (region.as_ptr(), region.len()); // in the block's header, say
    /// // SAFETY: of a region of `heap_aligned(len, 16)`, which is forgotten and rebuilt once.
    /// let region = unsafe { Region::from_leaked(start, len, 16) };
    /// assert_eq!(region.len(), 4096); // freed when it drops
    /// # }
    /// # Ok::<(), bufcore::Error>(())
    /// ```
    #[cfg(feature = "alloc")]
    #[must_use]
    pub unsafe fn from_leaked(start: NonNull<u8>, len: usize, alignment: usize) -> Self {
        // SAFETY: a region of this size and alignment was made, so the layout is right.
        let layout = unsafe { Layout::from_size_align_unchecked(len, alignment) };
        Self { ptr: start, len, is_fresh: false, page_shift: Some(0), backing: Backing::Heap(start, layout) }
    }
}

impl fmt::Debug for Region {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let backing = match &self.backing {
            Backing::Static => "static",
            #[cfg(feature = "alloc")]
            Backing::Heap(..) => "heap",
            #[cfg(feature = "alloc")]
            Backing::Provider(_) => "provider",
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
            #[cfg(feature = "alloc")]
            Backing::Provider(_) => {}
            #[cfg(feature = "mmap")]
            Backing::Mapped(_) => {}
        }
    }
}
