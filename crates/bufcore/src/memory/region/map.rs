//! Regions that are mapped from the operating system.

use core::mem::ManuallyDrop;
use core::ptr::NonNull;

use super::{Backing, Region};
use crate::RegionError;
use crate::memory::map_options::{HUGE_PAGE_BYTES, HugePages, MapOptions, PAGE_BYTES};
use crate::size::{MAX_BYTES, align_up};

pub(super) fn map(len: usize, options: MapOptions) -> Result<Region, RegionError> {
    if len == 0 {
        return Err(RegionError::Empty);
    }
    let bytes = align_up(len, options.page_bytes())
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
    let ptr = NonNull::new(mapping.as_mut_ptr()).ok_or(RegionError::Refused { call: "mmap", errno: 0 })?;
    // What was asked to be there from the start stays: a huge page that went back to where the
    // administrator set it aside may be gone for good.
    let page_bytes = match options.huge_pages {
        _ if options.populate || options.lock => None,
        HugePages::Require => None,
        HugePages::Advise => Some(HUGE_PAGE_BYTES),
        HugePages::No => Some(PAGE_BYTES),
    };
    let page_shift = page_bytes.map(|bytes| bytes.trailing_zeros() as u8);
    let backing = Backing::Mapped(Mapping(ManuallyDrop::new(mapping)));
    Ok(Region { ptr, len: bytes, is_fresh: true, page_shift, backing })
}

/// A mapping that gives its memory back when it drops, in any case.
pub(super) struct Mapping(ManuallyDrop<memmap2::MmapMut>);

impl Drop for Mapping {
    #[cfg(target_os = "linux")]
    fn drop(&mut self) {
        let (start, len) = (self.0.as_mut_ptr().cast(), self.0.len());
        // SAFETY: all of the mapping, which is not used any more.
        if unsafe { libc::munmap(start, len) } == 0 {
            return;
        }
        // The system takes neighbours for one mapping. To unmap one in the middle makes two of it,
        // which is refused where there are `vm.max_map_count` already. Then the memory goes, and
        // the addresses stay.
        let _ = self.0.unlock();
        // SAFETY: as above; nobody reads what is in it.
        unsafe { libc::madvise(start, len, libc::MADV_DONTNEED) };
    }

    #[cfg(not(target_os = "linux"))]
    fn drop(&mut self) {
        // SAFETY: it is not used again.
        unsafe { ManuallyDrop::drop(&mut self.0) };
    }
}

fn refused(call: &'static str, error: &std::io::Error) -> RegionError {
    RegionError::Refused { call, errno: error.raw_os_error().unwrap_or(0) }
}
