//! The layout of a shard's memory in its region: each header in front of its bytes.

use core::ptr::NonNull;

use bufcore::{Region, RegionError, size};
use bufkit::{DedicatedPages, PoolProvider};

use super::HEADER_BYTES;

/// The memory of large shards and pieces, unless the settings say where it is from.
const LARGE: DedicatedPages = DedicatedPages::large();
/// What that starts at a multiple of.
const PAGE_BYTES: usize = DedicatedPages::ALIGNMENT;

/// Bytes from the start of pages to the first bytes of a buffer, at least.
///
/// Where a system call copies to the first 32 bytes of a page and on, some processors (AMD's Zen 3)
/// take several times as long: 26 µs for 64 KiB, and 4 µs a line further.
const LEAD_BYTES: usize = size::CACHE_LINE_BYTES;

/// Where in a region of how many bytes the headers and the bytes are.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Layout {
    /// Bytes of the region up to the end of the last buffer's.
    len: usize,
    /// What the region starts at a multiple of.
    start: usize,
    /// Bytes from the region's start to the first header.
    first: usize,
    /// Bytes that buffers can have together: those asked for, what the alignment leaves, and in
    /// pages of its own what these have.
    room: usize,
    /// The pages that the memory has to itself, if it has some, and their bytes.
    pages: Option<(DedicatedPages, usize)>,
    /// Whether the memory is `LARGE`.
    is_large: bool,
}

impl Layout {
    /// Computes the layout for blocks of `bytes` bytes together, or for one buffer of that size.
    /// The bytes of each start at a multiple of `alignment`. The memory is `pages`, or the
    /// allocator's, or `LARGE` if it is much and `may_be_large`.
    ///
    /// # Errors
    ///
    /// When no region is so large.
    pub(crate) fn new(
        bytes: usize,
        alignment: usize,
        is_dedicated: bool,
        pages: Option<DedicatedPages>,
        may_be_large: bool,
    ) -> Result<Self, RegionError> {
        let layout = Self::checked(bytes, alignment, is_dedicated, pages, may_be_large);
        layout.ok_or(RegionError::TooLarge { requested: bytes })
    }

    fn checked(
        bytes: usize,
        alignment: usize,
        is_dedicated: bool,
        pages: Option<DedicatedPages>,
        may_be_large: bool,
    ) -> Option<Self> {
        // Pages start at no larger alignment.
        let pages = pages.filter(|_| alignment <= PAGE_BYTES);
        let mut blocks = size::align_up(bytes.checked_add(HEADER_BYTES)?, alignment)?;
        let is_large =
            may_be_large && pages.is_none() && alignment <= PAGE_BYTES && blocks >= Region::LARGE_BYTES;
        // The bytes behind the first header are aligned; so are those behind all others, whose
        // distances are multiples.
        let lead = if pages.is_some() || is_large { LEAD_BYTES } else { HEADER_BYTES };
        let first = alignment.max(lead) - HEADER_BYTES;
        let pages = match pages {
            None => None,
            Some(pages) => {
                let whole = pages.rounded(first.checked_add(blocks)?)?;
                // All that the pages have.
                blocks = (whole - first) & !(alignment - 1);
                Some((pages, whole))
            }
        };
        let len = first.checked_add(blocks)?;
        let room = if is_dedicated { bytes } else { blocks - HEADER_BYTES };
        Some(Self { len, start: alignment.max(HEADER_BYTES), first, room, pages, is_large })
    }

    /// Returns how many bytes buffers can have together.
    pub(super) fn room(&self) -> usize {
        self.room
    }

    /// Returns the bytes of the pages that the memory has to itself, if it has some.
    pub(crate) fn page_bytes(&self) -> Option<usize> {
        self.pages.map(|(_, whole)| whole)
    }

    /// Returns the bytes that the memory counts as: those for buffers, or all of pages of its own.
    pub(super) fn held(&self) -> usize {
        self.page_bytes().unwrap_or(self.room)
    }

    /// Allocates a region of this layout; `source` is the pool's.
    pub(super) fn region(&self, source: &PoolProvider) -> Result<Region, RegionError> {
        match self.pages {
            None if self.is_large => LARGE.take(self.len, source),
            None => Region::heap(self.len, self.start),
            Some((pages, whole)) => pages.take(whole, source),
        }
    }

    /// Returns the place of the first header in a region of this layout.
    pub(super) fn base(&self, region: &Region) -> NonNull<u8> {
        // SAFETY: less than the length.
        unsafe { region.as_ptr().add(self.first) }
    }

    /// Returns the address up to which there is room for headers, and behind them for bytes.
    pub(super) fn limit(&self, region: &Region) -> usize {
        region.as_ptr().addr().get() + self.len - HEADER_BYTES
    }
}
