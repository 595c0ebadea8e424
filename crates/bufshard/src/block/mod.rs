//! A block: the memory of one buffer, with a header of 16 bytes right in front of its bytes.
//!
//! ```text
//!  start                 block                                bytes
//!    | up to the alignment |  header, 16 bytes                |  the buffer's      |
//!    | and some lines      |  pool, views, class, place, lead |                    |
//!    <------- lead --------><------------------ one allocation less lead ---------->
//! ```
//!
//! The length of the allocation follows from the class, the alignment and the lead. A block outside
//! of the classes has it in front of the header ([`Single`]).
//!
//! Where the bytes start at a multiple of a page or more, a header in front of them would take as
//! much again. There it is in an allocation of its own, behind the region of the bytes ([`Kept`]).
//! A block with pages of its own has the same in front of its bytes, in these pages. They are a
//! mapping, memory of the pool's source, or pages of the allocator's, which go to the system when
//! the block is freed.
//!
//! # Invariants
//!
//! - K1: all bytes of the buffer are initialised, from the allocation on.
//! - K2: a block is in one place: out, in a slot of a cache, in a chain, or being moved by one
//!   thread. That place has the block alone, except for `views`, and for fields that never change.
//! - K3: a block keeps its pool's bookkeeping, whose address is in `link`, by one reference, from
//!   its allocation until it is freed. This file knows no more of it than the address; `shared`
//!   knows the type. While the block is in a chain, `link` leads to the next of the chain, which
//!   knows the pool.
//! - K4: a header is the last field of a [`Kept`] if `lead` is `APART` or `MAPPED`, and otherwise
//!   of a [`Single`] if `class` is `NO_CLASS`.

mod layout;

use core::cell::Cell;
use core::mem::{ManuallyDrop, offset_of};
use core::ptr::NonNull;

use bufcore::author::RefCount;
use bufcore::{Region, RegionError};
use bufkit::{PoolProvider, thread_cache};

use self::layout::ALLOCATOR_ALIGNMENT;
pub(crate) use self::layout::{
    LEAST_ALIGNMENT, LINES_FROM_BYTES, Layout, MOST_ALIGNMENT, Mapped, is_apart, most_single,
};
use crate::class::{self, MAX_CLASSES, NO_CLASS};

/// Bytes of a header.
pub(crate) const HEADER_BYTES: usize = size_of::<Block>();
/// Bytes of a header with the length of its allocation.
const SINGLE_BYTES: usize = size_of::<Single>();
/// Bytes of a header with the region of the bytes.
const KEPT_BYTES: usize = size_of::<Kept>();

/// `lead` of a block whose header is apart.
const APART: u16 = u16::MAX;
/// `lead` of a block with pages of its own, which the header is in.
const MAPPED: u16 = u16::MAX - 1;

/// What a block knows of its pool.
#[derive(Clone, Copy)]
pub(crate) struct Owner {
    /// The address of its bookkeeping.
    pub(crate) link: NonNull<()>,
    /// Where threads have their cache of it.
    pub(crate) place: thread_cache::TlsSlot,
}

/// The header.
#[repr(C, align(16))]
pub(crate) struct Block {
    /// The pool's bookkeeping, or in a chain the next block (K3).
    link: Cell<NonNull<()>>,
    /// Views and parts of the buffer.
    views: RefCount,
    /// The size class, or `NO_CLASS`.
    class: u8,
    /// Where threads have their cache of the pool.
    cache_place: thread_cache::TlsSlot,
    /// From the start of the allocation to the header, or to the `Single` that it is in; or
    /// `APART` or `MAPPED`.
    lead: u16,
}

// The models' atomics are larger.
#[cfg(not(any(loom, shuttle)))]
const _: () = assert!(HEADER_BYTES == 16);

/// Idle memory of less goes back to the allocator alone: two system calls would free a page or two.
pub(crate) const LEAST_RETURNED: usize = 16 << 10;

/// What is in front of the bytes of a block for one buffer.
#[repr(C, align(16))]
struct Single {
    /// Bytes of the allocation.
    total: usize,
    block: Block,
}

/// A header in an allocation of its own, or in the region itself.
#[repr(C, align(16))]
struct Kept {
    /// The bytes.
    region: Region,
    block: Block,
}

