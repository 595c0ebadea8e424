//! The layout of a shard's memory in its region: each header in front of its bytes, or all headers
//! in a table in front of all bytes.

use core::ptr::{self, NonNull};

use bufcore::{Region, RegionError, size};
use bufkit::sync::Ordering;
use bufkit::{DedicatedPages, PoolProvider};

use super::{Block, HEADER_BYTES, Shard};

/// From this alignment on, headers are in a table. In front of its bytes each would take a whole
/// alignment from blocks that are multiples of it. A table takes at most a thirty-second part of
/// what the blocks have.
const TABLE_FROM: usize = 512;

/// What a region starts at a multiple of whose bytes are aligned behind a table.
const TABLE_ALIGNMENT: usize = 16;

/// The memory of large shards and pieces, unless the settings say where it is from.
const LARGE: DedicatedPages = DedicatedPages::large();
/// What that starts at a multiple of.
const PAGE_BYTES: usize = DedicatedPages::ALIGNMENT;

/// Bytes from the start of pages to the first bytes of a buffer, at least.
///
/// Where a system call copies to the first 32 bytes of a page and on, some processors (AMD's Zen 3)
/// take several times as long: 26 µs for 64 KiB, and 4 µs a line further.
const LEAD_BYTES: usize = size::CACHE_LINE_BYTES;

/// Returns whether the headers of blocks with this alignment are in a table.
pub(crate) fn has_table(alignment: usize) -> bool {
    alignment >= TABLE_FROM
}

/// Where in a region of how many bytes the headers and the bytes are.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Layout {
    /// Bytes of the region up to the end of the last buffer's.
    len: usize,
    /// What the region starts at a multiple of.
    start: usize,
    /// What all bytes of buffers start at a multiple of.
    alignment: usize,
    /// Bytes from the region's start to the first header.
    first: usize,
    /// Bytes of the table; 0 where there is none.
    table: usize,
    /// Bytes that buffers can have together: those asked for, what the alignment leaves, and in
    /// pages of its own what these have.
    room: usize,
    /// The pages that the memory has to itself, if it has some, and their bytes.
    pages: Option<(DedicatedPages, usize)>,
}

impl Layout {
    /// Computes the layout for blocks of `bytes` bytes together, or for one buffer of that size.
    /// The bytes of each start at a multiple of `alignment`. The memory is `pages`, or the
    /// allocator's.
    ///
    /// # Errors
    ///
    /// When no region is so large.
    pub(crate) fn new(
        bytes: usize,
        alignment: usize,
        is_single: bool,
        pages: Option<DedicatedPages>,
    ) -> Result<Self, RegionError> {
        let layout = if has_table(alignment) {
            Self::with_table(bytes, alignment, is_single, pages)
        } else {
            Self::in_front(bytes, alignment, is_single, pages)
        };
        layout.ok_or(RegionError::TooLarge { requested: bytes })
    }

    /// Returns the same layout in pages that nothing else is on, if it is large.
    ///
    /// Where the bytes start at pages, only the table is on a page with others. That layout stays
    /// as it is.
    pub(crate) fn apart_if_large(mut self) -> Self {
        let is_large = self.pages.is_none() && self.len >= Region::LARGE_BYTES && self.alignment < PAGE_BYTES;
        if is_large && self.table > 0 {
            self.start = PAGE_BYTES;
        } else if is_large && let Some(len) = self.len.checked_add(LEAD_BYTES) {
            let first = Self::first(self.alignment, true);
            (self.start, self.len, self.first) = (PAGE_BYTES, len - LEAD_BYTES + (first - self.first), first);
        }
        self
    }

    /// From the start of a region to the first header, where headers are in front of their bytes.
    fn first(alignment: usize, has_pages: bool) -> usize {
        if has_pages {
            alignment.max(LEAD_BYTES) - HEADER_BYTES
        } else {
            alignment.saturating_sub(HEADER_BYTES)
        }
    }

    fn in_front(
        bytes: usize,
        alignment: usize,
        is_single: bool,
        pages: Option<DedicatedPages>,
    ) -> Option<Self> {
        // The bytes behind the first header are aligned; so are those behind all others, whose
        // distances are multiples.
        let first = Self::first(alignment, pages.is_some());
        let mut blocks = size::align_up(bytes.checked_add(HEADER_BYTES)?, alignment)?;
        let pages = whole(pages, first.checked_add(blocks)?)?;
        if let Some((_, whole)) = pages {
            // All that the pages have.
            blocks = (whole - first) & !(alignment - 1);
        }
        let len = first.checked_add(blocks)?;
        let room = if is_single { bytes } else { blocks - HEADER_BYTES };
        Some(Self { len, start: alignment.max(HEADER_BYTES), alignment, first, table: 0, room, pages })
    }

    fn with_table(
        bytes: usize,
        alignment: usize,
        is_single: bool,
        pages: Option<DedicatedPages>,
    ) -> Option<Self> {
        let mut places = if is_single { 1 } else { bytes.div_ceil(alignment) };
        let mut table = places.checked_mul(HEADER_BYTES)?;
        let mut room = if is_single { bytes } else { places.checked_mul(alignment)? };
        // From the region's start to the bytes, at most. The table ends at a multiple of what
        // the region starts at.
        let lead = |table: usize| match pages {
            None => table.checked_add(alignment - TABLE_ALIGNMENT),
            Some(_) => size::align_up(table, alignment.min(DedicatedPages::ALIGNMENT))?
                .checked_add(alignment.saturating_sub(DedicatedPages::ALIGNMENT)),
        };
        let pages = whole(pages, lead(table)?.checked_add(room)?)?;
        if let Some((_, whole)) = pages
            && !is_single
        {
            // All that the pages have: at least as many as were asked for, which fit.
            let fits = |places: usize| {
                let bytes = lead(places * HEADER_BYTES).and_then(|lead| lead.checked_add(places * alignment));
                bytes.is_some_and(|bytes| bytes <= whole)
            };
            let most = whole / (alignment + HEADER_BYTES);
            places = (places..=most).rev().find(|&places| fits(places)).unwrap_or(places);
            (table, room) = (places * HEADER_BYTES, places * alignment);
        }
        let len = lead(table)?.checked_add(room)?;
        Some(Self { len, start: TABLE_ALIGNMENT, alignment, first: 0, table, room, pages })
    }

