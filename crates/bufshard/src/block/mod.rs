//! A block: the memory of one buffer, with a header of 16 bytes.
//!
//! ```text
//!  of a slab   | header, 16 bytes                  | the buffer's bytes |
//!              | pool, views, class, lead          |
//!  a span      | up to the colour | span | header  | the buffer's bytes | up to a page |
//! ```
//!
//! Where the bytes start at a multiple of a page or more, a header in front of them would take as
//! much again. There it is in the sixteen bytes that the page heap has for each span ([`Span`]).
//!
//! # Invariants
//!
//! - K1: all bytes of the buffer are initialised, from when the block is made on.
//! - K2: a block is in one place: out, in a slot of a cache, in a chain, or being moved by one
//!   thread. That place has the block alone, except for `views`, and for fields that never change.
//! - K3: a block keeps its pool's bookkeeping, and with it the page heap, whose address is in
//!   `link`, by one reference, from when it is made until it is freed. This file knows no more of
//!   it than the address; `shared` knows the type. While the block is in a chain, `link` leads to
//!   the next of the chain, which knows the pool.
//! - K4: a header is the last field of a [`Kept`] if `lead` is `SPAN`, in the place of its span if
//!   `lead` is `APART`, and otherwise `lead` units behind the start of its slab.

mod layout;

use core::cell::Cell;
use core::mem::offset_of;
use core::ptr::NonNull;

use bufcore::author::RefCount;
use bufkit::{Cut, Given, PageError, PageHeap, Span};

pub(crate) use self::layout::{
    LEAST_ALIGNMENT, LINES_FROM_BYTES, Layout, MOST_ALIGNMENT, MOST_SLAB_CLASS, class_of_small, is_apart,
    most_span,
};
use crate::class::NO_CLASS;

/// Bytes of a header.
pub(crate) const HEADER_BYTES: usize = size_of::<Block>();
/// Bytes of a header with the span that it is in.
const KEPT_BYTES: usize = size_of::<Kept>();

/// `lead` of a block whose header is apart.
const APART: u16 = u16::MAX;
/// `lead` of a block that is a span, with the header in it.
const SPAN: u16 = u16::MAX - 1;
/// Bytes that `lead` counts.
const LEAD_UNIT: usize = 16;

/// The header.
#[repr(C, align(16))]
pub(crate) struct Block {
    /// The pool's bookkeeping, or in a chain the next block (K3).
    link: Cell<NonNull<()>>,
    /// Views and parts of the buffer.
    views: RefCount,
    /// The size class, or `NO_CLASS`.
    class: u8,
    /// From the start of the slab to the header, in units of 16 bytes; or `APART` or `SPAN`.
    lead: u16,
}

// The models' atomics are larger.
#[cfg(not(any(loom, shuttle)))]
const _: () = assert!(HEADER_BYTES == 16 && HEADER_BYTES <= Span::PLACE_BYTES);

/// A header in a span.
#[repr(C, align(16))]
struct Kept {
    span: Span,
    block: Block,
}

/// A block that was made, and whether its bytes are zero.
pub(crate) struct Made {
    pub(crate) block: NonNull<Block>,
    pub(crate) is_zero: bool,
}

