//! Memory in which a byte has two addresses, `capacity` apart: mapped twice, or kept so by copying.
//!
//! ```text
//!              base                    base + capacity          base + 2 * capacity
//!  addresses   |  first mapping         |  second mapping        |
//!              |  a b c d e f g h       |  a b c d e f g h       |
//!  window                    ^─────────────────^  contiguous, and no byte twice
//! ```
//!
//! # Invariants
//!
//! - M1: `2 * capacity` bytes from `base` are valid, initialised, and this mirror's alone, until it
//!   is dropped.
//! - M2: mapped, the bytes at `i` and `capacity + i` are one byte. Copying, they are two, and
//!   [`Mirror::rebase`] makes the first what the second is.
//! - M3: `1 <= capacity`, and `2 * capacity <= isize::MAX`.

#[cfg_attr(all(feature = "std", not(miri), windows), path = "windows.rs")]
#[cfg_attr(
    not(all(
        feature = "std",
        not(miri),
        any(
            windows,
            target_os = "android",
            target_os = "dragonfly",
            target_os = "freebsd",
            target_os = "illumos",
            target_os = "linux",
            target_os = "macos",
            target_os = "netbsd",
            target_os = "openbsd",
            target_os = "solaris",
        )
    )),
    path = "no_pages.rs"
)]
pub(crate) mod pages;

use core::ptr::NonNull;

use bufcore::author::check_setting;
use bufcore::{BuildInError, ConfigError, Region, RegionError, size};

use pages::Pages;

/// Bytes of the smallest page that a system has.
#[cfg(feature = "alloc")]
const LEAST_PAGE_BYTES: usize = 4096;

/// The memory of one ring.
pub(crate) struct Mirror {
    base: NonNull<u8>,
    capacity: usize,
    backing: Backing,
}

/// Keeps the memory; gives it back when it drops.
enum Backing {
    // Never made where nothing can be mapped.
    #[allow(dead_code, reason = "kept for its Drop")]
    Pages(Pages),
    #[allow(dead_code, reason = "kept for its Drop")]
    Region(Region),
}

// SAFETY: a mirror owns its bytes exclusively (M1), as a `Box<[u8]>` does; nothing in it belongs to
// a thread.
unsafe impl Send for Mirror {}
// SAFETY: a shared mirror gives out its address, its length and its kind only.
unsafe impl Sync for Mirror {}

impl Mirror {
    /// Makes a mirror of at least `bytes`, mapped where the system can, else on the heap.
    #[cfg(feature = "alloc")]
    pub(crate) fn new(bytes: usize, populate: bool) -> Result<Self, ConfigError> {
        span_bytes(bytes)?;
        let Some(pages) = pages::map(bytes)? else { return Self::on_heap(bytes) };
        let mirror = Self::over_pages(pages);
        for at in (0..2 * mirror.capacity).step_by(LEAST_PAGE_BYTES).filter(|_| populate) {
            // SAFETY: within the memory (M1).
            let byte = unsafe { mirror.base.add(at) };
            // SAFETY: this mirror's alone (M1), and not lent yet; volatile so that the store of
            // zero over zero stays.
            unsafe { byte.write_volatile(0) }
        }
        Ok(mirror)
    }

    /// Makes a mirror over memory that is mapped twice.
    #[cfg(feature = "alloc")]
    pub(crate) fn over_pages(pages: Pages) -> Self {
        Self { base: pages.base(), capacity: pages.capacity(), backing: Backing::Pages(pages) }
    }

    /// Makes a copying mirror of `bytes`, on the heap.
    #[cfg(feature = "alloc")]
    pub(crate) fn on_heap(bytes: usize) -> Result<Self, ConfigError> {
        let region = Region::heap(span_bytes(bytes)?, size::CACHE_LINE_BYTES)?;
        Self::over(region, Some(bytes)).map_err(ConfigError::from)
    }

    /// Makes a copying mirror in `region`, of `bytes`, or else of as many as fit.
    pub(crate) fn over(region: Region, bytes: Option<usize>) -> Result<Self, BuildInError> {
        let available = region.len();
        let capacity = bytes.unwrap_or((available / 2).max(1));
        let error = match span_bytes(capacity) {
            Ok(required) if required > available => ConfigError::RegionTooSmall { required, available },
            Ok(_) => return Ok(Self { base: region.as_ptr(), capacity, backing: Backing::Region(region) }),
            Err(error) => error,
        };
        Err(BuildInError { error, region, fallback: () })
    }

