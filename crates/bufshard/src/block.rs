//! A block: one allocation that holds one buffer, with a header right in front of the bytes.
//!
//! ```text
//!  start                 block                          bytes
//!    | up to the alignment |  header, 48 bytes          |  the buffer's            |
//!    | and some lines      |  bytes .. id next views    |
//!    <------- lead --------><------------------------ bytes - lead ----------------->
//! ```
//!
//! # Invariants
//!
//! - K1: all bytes behind the header are initialised, from the allocation on.
//! - K2: a block is in one place: out, in a slot of a cache, in a chain, or being moved by one
//!   thread. That place has the block alone, except for `views`, and for fields that never change.
//! - K3: a block keeps its pool's bookkeeping, whose address is `pool`, by one reference, from its
//!   allocation until it is freed. This file knows no more of it than the address; `shared` knows
//!   the type.

use core::cell::Cell;
use core::mem;
use core::ptr::{self, NonNull};

use bufcore::strategy::Views;
use bufcore::{Region, RegionError, size};

use crate::class::{self, MAX_CLASSES, NO_CLASS};

/// Bytes of a header.
pub(crate) const HEADER_BYTES: usize = size_of::<Block>();
/// Of every block.
pub(crate) const LEAST_ALIGNMENT: usize = 16;
/// From this size on, buffers start at a cache line. At a multiple of 16, one of 256 bytes mostly
/// takes five lines instead of four, and each is fetched by a thread that gets it from another. For
/// smaller ones the bytes in front would be too many.
pub(crate) const LINES_FROM_BYTES: usize = 256;
/// The largest alignment of buffers.
pub(crate) const MOST_ALIGNMENT: usize = 1 << 30;

/// From this size on, the allocator gives each block pages of its own, which all start alike, and
/// blocks are coloured.
const COLOURED_FROM_BYTES: usize = 64 << 10;
/// Cache lines of the 4 KiB over which the starts are spread.
const COLOURS: usize = 64;

/// The header. Its last fields are those that the fast paths touch, next to the bytes.
#[repr(C, align(16))]
pub(crate) struct Block {
    /// Of the allocation.
    bytes: usize,
    /// The pool's bookkeeping (K3).
    pool: NonNull<()>,
    /// The pool's number.
    id: usize,
    /// The next of a chain.
    next: Cell<*const Block>,
    /// Views and parts of the buffer.
    views: Views,
    /// From the start of the allocation to the header.
    lead: u32,
    /// The size class, or `NO_CLASS`.
    class: u16,
}

impl Block {
    /// A block of its own for `bytes` bytes, which start at a multiple of `alignment` and, if they
    /// are many, `colour` lines further. It notes the address of its pool's bookkeeping, and the
    /// pool's number.
    ///
    /// # Errors
    ///
    /// When there is no memory.
    pub(crate) fn make(
        pool: NonNull<()>,
        id: usize,
        class: u16,
        bytes: usize,
        alignment: usize,
        colour: usize,
    ) -> Result<NonNull<Self>, RegionError> {
        let total = Self::total(bytes, alignment, colour);
        let region = Region::heap(total, 1)?;
        let start = region.as_ptr();
        // Put together again in `free`, from what the header says.
        mem::forget(region);
        let header_end = start.addr().get() + HEADER_BYTES;
        let lead = header_end.wrapping_neg() & (alignment - 1);
        let lead = lead + colour_bytes(bytes, alignment, colour);
        debug_assert!(lead + HEADER_BYTES + bytes <= total);
        // SAFETY: within the allocation, as `total` counts it.
        let block = unsafe { start.add(lead) }.cast::<Block>();
        let header = Block {
            bytes: total,
            pool,
            id,
            next: Cell::new(ptr::null()),
            views: Views::new(),
            // Less than the alignment and the colours.
            lead: lead as u32,
            class,
        };
        // SAFETY: `HEADER_BYTES` bytes of the allocation from here are nobody else's; aligned,
        // since the alignment is at least 16 and the header a multiple of it.
        unsafe { block.write(header) };
        Ok(block)
    }