/// Where a header is (K4).
enum Place {
    /// In front of the bytes, by itself.
    Front,
    Single(NonNull<Single>),
    Apart(NonNull<Kept>),
    Mapped(NonNull<Kept>),
}

impl Block {
    /// Allocates a block of the given shape from `source`, which is the pool's, and notes its
    /// `owner`.
    ///
    /// # Errors
    ///
    /// When there is no memory.
    pub(crate) fn make(
        owner: Owner,
        layout: Layout,
        source: &PoolProvider,
    ) -> Result<NonNull<Self>, RegionError> {
        if is_apart(layout.alignment) {
            Self::make_apart(owner, layout, source)
        } else if let Some(pages) = layout.pages {
            Self::make_mapped(owner, layout, || pages.take(layout.mapped_lead() + layout.bytes, source))
        } else {
            Self::make_in_front(owner, layout)
        }
    }

    fn make_in_front(owner: Owner, layout: Layout) -> Result<NonNull<Self>, RegionError> {
        let (total, front) = (layout.total(), layout.front());
        // Put together again in `free`, from what the header says.
        let region = ManuallyDrop::new(Region::heap_aligned(total, ALLOCATOR_ALIGNMENT)?);
        let start = region.as_ptr();
        let front_end = start.addr().get() + front;
        let aligning = front_end.wrapping_neg() & (layout.alignment - 1);
        let lead = aligning + layout.spread;
        debug_assert!(lead + front + layout.bytes <= total && lead < usize::from(MAPPED));
        // SAFETY: within the allocation, as `total` counts it.
        let front = unsafe { start.add(lead) };
        // Less than an alignment that is not apart, and the colours.
        let header = Self::header(owner, layout.class, lead as u16);
        if layout.class != NO_CLASS {
            // SAFETY: `HEADER_BYTES` bytes of the allocation from here are nobody else's; aligned,
            // since the alignment is at least 16, and the header is a multiple of it.
            unsafe { front.cast::<Self>().write(header) };
            return Ok(front.cast());
        }
        let single = front.cast::<Single>();
        // SAFETY: as above, of `SINGLE_BYTES` bytes.
        unsafe { single.write(Single { total, block: header }) };
        // SAFETY: a field of what was just written.
        Ok(unsafe { single.byte_add(offset_of!(Single, block)) }.cast())
    }

    fn make_apart(owner: Owner, layout: Layout, source: &PoolProvider) -> Result<NonNull<Self>, RegionError> {
        let region = if let Some(pages) = layout.pages {
            pages.take(layout.bytes, source)
        } else if layout.is_aligned_here() {
            Region::heap(layout.bytes, layout.alignment)
        } else {
            Region::heap_aligned(layout.bytes, layout.alignment)
        }?;
        // Put together again in `free`.
        let place = ManuallyDrop::new(Region::heap_aligned(KEPT_BYTES, align_of::<Kept>())?);
        let kept = place.as_ptr().cast::<Kept>();
        let block = Self::header(owner, layout.class, APART);
        // SAFETY: as many bytes, aligned so, and nobody else's.
        unsafe { kept.write(Kept { region, block }) };
        // SAFETY: a field of what was just written.
        Ok(unsafe { kept.byte_add(offset_of!(Kept, block)) }.cast())
    }

    fn make_mapped(
        owner: Owner,
        layout: Layout,
        take: impl FnOnce() -> Result<Region, RegionError>,
    ) -> Result<NonNull<Self>, RegionError> {
        let lead = layout.mapped_lead();
        let region = take()?;
        debug_assert!(region.len() + layout.aligning_bytes() == layout.total(), "{region:?} for {layout:?}");
        // SAFETY: the lead has room for that, and the pages for the lead.
        let kept = unsafe { region.as_ptr().add(lead - KEPT_BYTES) }.cast::<Kept>();
        let block = Self::header(owner, layout.class, MAPPED);
        // SAFETY: as many bytes, and nobody else's; aligned, since the start of pages, the lead and
        // the size of the type are multiples of 16. From here on the region keeps itself, until
        // `free`.
        unsafe { kept.write(Kept { region, block }) };
        // SAFETY: a field of what was just written.
        Ok(unsafe { kept.byte_add(offset_of!(Kept, block)) }.cast())
    }

