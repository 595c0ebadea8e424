//! One file in memory, mapped twice in a row.
//!
//! 1. `memory_file`: a file that has no name and only memory behind it; `set_len` gives it its
//!    size.
//! 2. `reserve`: addresses for both mappings at once, which nothing can be read or written through,
//!    so that no other thread's mapping comes to lie in between.
//! 3. `map_shared`, twice: the file over either half of the reservation.
//! 4. The file is closed: the mappings keep it.
//!
//! A step that fails undoes what was done before, by the drops of the file and of [`Pages`].
//!
//! When `mmap` with `MAP_FIXED` fails, POSIX lets it have unmapped the range, and another thread
//! could map something there before the pages are unmapped. Linux checks its limits before it
//! unmaps.

pub(crate) mod calls;
#[cfg(any(target_os = "android", target_os = "linux"))]
#[path = "linux.rs"]
mod system;
#[cfg(not(any(target_os = "android", target_os = "linux")))]
#[path = "unix.rs"]
mod system;
#[cfg(all(test, target_os = "linux"))]
mod tests;

use core::ptr::NonNull;
use std::os::fd::OwnedFd;

use bufcore::RegionError;

#[cfg(not(all(test, target_os = "linux")))]
use self::calls::{map_shared, memory_file, page_bytes, reserve, set_len, unmap};
#[cfg(all(test, target_os = "linux"))]
use self::tests::calls::{map_shared, memory_file, page_bytes, reserve, set_len, unmap};
use super::whole_pages;

/// A file's pages, mapped once or twice in a row.
pub(crate) struct Pages {
    base: NonNull<u8>,
    /// Of all mappings together.
    bytes: usize,
}

/// Maps at least `bytes`, which are not 0, twice. Never without a result here; where nothing can be
/// mapped there is none.
pub(super) fn map(bytes: usize) -> Result<Option<Pages>, RegionError> {
    let capacity = whole_pages(bytes, page_bytes()?)?;
    let file = memory_file()?;
    set_len(&file, capacity)?;
    Pages::of_file(&file, 0, capacity, 2).map(Some)
}

impl Pages {
    /// Maps `bytes` of `file`, from `offset` on, `times` times in a row: whole pages both, and the
    /// file has them.
    pub(crate) fn of_file(
        file: &OwnedFd,
        offset: usize,
        bytes: usize,
        times: usize,
    ) -> Result<Self, RegionError> {
        let base = reserve(times * bytes)?;
        let pages = Self { base, bytes: times * bytes };
        for start in (0..pages.bytes).step_by(bytes) {
            // SAFETY: within the reservation.
            let at = unsafe { base.add(start) };
            // SAFETY: a part of the reservation, which is this function's alone and through which
            // nothing was ever lent.
            unsafe { map_shared(at, bytes, file, offset) }?;
        }
        Ok(pages)
    }

    pub(crate) fn base(&self) -> NonNull<u8> {
        self.base
    }

    /// Returns the bytes of one of two mappings.
    pub(super) fn capacity(&self) -> usize {
        self.bytes / 2
    }
}

// SAFETY: the mappings are this value's, and it gives out their address only.
unsafe impl Send for Pages {}
// SAFETY: as above.
unsafe impl Sync for Pages {}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: this value's own; what was lent from it is gone, or was never lent.
        let unmapped = unsafe { unmap(self.base, self.bytes) };
        // Refused only where a reservation had become one mapping with its neighbour, and the
        // process has as many as it may: then the addresses stay reserved.
        let _ = unmapped;
    }
}
