//! One file in memory, mapped twice in a row.
//!
//! 1. `memory_file`: a file that has no name and only memory behind it; `set_len` gives it its
//!    size.
//! 2. `reserve`: addresses for both mappings at once, which nothing can be read or written through,
//!    so that no other thread's mapping comes to lie in between.
//! 3. `map_shared`, twice: the file over either half of the reservation.
//! 4. The file is closed: the mappings keep it.
//!
//! A step that fails undoes what was done before, by the drops of the file and of the [`Span`].
//!
//! When `mmap` with `MAP_FIXED` fails, POSIX lets it have unmapped the range, and another thread
//! could map something there before the span is unmapped. Linux checks its limits before it
//! unmaps. After that only the file could refuse, where huge pages have to be reserved; so a
//! mapping elsewhere reserves them first.

mod calls;
#[cfg(any(target_os = "android", target_os = "linux"))]
#[path = "pages/linux.rs"]
mod system;
#[cfg(not(any(target_os = "android", target_os = "linux")))]
#[path = "pages/unix.rs"]
mod system;
#[cfg(all(test, target_os = "linux"))]
mod tests;

use core::ptr::NonNull;
use std::os::fd::OwnedFd;

use bufcore::size;

use self::calls::{Calls, Kernel};
use super::Options;
use crate::MapError;

/// The size of huge pages that is asked for; where the system has another one only, it refuses, and
/// ordinary pages do.
const HUGE_PAGE_BYTES: usize = 2 << 20;

/// A file's pages, mapped twice in a row.
pub(super) struct Pages<C: Calls = Kernel> {
    /// Both mappings: twice the capacity.
    span: Span<C>,
}

/// Maps at least `bytes`, which are not 0. Never without a result here; where nothing can be mapped
/// there is none.
pub(super) fn map(bytes: usize, options: Options) -> Result<Option<Pages>, MapError> {
    map_by(Kernel, bytes, options).map(Some)
}

/// Maps as [`map`] does, by other means than the kernel's, for tests.
fn map_by<C: Calls>(calls: C, bytes: usize, options: Options) -> Result<Pages<C>, MapError> {
    let page = calls.page_bytes()?;
    // The same with and without huge pages to give, so that a ring's capacity does not depend on
    // the system's mood.
    let granule = if options.huge_pages { page.max(HUGE_PAGE_BYTES) } else { page };
    let too_large = MapError::TooLarge { requested: bytes };
    let capacity = size::align_up(bytes, granule).ok_or(too_large)?;
    // With what is reserved beyond the two halves to align them.
    let reserved = capacity.checked_mul(2).and_then(|span| span.checked_add(granule)).ok_or(too_large)?;
    if reserved > size::MAX_BYTES {
        return Err(too_large);
    }
    let shape = Shape { page, granule, capacity };
    if options.huge_pages {
        // Refused where the administrator has set none aside, or they are all in use.
        if let Ok(pages) = Pages::new(calls, shape, true, options) {
            return Ok(pages);
        }
    }
    Pages::new(calls, shape, false, options)
}

/// Maps `capacity` bytes of `file`, from `offset` on: whole pages both, and the file has them.
#[cfg(all(target_os = "linux", target_pointer_width = "64", not(any(loom, shuttle))))]
pub(super) fn map_file(file: &OwnedFd, offset: usize, capacity: usize) -> Result<Pages, MapError> {
    let page = Kernel.page_bytes()?;
    let shape = Shape { page, granule: page, capacity };
    Pages::of_file(Kernel, shape, false, Options::default(), file, offset)
}

/// Sizes in bytes: of a page, of what the halves are aligned to and are a multiple of, and of one
/// half.
#[derive(Debug, Clone, Copy)]
struct Shape {
    page: usize,
    granule: usize,
    capacity: usize,
}

impl<C: Calls> Pages<C> {
    fn new(calls: C, shape: Shape, huge: bool, options: Options) -> Result<Self, MapError> {
        let Shape { capacity, .. } = shape;
        let file = calls.memory_file(huge)?;
        calls.set_len(&file, capacity)?;
        if huge {
            // Huge pages are set aside for a file when it is first mapped, which is what fails when
            // there are none. Done here, so that it cannot fail over the reservation; they stay set
            // aside when the mapping goes.
            let probe = Span { calls, base: calls.map_anywhere(&file, capacity)?, bytes: capacity };
            drop(probe);
        }
        Self::of_file(calls, shape, huge, options, &file, 0)
    }