    fn header(owner: Owner, class: u8, lead: u16) -> Self {
        Self { link: Cell::new(owner.link), views: RefCount::new(), class, cache_place: owner.place, lead }
    }

    /// Returns the most bytes that are allocated for a block of the class of `bytes` bytes, of any
    /// colour.
    #[cfg(all(test, any(loom, shuttle)))]
    pub(crate) fn most_total(bytes: usize, alignment: usize) -> usize {
        Layout::of(class::class_of(bytes) as u8, bytes, alignment, None).coloured(usize::MAX).total()
    }

    /// Returns what the header of a block is part of.
    ///
    /// # Safety
    ///
    /// The block is valid.
    unsafe fn place(block: NonNull<Block>) -> Place {
        // SAFETY: the caller's promise.
        let header = unsafe { block.as_ref() };
        if header.lead >= MAPPED {
            // SAFETY: the last field of a `Kept` (K4).
            let kept = unsafe { block.byte_sub(offset_of!(Kept, block)) }.cast();
            return if header.lead == APART { Place::Apart(kept) } else { Place::Mapped(kept) };
        }
        if header.class == NO_CLASS {
            // SAFETY: the last field of a `Single` (K4).
            return Place::Single(unsafe { block.byte_sub(offset_of!(Single, block)) }.cast());
        }
        Place::Front
    }

    /// Gives the memory back to the allocator, and says how many bytes that were. The pool's
    /// bookkeeping is not told. `layout_of` gives the shape of blocks of a class with this number
    /// of bytes. Memory of `least` bytes or more is passed on to the system: the allocator may keep
    /// it otherwise.
    ///
    /// # Safety
    ///
    /// 1. The caller has the block alone (K2), and does not use it again.
    /// 2. `layout_of` gives the shape that the block was made with, except for its colour.
    pub(crate) unsafe fn free(
        block: NonNull<Block>,
        layout_of: impl Fn(u8, usize) -> Layout,
        least: usize,
    ) -> usize {
        // SAFETY: the caller has the block.
        let bytes = unsafe { Self::usable_bytes(block) };
        // SAFETY: likewise.
        let header = unsafe { block.as_ref() };
        let (class, lead) = (header.class, usize::from(header.lead));
        // SAFETY: likewise.
        let (front, total) = match unsafe { Self::place(block) } {
            Place::Apart(kept) => {
                // SAFETY: the caller's promise.
                unsafe { Kept::free_apart(kept, least) };
                return layout_of(class, bytes).total();
            }
            Place::Mapped(kept) => {
                // SAFETY: the first field, which is moved out once. The block goes with it.
                let region = unsafe { kept.cast::<Region>().read() };
                let total = region.len() + layout_of(class, bytes).aligning_bytes();
                give_back(region, least);
                return total;
            }
            // SAFETY: valid while the block is.
            Place::Single(single) => (single.cast::<u8>(), unsafe { single.as_ref() }.total),
            Place::Front => (block.cast(), layout_of(class, bytes).again(lead).total()),
        };
        // SAFETY: the allocation starts so far in front.
        let start = unsafe { front.sub(lead) };
        // SAFETY: `make` forgot a region of this start, length and alignment, which is put together
        // here alone.
        give_back(unsafe { Region::from_leaked(start, total, ALLOCATOR_ALIGNMENT) }, least);
        total
    }

    /// Returns the start of the bytes of a block whose header is in front of them. That is so where
    /// the alignment is not `is_apart`.
    #[inline(always)]
    pub(crate) fn behind(block: NonNull<Block>) -> NonNull<u8> {
        // SAFETY: a header is followed by the bytes of its buffer, or ends where its allocation
        // does.
        unsafe { block.cast::<u8>().add(HEADER_BYTES) }
    }

    /// Returns the start of the bytes of any block.
    ///
    /// # Safety
    ///
    /// The block is valid.
    pub(crate) unsafe fn start(block: NonNull<Block>) -> NonNull<u8> {
        // SAFETY: the caller's promise.
        match unsafe { Self::place(block) } {
            // SAFETY: valid while the block is.
            Place::Apart(kept) => unsafe { kept.as_ref() }.region.as_ptr(),
            Place::Single(_) | Place::Mapped(_) | Place::Front => Self::behind(block),
        }
    }