impl Block {
    /// Makes a block of the given shape of pages of `heap`, which is the pool's, and notes its
    /// `owner`.
    ///
    /// # Errors
    ///
    /// When the heap has none.
    pub(crate) fn make(
        owner: NonNull<()>,
        layout: Layout,
        heap: &PageHeap,
        is_pooled: impl Fn(usize) -> bool,
    ) -> Result<Made, PageError> {
        let header = |class, lead| Self { link: Cell::new(owner), views: RefCount::new(), class, lead };
        if let Some(shape) = layout.slab() {
            let Cut { block, offset, number } = heap.take_block(shape)?;
            let block = block.cast::<Self>();
            let is_single = layout.is_single || !is_pooled(usize::from(number));
            let class = if is_single { NO_CLASS } else { number };
            // SAFETY: a block of this slab has room for the header and the bytes, which are behind
            // it; it is ours alone, and aligned, as the shape says.
            unsafe { block.write(header(class, (offset / LEAD_UNIT) as u16)) };
            return Ok(Made { block, is_zero: false });
        }
        let class = if layout.is_single { NO_CLASS } else { layout.class };
        let (lead, is_header_apart) = (layout.lead(), is_apart(layout.alignment));
        let span = heap.take(layout.total(heap.page_bytes()), layout.alignment)?;
        // SAFETY: just taken.
        let is_zero = unsafe { span.is_zero() };
        if is_header_apart {
            // SAFETY: likewise.
            let block = unsafe { span.place() }.cast::<Self>();
            // SAFETY: its owner's bytes, as many as a header has and aligned so.
            unsafe { block.write(header(class, APART)) };
            return Ok(Made { block, is_zero });
        }
        // SAFETY: just taken.
        let start = unsafe { span.start() };
        // SAFETY: the span has room for the lead, and the lead for a `Kept`.
        let kept = unsafe { start.add(lead - KEPT_BYTES) }.cast::<Kept>();
        // SAFETY: as many bytes, and nobody else's; aligned, since the start of a span, the lead
        // and the size of the type are multiples of 16.
        unsafe { kept.write(Kept { span, block: header(class, SPAN) }) };
        // SAFETY: a field of what was just written.
        Ok(Made { block: unsafe { kept.byte_add(offset_of!(Kept, block)) }.cast(), is_zero })
    }

    /// Returns the bytes of the pages that a new block takes.
    #[cfg(all(test, any(loom, shuttle)))]
    pub(crate) fn most_total(bytes: usize, alignment: usize) -> usize {
        Layout::of(crate::class::class_of(bytes) as u8, bytes, alignment).total(4096)
    }

    /// Returns the span that the block is, or `None` if it is of a slab.
    ///
    /// # Safety
    ///
    /// The block is valid.
    pub(crate) unsafe fn span(block: NonNull<Self>) -> Option<Span> {
        // SAFETY: the caller's promise.
        match unsafe { block.as_ref() }.lead {
            // SAFETY: in the place of its span (K4).
            APART => Some(unsafe { Span::of_place(block.cast()) }),
            SPAN => {
                // SAFETY: the last field of a `Kept` (K4).
                let kept = unsafe { block.byte_sub(offset_of!(Kept, block)) }.cast::<Kept>();
                // SAFETY: likewise; the field never changes.
                Some(unsafe { (*kept.as_ptr()).span })
            }
            _ => None,
        }
    }

    /// Returns what goes back to the page heap.
    ///
    /// # Safety
    ///
    /// The caller has the block alone (K2).
    pub(crate) unsafe fn given(block: NonNull<Self>) -> Given {
        // SAFETY: the caller has the block.
        match unsafe { Self::span(block) } {
            Some(span) => Given::Span(span),
            None => {
                // SAFETY: likewise.
                let lead = unsafe { block.as_ref() }.lead;
                Given::Block(block.cast(), usize::from(lead) * LEAD_UNIT)
            }
        }
    }

    /// Returns the start of the bytes of a block whose header is in front of them. That is so where
    /// the alignment is not `is_apart`.
    #[inline(always)]
    pub(crate) fn behind(block: NonNull<Self>) -> NonNull<u8> {
        // SAFETY: a header is followed by the bytes of its buffer, or ends where its span's place
        // does.
        unsafe { block.cast::<u8>().add(HEADER_BYTES) }
    }

    /// Returns the start of the bytes of any block.
    ///
    /// # Safety
    ///
    /// The block is valid.
    pub(crate) unsafe fn start(block: NonNull<Self>) -> NonNull<u8> {
        // SAFETY: the caller's promise.
        if unsafe { block.as_ref() }.lead != APART {
            return Self::behind(block);
        }
        // SAFETY: in the place of its span (K4).
        let span = unsafe { Span::of_place(block.cast()) };
        // SAFETY: the block's.
        unsafe { span.start() }
    }

    #[inline(always)]
    pub(crate) fn class(&self) -> usize {
        self.class as usize
    }

    /// Returns whether the block is for one buffer only, and is freed with it.
    pub(crate) fn is_single(&self) -> bool {
        self.class == NO_CLASS
    }

    /// Returns how far behind the start of its slab the header is, in bytes, of a block of a slab.
    pub(crate) fn slab_offset(&self) -> usize {
        usize::from(self.lead) * LEAD_UNIT
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