    /// Bytes of the allocation for a buffer of `bytes` bytes, whose alignment that is.
    pub(crate) fn total(bytes: usize, alignment: usize, colour: usize) -> usize {
        HEADER_BYTES + bytes + (alignment - 1) + colour_bytes(bytes, alignment, colour)
    }

    /// The most that `total` is for any colour.
    pub(crate) fn most_total(bytes: usize, alignment: usize) -> usize {
        Self::total(bytes, alignment, COLOURS - 1)
    }

    /// Gives the memory back to the allocator, and says how many bytes that were. The pool's
    /// bookkeeping is not told.
    ///
    /// # Safety
    ///
    /// The caller has the block alone (K2), and does not use it again.
    pub(crate) unsafe fn free(block: NonNull<Block>) -> usize {
        // SAFETY: the caller has the block.
        let header = unsafe { block.as_ref() };
        let (bytes, lead) = (header.bytes, header.lead);
        // SAFETY: the allocation starts so far in front of the header.
        let start = unsafe { block.cast::<u8>().sub(lead as usize) };
        // SAFETY: `make` forgot a region of this start and length, which is put together here
        // alone.
        drop(unsafe { Region::from_forgotten_heap(start, bytes) });
        bytes
    }

    /// The bytes behind the header.
    #[inline(always)]
    pub(crate) fn start(block: NonNull<Block>) -> NonNull<u8> {
        // SAFETY: a header is followed by the bytes of its buffer, at least one.
        unsafe { block.cast::<u8>().add(HEADER_BYTES) }
    }

    /// Writes to each page, so that the system gives them now.
    ///
    /// # Safety
    ///
    /// The caller has the block.
    pub(crate) unsafe fn touch(block: NonNull<Block>) {
        const PAGE_BYTES: usize = 4096;
        // SAFETY: the caller has the block.
        let bytes = unsafe { block.as_ref() }.usable_bytes();
        for at in (0..bytes).step_by(PAGE_BYTES) {
            // SAFETY: within the bytes.
            let place = unsafe { Self::start(block).add(at) };
            // SAFETY: likewise, and the caller's alone. Volatile, so that the store of zero over
            // zero stays.
            unsafe { place.as_ptr().write_volatile(0) };
        }
    }

    /// Bytes behind the header: at least those of the class, or of the request.
    pub(crate) fn usable_bytes(&self) -> usize {
        self.bytes - self.lead as usize - HEADER_BYTES
    }

    /// What the buffer counts as in the statistics; without them, nothing.
    #[inline(always)]
    pub(crate) fn counted_bytes(&self) -> usize {
        match self.class() {
            _ if cfg!(not(feature = "stats")) => 0,
            class if class < MAX_CLASSES => class::bytes_of(class),
            _ => self.usable_bytes(),
        }
    }

    #[inline(always)]
    pub(crate) fn id(&self) -> usize {
        self.id
    }

    #[inline(always)]
    pub(crate) fn class(&self) -> usize {
        self.class as usize
    }

    /// Whether the block is for one buffer only, and goes when that does.
    pub(crate) fn is_single(&self) -> bool {
        self.class == NO_CLASS
    }

    /// The pool's bookkeeping (K3).
    pub(crate) fn pool(&self) -> NonNull<()> {
        self.pool
    }

    #[inline]
    pub(crate) fn views(&self) -> &Views {
        &self.views
    }

    pub(crate) fn next(&self) -> *const Block {
        self.next.get()
    }

    pub(crate) fn set_next(&self, next: *const Block) {
        self.next.set(next);
    }
}

/// How much further the bytes start for their colour.
///
/// Blocks whose starts lie a multiple of 4 KiB apart share the same sets of the first-level cache
/// and evict each other; see `bufcore::size::staggered`.
fn colour_bytes(bytes: usize, alignment: usize, colour: usize) -> usize {
    if bytes < COLOURED_FROM_BYTES || alignment > size::CACHE_LINE_BYTES {
        return 0;
    }
    colour % COLOURS * size::CACHE_LINE_BYTES
}