    /// Writes to each page, so that the system gives them now.
    ///
    /// # Safety
    ///
    /// The caller has the block.
    pub(crate) unsafe fn touch(block: NonNull<Block>) {
        const PAGE_BYTES: usize = 4096;
        // SAFETY: the caller has the block.
        let start = unsafe { Self::start(block) };
        // SAFETY: likewise.
        let bytes = unsafe { Self::usable_bytes(block) };
        for at in (0..bytes).step_by(PAGE_BYTES) {
            // SAFETY: within the bytes.
            let place = unsafe { start.add(at) };
            // SAFETY: likewise, and the caller's alone. Volatile, so that the store of zero over
            // zero stays.
            unsafe { place.as_ptr().write_volatile(0) };
        }
    }

    /// Returns how many bytes the buffer may have: those of the class, or at least those of the
    /// request.
    ///
    /// # Safety
    ///
    /// The block is valid.
    pub(crate) unsafe fn usable_bytes(block: NonNull<Block>) -> usize {
        // SAFETY: the caller's promise.
        let header = unsafe { block.as_ref() };
        if header.class != NO_CLASS {
            return class::bytes_of(header.class());
        }
        // SAFETY: the caller's promise.
        match unsafe { Self::place(block) } {
            // SAFETY: valid while the block is.
            Place::Apart(kept) => unsafe { kept.as_ref() }.region.len(),
            Place::Mapped(kept) => {
                // SAFETY: likewise.
                let region = &unsafe { kept.as_ref() }.region;
                let lead = Self::behind(block).addr().get() - region.as_ptr().addr().get();
                region.len() - lead
            }
            Place::Single(single) => {
                // SAFETY: likewise.
                unsafe { single.as_ref() }.total - usize::from(header.lead) - SINGLE_BYTES
            }
            Place::Front => 0,
        }
    }

    /// Returns the bytes that the buffer counts as in the statistics, or 0 without statistics.
    ///
    /// # Safety
    ///
    /// The block is valid.
    #[inline(always)]
    pub(crate) unsafe fn counted_bytes(block: NonNull<Block>) -> usize {
        // SAFETY: the caller's promise.
        match unsafe { block.as_ref() }.class() {
            _ if cfg!(not(feature = "stats")) => 0,
            class if class < MAX_CLASSES => class::bytes_of(class),
            // SAFETY: likewise.
            _ => unsafe { Self::usable_bytes(block) },
        }
    }

    #[inline(always)]
    pub(crate) fn class(&self) -> usize {
        self.class as usize
    }

    /// Returns where threads have their cache of the pool.
    #[inline(always)]
    pub(crate) fn cache_place(&self) -> thread_cache::TlsSlot {
        self.cache_place
    }

    /// Returns whether the block is for one buffer only, and is freed with it.
    pub(crate) fn is_single(&self) -> bool {
        self.class == NO_CLASS
    }

    /// Returns the pool's bookkeeping or, for a block in a chain, the next block (K3).
    #[inline(always)]
    pub(crate) fn link(&self) -> NonNull<()> {
        self.link.get()
    }

    pub(crate) fn set_link(&self, link: NonNull<()>) {
        self.link.set(link);
    }

    #[inline]
    pub(crate) fn views(&self) -> &RefCount {
        &self.views
    }
}

impl Kept {
    /// Gives the memory back, of the bytes and of the header, which is apart.
    ///
    /// # Safety
    ///
    /// The caller has the block alone (K2), and does not use it again.
    unsafe fn free_apart(this: NonNull<Self>, least: usize) {
        // SAFETY: the first field, which is moved out once.
        let region = unsafe { this.cast::<Region>().read() };
        // SAFETY: `make` forgot a region of this start, length and alignment, which is put together
        // here alone.
        let place = unsafe { Region::from_leaked(this.cast(), KEPT_BYTES, align_of::<Self>()) };
        give_back(region, least);
        drop(place);
    }
}

/// Gives memory back to the allocator, and to the system if it is of `least` bytes or more.
fn give_back(region: Region, least: usize) {
    if region.len() >= least {
        region.free_to_system();
    }
}
