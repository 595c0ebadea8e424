//! Spans, and what is given back.

use core::ptr::NonNull;

use super::index::{self, Entry};

/// A span of a heap. It is a plain value, which says nothing of whose the span is.
///
/// ```
/// use bufkit::{Given, PageHeap, PageSource};
///
/// let heap = PageHeap::new(PageSource::System, usize::MAX);
/// let mut spans = Vec::from([heap.take(5000, 1)?, heap.take(1 << 20, 4096)?]);
/// // SAFETY: they are ours.
/// assert_eq!(unsafe { (spans[0].len(), spans[1].len()) }, (5000_usize.next_multiple_of(heap.page_bytes()), 1 << 20));
/// // SAFETY: from this heap, and given back once.
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

/// What is given back to a heap.
///
/// ```
/// use bufkit::{Given, PageHeap, PageSource};
///
/// let heap = PageHeap::new(PageSource::System, usize::MAX);
/// let mut spans = Vec::from([heap.take(5000, 1)?, heap.take(1 << 20, 4096)?]);
/// // SAFETY: they are ours.
/// assert_eq!(unsafe { (spans[0].len(), spans[1].len()) }, (5000_usize.next_multiple_of(heap.page_bytes()), 1 << 20));
/// // SAFETY: from this heap, and given back once.
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
    /// The bytes that a span has for its owner beside its pages.
    pub const PLACE_BYTES: usize = 16;

    /// Returns its first byte.
    ///
    /// # Safety
    ///
    /// The caller has the span.
    #[inline]
    #[must_use]
    pub unsafe fn start(self) -> NonNull<u8> {
        // SAFETY: the caller's promise: the entry of a used extent has its address.
        unsafe { NonNull::new_unchecked(index::start_at(self.0)) }
    }

    /// Returns its bytes, a multiple of those of a page.
    ///
    /// # Safety
    ///
    /// The caller has the span.
    #[inline]
    #[must_use]
    pub unsafe fn len(self) -> usize {
        // SAFETY: the caller's promise.
        unsafe { index::pages_at(self.0) << (*self.0.as_ptr()).page_shift }
    }

    /// Returns whether nobody wrote to it since the system gave it, so that all of it is zero.
    ///
    /// # Safety
    ///
    /// The caller has the span, and nobody wrote to it since it was taken.
    #[must_use]
    pub unsafe fn is_zero(self) -> bool {
        // SAFETY: the caller's promise.
        unsafe { (*self.0.as_ptr()).is_zero }
    }

    /// Returns the sixteen bytes that its owner may use, aligned to as many. They are initialised,
    /// with whatever.
    ///
    /// # Safety
    ///
    /// The caller has the span.
    #[inline]
    #[must_use]
    pub unsafe fn place(self) -> NonNull<[u8; Self::PLACE_BYTES]> {
        // SAFETY: a field of the entry, which is the owner's while the extent is used.
        unsafe { NonNull::new_unchecked(&raw mut (*self.0.as_ptr()).place) }.cast()
    }

    /// Returns the span that a place is of.
    ///
    /// # Safety
    ///
    /// From [`place`](Self::place).
    #[inline]
    #[must_use]
    pub unsafe fn of_place(place: NonNull<[u8; Self::PLACE_BYTES]>) -> Self {
        // SAFETY: the caller's promise: the place is a field of the entry.
        Self(unsafe { place.byte_sub(core::mem::offset_of!(Entry, place)) }.cast())
    }
}
