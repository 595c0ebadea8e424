//! Pages of a region that go back to the system while the region is in use.
//!
//! The call is `madvise`. `MADV_FREE` comes first: the kernel takes it for private anonymous memory
//! in ordinary pages that nobody has locked, and refuses it for all else. So what a region does not
//! know of its memory, such as where the program's allocator has it from, the kernel tells.
//! `MADV_DONTNEED` then takes the pages at once, and what is there afterwards is zero.
//!
//! - The range is cut down to whole pages within the region, in the system's unit: `madvise`
//!   rounds lengths up.
//! - After `MADV_FREE` alone a page may turn to zeros at any later moment, which no safe reader
//!   may see. When the second call is refused, one store to each page ends that state.
//! - Memory whose pages a device or another process may have (of a caller, of a provider,
//!   populated, locked, or of reserved huge pages) says no, unless its owner says otherwise.

use core::ops::Range;

use crate::Region;

impl Region {
    /// The size from which a pool returns memory that it cannot keep to the system, with
    /// [`free_to_system`](Self::free_to_system). Smaller memory is freed to the allocator alone.
    ///
    /// It is the size from which the `malloc` of glibc maps memory (`M_MMAP_THRESHOLD`). The page
    /// faults of the next use take about as long as zeroing the memory.
    pub const LARGE_BYTES: usize = 128 << 10;

    /// Returns whether pages of the region may be returned to the system while the region is in
    /// use.
    ///
    /// They may if the memory is from the global allocator or from `Region::mapped`, or if its
    /// [`MemoryProvider`](crate::MemoryProvider) allows it. They may not if the memory is the
    /// caller's, nor if the mapping is populated, locked in memory, or of reserved huge pages.
    ///
    /// It is always `false` without the feature `pages`, and on systems other than Linux.
    ///
    /// ```
    /// use bufcore::Region;
    ///
    /// # fn memory() -> &'static mut [u8] { Box::leak(vec![0; 4096].into()) }
    /// assert!(!Region::from_static(memory()).returns_pages()); // it may be anything
    /// # #[cfg(all(feature = "pages", target_os = "linux"))]
    /// assert!(Region::heap(1 << 20, 64)?.returns_pages());
    /// # Ok::<(), bufcore::RegionError>(())
    /// ```
    #[must_use]
    pub fn returns_pages(&self) -> bool {
        self.returned_unit() != 0
    }

    /// Returns the whole pages within this address range; there may be none.
    ///
    /// ```
    /// # #[cfg(feature = "alloc")] {
    /// use bufcore::Region;
    ///
    /// let region = Region::heap(1 << 20, 64)?;
    /// let start = region.as_ptr().addr().get();
    /// let pages = region.whole_pages(start + 1..start + region.len());
    /// assert!(pages.is_empty() || pages.start > start && pages.end <= start + region.len());
    /// assert!(region.whole_pages(start..start + 64).is_empty());
    /// # }
    /// # Ok::<(), bufcore::RegionError>(())
    /// ```
    #[must_use]
    pub fn whole_pages(&self, addresses: Range<usize>) -> Range<usize> {
        let (start, unit) = (self.as_ptr().addr().get(), self.returned_unit());
        let (from, to) = (addresses.start.max(start), addresses.end.min(start + self.len()));
        if unit == 0 || from >= to {
            return start..start;
        }
        let Some(first) = from.checked_next_multiple_of(unit) else { return start..start };
        let end = to / unit * unit;
        if first < end { first..end } else { start..start }
    }

