//! Slabs: spans that are cut into blocks of one size.
//!
//! ```text
//!  | Slab |  block 0  |  block 1  | …
//!         first       first + stride
//! ```
//!
//! The head of a slab of some pages in a reservation is in the table, whose entries in the midst of
//! a span say nothing else: so that the first page can go, too.
//!
//! A slab has a bit for each of its blocks. The lowest free block is taken first, so pages that
//! nobody needs are not touched. A slab none of whose blocks is out goes back as a span, so that
//! its pages serve others. Of one that was not used for a while, the pages go back to the system on
//! which no block is out. They stay counted for the limit, so that its blocks can be had again.
//!
//! # Invariants
//!
//! - S1: a slab with a free block is in the list of its number, and no other slab is.
//! - S2: `free` has the bit of each block that is not out.
//! - S3: `gone` has the bit of each page that went back. No block on it is out.

use core::mem::offset_of;
use core::ptr::{self, NonNull};

use super::index::{self, Entry, Kind};
use super::inner::Inner;
use super::segment::Segment;
use super::shape::{KINDS, SlabShape};
use super::system;

/// A block of a slab.
///
/// ```
/// use bufkit::{Cut, Given, PageHeap, PageSource, SlabShape};
///
/// let heap = PageHeap::new(PageSource::System, usize::MAX);
/// let Cut { block, offset, .. } = heap.take_block(SlabShape::new(0, 100, 64, 0))?;
/// // SAFETY: just taken.
/// assert_eq!(unsafe { heap.block_bytes(block, offset) }, 128); // up to the alignment
/// let mut once = Some(Given::Block(block, offset));
/// // SAFETY: from this heap, and freed once.
/// unsafe { heap.give_all(|| once.take()) };
/// # Ok::<(), bufkit::PageError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cut {
    /// Its first byte.
    pub block: NonNull<u8>,
    /// The distance from the start of its slab, in bytes.
    pub offset: usize,
    /// The number of its slab's shape.
    pub number: u8,
}

/// The head of a slab: the place of its first entry and the entry behind, or else the start of its
/// memory.
#[repr(C, align(16))]
pub(super) struct Slab {
    entry: NonNull<Entry>,
    next: *mut Self,
    previous: *mut Self,
    free: u64,
    gone: u32,
    stride: u32,
    first: u16,
    blocks: u8,
    number: u8,
    /// Whether a block came or went since the last sweep.
    is_used: bool,
}

const _: () = assert!(size_of::<usize>() < 8 || size_of::<Slab>() == 48);
/// From these pages on there is an entry between the first and the last.
const APART_FROM_PAGES: usize = 3;
const _: () = assert!(offset_of!(Entry, place) + size_of::<Slab>() <= 2 * size_of::<Entry>());

/// The slabs of a heap.
pub(super) struct Slabs {
    lists: [*mut Slab; KINDS],
    /// Bytes of blocks that are not out.
    pub(super) free_bytes: usize,
    /// Pages of slabs that were returned to the system.
    pub(super) gone: usize,
}

impl Slabs {
    pub(super) const fn new() -> Self {
        Self { lists: [ptr::null_mut(); KINDS], free_bytes: 0, gone: 0 }
    }

    /// Returns the numbers of the slabs that have a free block, as bits.
    pub(super) fn open(&self) -> u64 {
        self.lists.iter().rev().fold(0, |bits, list| bits << 1 | u64::from(!list.is_null()))
    }

    /// Checks S1 to S3 of the slabs that have a free block.
    #[cfg(all(test, not(any(loom, shuttle))))]
    pub(super) fn check(&self) {
        let (mut free_bytes, mut gone) = (0, 0);
        for (number, list) in self.lists.iter().enumerate() {
            let (mut next, mut before) = (*list, ptr::null_mut());
            while let Some(slab) = NonNull::new(next) {
                // SAFETY: the heap's, which is locked.
                unsafe {
                    let head = slab.as_ptr();
                    let all = u64::MAX >> (64 - u32::from((*head).blocks));
                    assert!((*head).free != 0 && (*head).free != all && (*head).free & !all == 0, "S1, S2");
                    assert_eq!((usize::from((*head).number), (*head).previous), (number, before));
                    free_bytes += (*head).free.count_ones() as usize * (*head).stride as usize;
                    gone += (*head).gone.count_ones() as usize;
                    (next, before) = ((*head).next, head);
                }
            }
        }
        assert_eq!((self.free_bytes, self.gone), (free_bytes, gone));
    }

    /// Adds a slab to the list of its number.
    ///
    /// # Safety
    ///
    /// It is the heap's, and in no list.
    unsafe fn link(&mut self, slab: NonNull<Slab>) {
        // SAFETY: the caller's promise; those of the list are the heap's (S1).
        unsafe {
            let head = &mut self.lists[usize::from((*slab.as_ptr()).number)];
            (*slab.as_ptr()).next = *head;
            (*slab.as_ptr()).previous = ptr::null_mut();
            if !head.is_null() {
                (**head).previous = slab.as_ptr();
            }
            *head = slab.as_ptr();
        }
    }

