//! Spans, and what is given back.

use core::ptr::NonNull;

use super::index::{self, Entry};

/// A span of a heap. It is a plain value, and does not track its owner.
///
/// ```
/// use bufkit::{Given, PageHeap, PageSource};
///
/// let heap = PageHeap::new(PageSource::System, usize::MAX);
/// let mut spans = Vec::from([heap.take(5000, 1)?, heap.take(1 << 20, 4096)?]);
/// // SAFETY: they are ours.
/// assert_eq!(unsafe { (spans[0].len(), spans[1].len()) }, (5000_usize.next_multiple_of(heap.page_bytes()), 1 << 20));
/// // SAFETY: from this heap, and freed once.
/// unsafe { heap.give_all(|| spans.pop().map(Given::Span)) };
/// # Ok::<(), bufkit::PageError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(transparent)]
pub struct Span(pub(super) NonNull<Entry>);

// SAFETY: an address of the heap's, as which span it is; what it leads to is read under the rules
// of its methods.
unsafe impl Send for Span {}
// SAFETY: likewise.
unsafe impl Sync for Span {}

/// An item to free.
///
/// ```
/// use bufkit::{Given, PageHeap, PageSource};
///
/// let heap = PageHeap::new(PageSource::System, usize::MAX);
/// let mut spans = Vec::from([heap.take(5000, 1)?, heap.take(1 << 20, 4096)?]);
/// // SAFETY: they are ours.
/// assert_eq!(unsafe { (spans[0].len(), spans[1].len()) }, (5000_usize.next_multiple_of(heap.page_bytes()), 1 << 20));
/// // SAFETY: from this heap, and freed once.
/// unsafe { heap.give_all(|| spans.pop().map(Given::Span)) };
/// # Ok::<(), bufkit::PageError>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub enum Given {
    /// A span.
    Span(Span),
    /// A block, with its distance from the start of its slab.
    Block(NonNull<u8>, usize),
}

#[allow(clippy::len_without_is_empty, reason = "a span is never empty")]
impl Span {
    /// The bytes of a span for its owner's use, outside of its pages.
    pub const PLACE_BYTES: usize = 16;

    /// Returns the address of its first byte.
    ///
    /// # Safety
    ///
    /// The caller owns the span.
    #[inline]
    #[must_use]
    pub unsafe fn start(self) -> NonNull<u8> {
        // SAFETY: the caller's promise: the entry of a used extent has its address.
        unsafe { NonNull::new_unchecked(index::start_at(self.0)) }
    }

    /// Returns its bytes, a multiple of the page size.
    ///
    /// # Safety
    ///
    /// The caller owns the span.
    #[inline]
    #[must_use]
    pub unsafe fn len(self) -> usize {
        // SAFETY: the caller's promise.
        unsafe { index::pages_at(self.0) << (*self.0.as_ptr()).page_shift }
    }

    /// Returns whether it was not written since the system allocated it, so that all of it is zero.
    ///
    /// # Safety
    ///
    /// The caller owns the span, and nothing was written to it since it was taken.
    #[must_use]
    pub unsafe fn is_zero(self) -> bool {
        // SAFETY: the caller's promise.
        unsafe { (*self.0.as_ptr()).is_zero }
    }

    /// Returns the sixteen bytes for its owner's use, 16-byte aligned. They are initialised, with
    /// arbitrary values.
    ///
    /// # Safety
    ///
    /// The caller owns the span.
    #[inline]
    #[must_use]
    pub unsafe fn place(self) -> NonNull<[u8; Self::PLACE_BYTES]> {
        // SAFETY: a field of the entry, which is the owner's while the extent is used.
        unsafe { NonNull::new_unchecked(&raw mut (*self.0.as_ptr()).place) }.cast()
    }

    /// Returns the span of a pointer that [`place`](Self::place) returned.
    ///
    /// # Safety
    ///
    /// The caller owns the span.
    #[inline]
    #[must_use]
    pub unsafe fn of_place(place: NonNull<[u8; Self::PLACE_BYTES]>) -> Self {
        // SAFETY: the caller's promise: the place is a field of the entry.
        Self(unsafe { place.byte_sub(core::mem::offset_of!(Entry, place)) }.cast())
    }
}
