//! The layout of a shard's memory in its region: each header in front of its bytes, or all headers
//! in a table in front of all bytes.

use core::ptr::{self, NonNull};

use bufcore::strategy::sync::Ordering;
use bufcore::strategy::{OwnPages, PoolSource};
use bufcore::{Region, RegionError, size};

use super::{Block, HEADER_BYTES, Shard};

/// From this alignment on, headers stand in a table. In front of its bytes each would take a whole
/// alignment from blocks that are multiples of it. A table takes at most a thirty-second part of
/// what the blocks have.
const TABLE_FROM: usize = 512;

/// What a region starts at a multiple of whose bytes are aligned behind a table.
const TABLE_ALIGNMENT: usize = 16;

/// Whether the headers of blocks with this alignment stand in a table.
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
    pages: Option<(OwnPages, usize)>,
}

impl Layout {
    /// For blocks of `bytes` bytes together, or for one buffer of that size; the bytes of each
    /// start at a multiple of `alignment`. The memory is `pages`, or of the allocator.
    ///
    /// # Errors
    ///
    /// When no region is so large.
    pub(crate) fn new(
        bytes: usize,
        alignment: usize,
        is_single: bool,
        pages: Option<OwnPages>,
    ) -> Result<Self, RegionError> {
        let layout = if has_table(alignment) {
            Self::with_table(bytes, alignment, is_single, pages)
        } else {
            Self::in_front(bytes, alignment, is_single, pages)
        };
        layout.ok_or(RegionError::TooLarge { requested: bytes })
    }

    fn in_front(bytes: usize, alignment: usize, is_single: bool, pages: Option<OwnPages>) -> Option<Self> {
        // The bytes behind the first header are aligned; so are those behind all others, whose
        // distances are multiples.
        let first = alignment.saturating_sub(HEADER_BYTES);
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

    fn with_table(bytes: usize, alignment: usize, is_single: bool, pages: Option<OwnPages>) -> Option<Self> {
        let mut places = if is_single { 1 } else { bytes.div_ceil(alignment) };
        let mut table = places.checked_mul(HEADER_BYTES)?;
        let mut room = if is_single { bytes } else { places.checked_mul(alignment)? };
        // From the region's start to the bytes, at most. The table ends at a multiple of what
        // the region starts at.
        let lead = |table: usize| match pages {
            None => table.checked_add(alignment - TABLE_ALIGNMENT),
            Some(_) => size::align_up(table, alignment.min(OwnPages::ALIGNMENT))?
                .checked_add(alignment.saturating_sub(OwnPages::ALIGNMENT)),
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

    /// Bytes that the allocator or the system is asked for, with those for the region's start.
    pub(crate) fn allocated_bytes(&self) -> Option<usize> {
        self.pages.map_or_else(|| self.len.checked_add(self.start - 1), |(_, whole)| Some(whole))
    }

    /// Bytes that buffers can have together.
    pub(super) fn room(&self) -> usize {
        self.room
    }

    /// Bytes of the pages that the memory has to itself, if it has some.
    pub(crate) fn page_bytes(&self) -> Option<usize> {
        self.pages.map(|(_, whole)| whole)
    }

    /// Bytes that the memory counts as: what buffers can have, or all of pages of its own.
    pub(super) fn held(&self) -> usize {
        self.page_bytes().unwrap_or(self.room)
    }

    /// A region for it; `source` is the pool's.
    pub(super) fn region(&self, source: &PoolSource) -> Result<Region, RegionError> {
        match self.pages {
            None => Region::heap(self.len, self.start),
            // Headers in front of their bytes ask for an alignment that pages have.
            Some((pages, whole)) => pages.take(whole, source),
        }
    }

    /// Where the first header is, in a region that is for this.
    pub(super) fn base(&self, region: &Region) -> NonNull<u8> {
        // SAFETY: less than the length.
        unsafe { region.as_ptr().add(self.first) }
    }

    /// Address up to which there is room for headers, and behind them for bytes.
    pub(super) fn limit(&self, region: &Region) -> usize {
        let start = region.as_ptr().addr().get();
        if self.table > 0 { start + self.table } else { start + self.len - HEADER_BYTES }
    }

    /// Where the bytes of the first place of the table start; null where there is none.
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

    /// The alignment, as a power of two.
    pub(super) fn shift(&self) -> u8 {
        self.alignment.trailing_zeros() as u8
    }
}

/// The pages for `len` bytes, with the bytes that they have; `None` when there is no such number.
#[allow(clippy::option_option, reason = "no memory is so large, or it has no pages of its own")]
fn whole(pages: Option<OwnPages>, len: usize) -> Option<Option<(OwnPages, usize)>> {
    match pages {
        None => Some(None),
        Some(pages) => Some(Some((pages, pages.rounded(len)?))),
    }
}

impl Shard {
    /// Whether headers stand in a table. For whoever has a buffer of the shard, and the owner.
    pub(super) fn has_table(&self) -> bool {
        !self.own.rare.data.get().is_null()
    }

    /// Bytes of the table for a buffer of `bytes` bytes.
    fn step_in_table(&self, bytes: usize) -> usize {
        let shift = self.own.rare.shift.get();
        let rest = bytes & ((1_usize << shift) - 1);
        // A header without memory has room for nothing, whatever this is.
        ((bytes >> shift) + usize::from(rest > 0)).saturating_mul(HEADER_BYTES)
    }

    /// Whether `bytes` bytes can be carved. For the owner.
    pub(crate) fn fits(&self, bytes: usize) -> bool {
        let needed = if self.has_table() { self.step_in_table(bytes) } else { bytes };
        needed <= self.own.limit.get().saturating_sub(self.own.bump.get().addr())
    }

    /// Takes places of the table with room for `bytes` bytes; null when there are none, or for no
    /// bytes. For the owner, where headers stand in a table.
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

    /// Where the bytes of a block start.
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

    /// Bytes that a block with this step has room for. For whoever has a buffer of the shard.
    pub(super) fn capacity_of(&self, step: usize) -> usize {
        if self.has_table() {
            (step / HEADER_BYTES) << self.own.rare.shift.get()
        } else {
            step - HEADER_BYTES
        }
    }
}