    /// Takes a slab off its list.
    ///
    /// # Safety
    ///
    /// It is on it.
    unsafe fn unlink(&mut self, slab: NonNull<Slab>) {
        // SAFETY: the caller's promise; those of the list are the heap's (S1).
        unsafe {
            let Slab { next, previous, number, .. } = *slab.as_ptr();
            if previous.is_null() {
                self.lists[usize::from(number)] = next;
            } else {
                (*previous).next = next;
            }
            if !next.is_null() {
                (*next).previous = previous;
            }
        }
    }
}

impl Inner {
    /// Takes a block of a slab that there is: of this number, or of the next larger one.
    pub(super) fn take_cut(&mut self, number: u8, is_larger: bool) -> Option<Cut> {
        let number = if is_larger {
            let larger = self.slabs.open() & u64::MAX.checked_shl(u32::from(number) + 1).unwrap_or(0);
            if larger == 0 {
                return None;
            }
            larger.trailing_zeros() as u8
        } else {
            number
        };
        let slab = NonNull::new(self.slabs.lists[usize::from(number)])?;
        let head = slab.as_ptr();
        // SAFETY: a slab of the list is the heap's, and has a free block (S1, S2). By its fields:
        // owners of blocks may read `stride` meanwhile.
        unsafe {
            let index = (*head).free.trailing_zeros() as usize;
            (*head).free &= (*head).free - 1;
            (*head).is_used = true;
            let offset = (*head).first as usize + index * (*head).stride as usize;
            let back = (*head).gone & pages_of(offset, (*head).stride as usize, self.page_bytes);
            if back != 0 {
                (*head).gone &= !back;
                self.slabs.gone -= back.count_ones() as usize;
                self.count_faulted(back.count_ones() as usize);
            }
            self.slabs.free_bytes -= (*head).stride as usize;
            if (*head).free == 0 {
                self.slabs.unlink(slab);
            }
            let start = NonNull::new_unchecked(index::start_at((*head).entry));
            Some(Cut { block: start.add(offset), offset, number })
        }
    }

    /// Makes a slab of a span, and takes its first block.
    ///
    /// # Safety
    ///
    /// The span is the caller's, who gives it up, and has room for a block.
    pub(super) unsafe fn cut_new(&mut self, span: NonNull<Entry>, shape: SlabShape) -> Cut {
        // SAFETY: the caller's promise.
        let (start, pages) = unsafe { (index::start_at(span), index::pages_at(span)) };
        let blocks = shape.blocks(pages * self.page_bytes);
        let slab = Slab {
            entry: span,
            next: ptr::null_mut(),
            previous: ptr::null_mut(),
            // All but the first.
            free: (u64::MAX >> (64 - blocks)) & !1,
            gone: 0,
            stride: shape.stride,
            first: shape.first,
            blocks: blocks as u8,
            number: shape.number,
            is_used: true,
        };
        self.slabs.free_bytes += (blocks - 1) * shape.stride();
        // SAFETY: a page and more, which are the caller's; `first` leaves room for the head.
        unsafe {
            let head = self.head_of(span);
            head.write(slab);
            if blocks > 1 {
                self.slabs.link(head);
            }
            let block = NonNull::new_unchecked(start.add(shape.first()));
            Cut { block, offset: shape.first(), number: shape.number }
        }
    }

    /// Returns whether the head of a slab of this number of pages is in the table.
    fn is_apart(&self, pages: usize) -> bool {
        self.is_reserved && pages >= APART_FROM_PAGES
    }

    /// Returns where the head is of the slab that a span is.
    ///
    /// # Safety
    ///
    /// The heap's span.
    unsafe fn head_of(&self, span: NonNull<Entry>) -> NonNull<Slab> {
        // SAFETY: the caller's promise. The place and the entry behind follow each other, and are
        // the owner's, if it is not the last one.
        unsafe {
            if self.is_apart(index::pages_at(span)) {
                return span.byte_add(offset_of!(Entry, place)).cast();
            }
            NonNull::new_unchecked(index::start_at(span)).cast()
        }
    }

    /// Returns the head of the slab of a block, `offset` bytes behind its start.
    ///
    /// # Safety
    ///
    /// A block of this heap's that is out.
    unsafe fn slab_of(&self, block: NonNull<u8>, offset: usize) -> NonNull<Slab> {
        // SAFETY: the caller's promise.
        let start = unsafe { block.sub(offset) };
        // Elsewhere no head is apart, and there may be many segments.
        let mut segments = self.segments().filter(|_| self.is_reserved);
        let span = segments.find_map(|segment| Segment::entry_of(segment, start, self.page_bytes));
        // SAFETY: the first entry of a span, which a slab is.
        span.map_or(start.cast(), |span| unsafe { self.head_of(span) })
    }

    /// Returns the bytes of a block, `offset` bytes after the start of its slab.
    ///
    /// # Safety
    ///
    /// A block of this heap's that is out.
    pub(super) unsafe fn block_bytes(&self, block: NonNull<u8>, offset: usize) -> usize {
        // SAFETY: the caller's promise.
        unsafe { (*self.slab_of(block, offset).as_ptr()).stride as usize }
    }