    /// Returns the [whole pages](Self::whole_pages) within this address range to the system. The
    /// result is their number of bytes. The result is 0 if there are none, or if the system
    /// refuses.
    ///
    /// Contents: the returned pages are zero at their next use. If the system refuses, each byte is
    /// unchanged, or zero.
    ///
    /// Cost: two system calls, which visit each page. The next use of a page is a page fault.
    ///
    /// # Safety
    ///
    /// No other code uses these bytes during the call, as for the owner of a buffer.
    ///
    /// ```
    /// # #[cfg(feature = "alloc")] {
    /// use bufcore::Region;
    ///
    /// let region = Region::heap(1 << 20, 64)?;
    /// // SAFETY: the region is at hand, so it can be written to.
    /// unsafe { region.as_ptr().write_bytes(1, region.len()) };
    /// let start = region.as_ptr().addr().get();
    /// // SAFETY: no other code uses the region.
    /// let bytes = unsafe { region.return_pages(start..start + region.len()) };
    /// # #[cfg(all(feature = "pages", target_os = "linux"))]
    /// assert!(bytes > 1 << 19);
    /// # }
    /// # Ok::<(), bufcore::RegionError>(())
    /// ```
    pub unsafe fn return_pages(&self, addresses: Range<usize>) -> usize {
        let pages = self.whole_pages(addresses);
        if pages.is_empty() {
            return 0;
        }
        let start = self.as_ptr().as_ptr().with_addr(pages.start);
        // SAFETY: whole pages within the region, in the unit that is given back; the caller has
        // them to itself.
        if unsafe { system::take_back(start, pages.len()) } { pages.len() } else { 0 }
    }

    /// Returns the [whole pages](Self::whole_pages) to the system, then frees the memory.
    ///
    /// An allocator may keep freed memory for later requests. For memory that was idle for a while,
    /// this ensures that other processes can use it. A mapping is unmapped, which has the same
    /// effect.
    ///
    /// Cost: two system calls for a region with a whole page, and a page fault for each page when
    /// the allocator uses it again. It is therefore for regions of several pages.
    ///
    /// ```
    /// # #[cfg(feature = "alloc")] {
    /// use bufcore::Region;
    ///
    /// let region = Region::heap(1 << 20, 64)?;
    /// region.free_to_system();
    /// # }
    /// # Ok::<(), bufcore::RegionError>(())
    /// ```
    pub fn free_to_system(self) {
        if self.is_mapped() {
            return;
        }
        let start = self.as_ptr().addr().get();
        // SAFETY: nobody else has the region, and nobody reads it again.
        unsafe { self.return_pages(start..start + self.len()) };
    }

    /// Returns the bytes of what goes back as one, a power of two, or 0 where nothing may go back.
    fn returned_unit(&self) -> usize {
        self.pages().map_or(0, |least| match system::page_bytes() {
            0 => 0,
            page => page.max(least),
        })
    }
}

#[cfg(all(feature = "pages", target_os = "linux", not(miri)))]
mod system {
    /// Asks the system for the bytes of an ordinary page, a power of two. Advice for less than a
    /// page is taken to be for all of it.
    pub(super) fn page_bytes() -> usize {
        // SAFETY: it takes a number, and touches none of our memory.
        let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
        usize::try_from(bytes).ok().filter(|bytes| bytes.is_power_of_two()).unwrap_or(0)
    }

    /// Lets the system take pages back, if that is private anonymous memory.
    ///
    /// # Safety
    ///
    /// They are whole pages, and the caller's own.
    pub(super) unsafe fn take_back(start: *mut u8, bytes: usize) -> bool {
        // SAFETY: the pages are the caller's own, who uses nothing of what is in them.
        let is_free = unsafe { libc::madvise(start.cast(), bytes, libc::MADV_FREE) } == 0;
        // SAFETY: likewise, and the kernel was just asked what kind they are of.
        if is_free && unsafe { libc::madvise(start.cast(), bytes, libc::MADV_DONTNEED) } == 0 {
            return true;
        }
        // Of several kinds the first may be free to go by now, which at some later moment would
        // turn what is in them to zeros. A store ends that.
        for at in (0..bytes).step_by(page_bytes()) {
            // SAFETY: within the pages.
            let byte = unsafe { start.add(at) };
            // SAFETY: initialised, and the caller's own.
            let same = unsafe { byte.read_volatile() };
            // SAFETY: likewise.
            unsafe { byte.write_volatile(same) };
        }
        false
    }
}

#[cfg(not(all(feature = "pages", target_os = "linux", not(miri))))]
mod system {
    /// Returns 0: no pages go back.
    pub(super) fn page_bytes() -> usize {
        0
    }

    /// Refuses.
    ///
    /// # Safety
    ///
    /// None.
    pub(super) unsafe fn take_back(_: *mut u8, _: usize) -> bool {
        false
    }
}