    /// Returns the first byte; `2 * capacity` are valid from here (M1).
    #[inline(always)]
    pub(crate) fn base(&self) -> NonNull<u8> {
        self.base
    }

    /// Returns the number of bytes, each of which has two addresses.
    #[inline(always)]
    pub(crate) fn capacity(&self) -> usize {
        self.capacity
    }

    /// Returns whether one byte has two addresses, rather than two bytes one value.
    #[inline]
    pub(crate) fn is_mapped(&self) -> bool {
        matches!(self.backing, Backing::Pages(_))
    }

    /// Makes the `len` bytes at `from` in the second half what they are `capacity` further down.
    ///
    /// Cost: nothing when mapped; else a copy.
    ///
    /// # Safety
    ///
    /// `capacity <= from`, `len <= capacity`, `from + len <= 2 * capacity`, and none of these
    /// bytes, at either address, is lent.
    #[inline]
    pub(crate) unsafe fn rebase(&self, from: usize, len: usize) {
        if self.is_mapped() {
            return;
        }
        // SAFETY: as the caller promises, and the memory is this mirror's (M1).
        unsafe { rebase(self.base, self.capacity, from, len) };
    }
}

/// Copies the `len` bytes at `from`, in the second half, to `capacity` further down.
///
/// # Safety
///
/// Twice `capacity` bytes are valid from `base` on, `capacity <= from`, `len <= capacity`,
/// `from + len <= 2 * capacity`, and none of these bytes, at either address, is lent.
#[inline]
pub(crate) unsafe fn rebase(base: NonNull<u8>, capacity: usize, from: usize, len: usize) {
    debug_assert!(capacity <= from && len <= capacity && from + len <= 2 * capacity);
    // SAFETY: `from` is within the memory, as the caller promises.
    let source = unsafe { base.add(from) };
    // SAFETY: `capacity <= from`, as the caller promises.
    let target = unsafe { base.add(from - capacity) };
    // SAFETY:
    // - valid: both ends are within the memory, as the caller promises.
    // - apart: the two are `capacity` apart and `len` is not more.
    // - exclusive: none of it is lent, as the caller promises.
    unsafe { source.copy_to_nonoverlapping(target, len) };
}

/// Makes the `len` bytes from `at` on, wherever they are used next, what they are here: those in
/// the first half in the second, and the other way round.
///
/// # Safety
///
/// Twice `capacity` bytes are valid from `base` on, `at < capacity`, `len <= capacity`, and these
/// bytes, at both addresses, are the caller's alone.
#[inline]
pub(crate) unsafe fn reflect(base: NonNull<u8>, capacity: usize, at: usize, len: usize) {
    debug_assert!(at < capacity && len <= capacity);
    let front = len.min(capacity - at);
    // SAFETY: `at` is within the first half.
    let here = unsafe { base.add(at) };
    // SAFETY: and so far into the second one.
    let there = unsafe { here.add(capacity) };
    // SAFETY: `front` bytes from `at` on are in the first half, so both are within the memory and
    // apart, and the caller has them.
    unsafe { here.copy_to_nonoverlapping(there, front) };
    // SAFETY: the second half starts here.
    let border = unsafe { base.add(capacity) };
    // SAFETY: what is left of `len` starts at the border, and is at most `at`: both are within the
    // memory and apart, and the caller has them.
    unsafe { border.copy_to_nonoverlapping(base, len - front) };
}

/// Rounds up to whole pages of `page` bytes, of which there can be twice as many.
#[allow(dead_code, reason = "not everywhere are there pages")]
pub(crate) fn whole_pages(bytes: usize, page: usize) -> Result<usize, RegionError> {
    let whole = size::align_up(bytes, page).filter(|&whole| whole <= size::MAX_BYTES / 2);
    whole.ok_or(RegionError::TooLarge { requested: bytes })
}

/// Returns twice `bytes`, which must not be zero.
fn span_bytes(bytes: usize) -> Result<usize, ConfigError> {
    check_setting("capacity", bytes, size::MAX_BYTES / 2)?;
    Ok(2 * bytes)
}