    /// Takes a block back, `offset` bytes behind the start of its slab.
    ///
    /// # Safety
    ///
    /// From `take_cut` or `cut_new` with this offset; the caller gives it up.
    pub(super) unsafe fn give_block(&mut self, block: NonNull<u8>, offset: usize) {
        // SAFETY: the caller's promise.
        unsafe {
            let slab = self.slab_of(block, offset);
            let head = slab.as_ptr();
            let was_full = (*head).free == 0;
            let index = (offset - (*head).first as usize) / (*head).stride as usize;
            debug_assert!((*head).free >> index & 1 == 0, "given back twice");
            (*head).free |= 1 << index;
            (*head).is_used = true;
            self.slabs.free_bytes += (*head).stride as usize;
            let blocks = usize::from((*head).blocks);
            if (*head).free == u64::MAX >> (64 - blocks) {
                if !was_full {
                    self.slabs.unlink(slab);
                }
                self.slabs.free_bytes -= blocks * (*head).stride as usize;
                let Slab { entry, gone, .. } = *head;
                self.slabs.gone -= gone.count_ones() as usize;
                self.give_parts(entry, gone);
            } else if was_full {
                self.slabs.link(slab);
            }
        }
    }

    /// Takes a span back of which the pages of these bits went to the system.
    ///
    /// # Safety
    ///
    /// The first entry of a used extent, which the caller gives up.
    unsafe fn give_parts(&mut self, span: NonNull<Entry>, gone: u32) {
        // SAFETY: the caller's promise; parts are split off from the end. Of what has more pages
        // than there are bits, none went.
        unsafe {
            if gone == 0 {
                return self.give(span);
            }
            let mut left = index::pages_at(span);
            self.used -= left;
            while left > 0 {
                let is_gone = gone >> (left - 1) & 1 == 1;
                let same = if is_gone { gone } else { !gone };
                let run = ((same << (32 - left)).leading_ones() as usize).min(left);
                left -= run;
                let part = if left == 0 { span } else { index::split(span, left, self.page_bytes) };
                self.index.add(part, run, if is_gone { Kind::Clean } else { Kind::Dirty });
            }
        }
    }

    /// Gives the pages of slabs back to the system on which no block is out: of those that were not
    /// used since the last sweep, or of all.
    pub(super) fn sweep_slabs(&mut self, are_all: bool) {
        if !self.is_reserved {
            return;
        }
        for number in 0..KINDS {
            let mut next = self.slabs.lists[number];
            while let Some(slab) = NonNull::new(next) {
                let head = slab.as_ptr();
                // SAFETY: a slab of the list is the heap's.
                unsafe {
                    next = (*head).next;
                    if !core::mem::replace(&mut (*head).is_used, false) || are_all {
                        self.sweep(slab);
                    }
                }
            }
        }
    }

    /// Gives the pages of a slab back on which no block is out. The first stays if the head is on
    /// it.
    ///
    /// # Safety
    ///
    /// It is the heap's.
    unsafe fn sweep(&mut self, slab: NonNull<Slab>) {
        let (head, page_bytes) = (slab.as_ptr(), self.page_bytes);
        // SAFETY: the caller's promise.
        let (stride, first) = unsafe { ((*head).stride as usize, (*head).first as usize) };
        // SAFETY: likewise, and its span is.
        let (free, pages) = unsafe { ((*head).free, index::pages_at((*head).entry)) };
        // SAFETY: likewise.
        let start = unsafe { NonNull::new_unchecked(index::start_at((*head).entry)) };
        if pages == 1 {
            return;
        }
        let mut needed = u32::from(!self.is_apart(pages));
        // SAFETY: likewise.
        for index in 0..usize::from(unsafe { (*head).blocks }) {
            if free >> index & 1 == 0 {
                needed |= pages_of(first + index * stride, stride, page_bytes);
            }
        }
        // SAFETY: likewise.
        let mut idle = !needed & !unsafe { (*head).gone } & (u32::MAX >> (32 - pages));
        while idle != 0 {
            let from = idle.trailing_zeros() as usize;
            let count = (idle >> from).trailing_ones() as usize;
            let run = (u32::MAX >> (32 - count)) << from;
            idle &= !run;
            // SAFETY: pages of the slab that no block which is out is on.
            let is_gone = unsafe { system::discard(start.add(from * page_bytes), count * page_bytes) };
            if !is_gone {
                self.refusals += count;
                return;
            }
            // SAFETY: as above.
            unsafe { (*head).gone |= run };
            self.slabs.gone += count;
            self.returned += count;
        }
    }
}

/// Returns the bits of the pages of a slab that a block is on.
fn pages_of(offset: usize, bytes: usize, page_bytes: usize) -> u32 {
    let (from, to) = (offset / page_bytes, (offset + bytes - 1) / page_bytes);
    (u32::MAX >> (31 - (to - from))) << from
}