    /// Returns how many bytes the allocator or the system is asked for, with those for the region's
    /// start.
    pub(crate) fn allocated_bytes(&self) -> Option<usize> {
        match self.pages {
            Some((_, whole)) => Some(whole),
            None if self.is_large() => LARGE.rounded(self.len)?.checked_add(LARGE.aligning_bytes()),
            None => self.len.checked_add(self.start - 1),
        }
    }

    /// Returns whether the memory has pages to itself though no setting says so.
    fn is_large(&self) -> bool {
        self.pages.is_none() && self.start == PAGE_BYTES
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
            None if self.is_large() => LARGE.take(self.len, source),
            None => Region::heap(self.len, self.start),
            // Headers in front of their bytes ask for an alignment that pages have.
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
        let start = region.as_ptr().addr().get();
        if self.table > 0 { start + self.table } else { start + self.len - HEADER_BYTES }
    }

    /// Returns the start of the bytes of the table's first place, or null where there is no table.
    pub(super) fn data(&self, region: &Region) -> *mut u8 {
        if self.table == 0 {
            return ptr::null_mut();
        }
        let behind = region.as_ptr().addr().get() + self.table;
        let skip = behind.wrapping_neg() & (self.alignment - 1);
        debug_assert!(skip <= self.alignment - TABLE_ALIGNMENT, "{self:?}");
        // SAFETY: the table and what is skipped are in the length, with bytes behind them.
        unsafe { region.as_ptr().add(self.table + skip) }.as_ptr()
    }

    /// Returns the alignment as an exponent of two.
    pub(super) fn shift(&self) -> u8 {
        self.alignment.trailing_zeros() as u8
    }
}

/// Returns the pages for `len` bytes, with the bytes that they have. Returns `None` when there is
/// no such number.
#[allow(clippy::option_option, reason = "no memory is so large, or it has no pages of its own")]
fn whole(pages: Option<DedicatedPages>, len: usize) -> Option<Option<(DedicatedPages, usize)>> {
    match pages {
        None => Some(None),
        Some(pages) => Some(Some((pages, pages.rounded(len)?))),
    }
}

impl Shard {
    /// Returns whether headers are in a table. The caller has a buffer of the shard, or owns the
    /// shard.
    pub(super) fn has_table(&self) -> bool {
        !self.own.rare.data.get().is_null()
    }

    /// Returns the bytes of the table for a buffer of `bytes` bytes.
    fn step_in_table(&self, bytes: usize) -> usize {
        let shift = self.own.rare.shift.get();
        let rest = bytes & ((1_usize << shift) - 1);
        // A header without memory has room for nothing, whatever this is.
        ((bytes >> shift) + usize::from(rest > 0)).saturating_mul(HEADER_BYTES)
    }

    /// Returns whether `bytes` bytes can be carved. The caller owns the shard.
    pub(crate) fn fits(&self, bytes: usize) -> bool {
        let needed = if self.has_table() { self.step_in_table(bytes) } else { bytes };
        needed <= self.own.limit.get().saturating_sub(self.own.bump.get().addr())
    }

    /// Takes places of the table with room for `bytes` bytes; null when there are none, or for no
    /// bytes. The caller is the owner, and headers are in a table.
    pub(crate) fn carve_in_table(&self, bytes: usize) -> *mut Block {
        let own = &self.own;
        let start = own.bump.get();
        let room = own.limit.get().saturating_sub(start.addr());
        let step = self.step_in_table(bytes);
        // One comparison for `1 <= step <= room`.
        if step.wrapping_sub(1) >= room {
            return ptr::null_mut();
        }
        // SAFETY: at most the end of the table.
        own.bump.set(unsafe { start.add(step) });
        // ORDER: Relaxed, for both, as in `carve`.
        own.taken.store(own.taken.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
        // SAFETY: the places from `bump` on are nobody's (B2), as many as `step` says are in the
        // table, and they are aligned as a header is.
        unsafe { Block::write(start.cast(), self, step as u32) }
    }

    /// Returns the start of the bytes of a block.
    ///
    /// # Safety
    ///
    /// The block is one of this shard's, and its buffer is out.
    pub(super) unsafe fn start_of(&self, block: NonNull<Block>) -> NonNull<u8> {
        let rare = &self.own.rare;
        let Some(data) = NonNull::new(rare.data.get()) else { return Block::behind(block) };
        let place = (block.addr().get() - self.own.base.get().addr()) / HEADER_BYTES;
        // SAFETY: the bytes of each place are in the region (B2).
        unsafe { data.add(place << rare.shift.get()) }
    }

    /// Returns how many bytes a block with this step has room for. The caller has a buffer of the
    /// shard.
    pub(super) fn capacity_of(&self, step: usize) -> usize {
        if self.has_table() {
            (step / HEADER_BYTES) << self.own.rare.shift.get()
        } else {
            step - HEADER_BYTES
        }
    }
}