    /// Maps the part of `file` from `offset` on, twice.
    fn of_file(
        calls: C,
        shape: Shape,
        huge: bool,
        options: Options,
        file: &OwnedFd,
        offset: usize,
    ) -> Result<Self, MapError> {
        let Shape { page, granule, capacity } = shape;
        let span = Span::reserve(calls, 2 * capacity, page, granule)?;
        for base in [span.base, span.second_half()] {
            // SAFETY: a half of the reservation, which is this function's alone and through which
            // nothing was ever lent.
            unsafe { calls.map_shared(base, capacity, file, offset) }?;
        }
        if options.huge_pages && !huge {
            // A hint: most kernels have huge pages for files in memory turned off.
            let _ = calls.advise_huge(span.base, span.bytes);
        }
        if options.dont_fork {
            calls.dont_fork(span.base, span.bytes)?;
        }
        if options.populate {
            span.touch(page);
        }
        Ok(Self { span })
    }

    /// Returns the first byte of the first mapping.
    pub(super) fn base(&self) -> NonNull<u8> {
        self.span.base
    }

    /// Returns the bytes of one mapping.
    pub(super) fn capacity(&self) -> usize {
        self.span.bytes / 2
    }
}

/// Addresses that are ours; given back, with whatever is mapped there, when it drops.
struct Span<C: Calls> {
    calls: C,
    base: NonNull<u8>,
    /// A multiple of the page size, at least one.
    bytes: usize,
}

impl<C: Calls> Span<C> {
    /// Reserves `bytes` from a multiple of `granule` on.
    fn reserve(calls: C, bytes: usize, page: usize, granule: usize) -> Result<Self, MapError> {
        // The system aligns to pages.
        let extra = granule - page;
        let base = calls.reserve(bytes + extra)?;
        let mut span = Self { calls, base, bytes: bytes + extra };
        let front = base.addr().get().wrapping_neg() & (granule - 1);
        span.cut_front(front)?;
        span.cut_back(extra - front)?;
        Ok(span)
    }

    fn cut_front(&mut self, bytes: usize) -> Result<(), MapError> {
        if bytes != 0 {
            // SAFETY: the reservation's own, and nothing is mapped or lent there.
            unsafe { self.calls.unmap(self.base, bytes) }?;
            // SAFETY: `bytes` is less than the alignment, of which the reservation has more.
            self.base = unsafe { self.base.add(bytes) };
            self.bytes -= bytes;
        }
        Ok(())
    }

    fn cut_back(&mut self, bytes: usize) -> Result<(), MapError> {
        if bytes != 0 {
            // SAFETY: `bytes` is less than the alignment, of which the reservation has more.
            let from = unsafe { self.base.add(self.bytes - bytes) };
            // SAFETY: the reservation's own, and nothing is mapped or lent there.
            unsafe { self.calls.unmap(from, bytes) }?;
            self.bytes -= bytes;
        }
        Ok(())
    }

    /// Returns where the second mapping starts.
    fn second_half(&self) -> NonNull<u8> {
        // SAFETY: half way into the span.
        unsafe { self.base.add(self.bytes / 2) }
    }

    /// Writes to every page, so that no later access has to wait for it. Only for spans that are
    /// all mapped and all zero.
    fn touch(&self, page: usize) {
        for at in (0..self.bytes).step_by(page) {
            // SAFETY: within the span.
            let byte = unsafe { self.base.add(at) };
            // SAFETY: mapped for reading and writing, and not lent yet; volatile so that the store
            // of zero over zero stays.
            unsafe { byte.write_volatile(0) }
        }
    }
}

impl<C: Calls> Drop for Span<C> {
    fn drop(&mut self) {
        // SAFETY: the span's own; what was lent from it is gone, or was never lent.
        let unmapped = unsafe { self.calls.unmap(self.base, self.bytes) };
        // Refused only where a reservation had become one mapping with its neighbour, and the
        // process has as many as it may: then the addresses stay reserved, which nobody can do
        // anything about.
        let _ = unmapped;
    }
}
