//! Spans that grow and shrink, and what a global allocator needs of a heap besides.

use core::fmt;
use core::ptr::{self, NonNull};
use std::sync::MutexGuard;

use super::give_back::Order;
use super::index::{self, Entry, Kind, LOOKS};
use super::inner::Inner;
use super::segment::Segment;
use super::system::{self, Outcome};
use super::{PageError, PageHeap, PageSource, Span};

/// The least that is moved in place of being copied, in pages: copying fewer takes less time than
/// the call to the system.
const MOVE_SPAN_FROM_PAGES: usize = 64;
/// Zeroed spans of more bytes are of pages that the process has not yet: a program may never touch
/// most of them.
const ZEROED_DIRTY_BYTES: usize = 1 << 20;
/// Where the system has not the addresses that are asked for, it is asked for this part.
const FEWER_ADDRESSES: usize = 4096;

/// Locks a heap for a fork: the heap in the child is then in a consistent state.
///
/// ```
/// use bufkit::{PageHeap, PageSource};
///
/// let heap = PageHeap::new(PageSource::System, usize::MAX);
/// let held = heap.hold();
/// // fork
/// drop(held); // in the parent, and in the child
/// assert!(heap.take(1, 1).is_ok());
/// ```
#[must_use = "the heap is unlocked when this is dropped"]
pub struct HeldHeap<'a>(#[allow(dead_code, reason = "kept for its Drop")] MutexGuard<'a, Inner>);

impl fmt::Debug for HeldHeap<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HeldHeap").finish_non_exhaustive()
    }
}

/// The one reservation of a heap.
#[derive(Debug, Clone, Copy)]
pub(super) struct Whole {
    first: Span,
    start: usize,
    bytes: usize,
}

/// How far the pages of a span came.
enum Moved {
    /// All, by this number of calls, and by copies of so many pages, of which so many are still
    /// where they were.
    All(usize, usize, usize),
    /// None.
    Refused,
    /// This number of pages, and the addresses of so many behind these are lost.
    Lost(usize, usize),
}

impl PageHeap {
    /// Makes a heap in one reservation of about `bytes` bytes of address space; it never grows. Its
    /// pages never exceed `limit` bytes, and it does not use an allocator.
    ///
    /// If the system has less address space, the heap reserves a smaller part. It returns `None` if
    /// there is none.
    ///
    /// ```
    /// use bufkit::PageHeap;
    ///
    /// if let Some(heap) = PageHeap::with_addresses(1 << 30, usize::MAX) {
    ///     let span = heap.take(100_000, 1)?;
    ///     // SAFETY: it is ours.
    ///     assert_eq!(heap.span_at(unsafe { span.start() }), Some(span));
    /// }
    /// # Ok::<(), bufkit::PageError>(())
    /// ```
    #[must_use]
    pub fn with_addresses(bytes: usize, limit: usize) -> Option<Self> {
        let mut heap = Self::new(PageSource::System, limit);
        let page_bytes = heap.page_bytes;
        let inner = heap.inner.get_mut().ok().filter(|inner| inner.is_reserved)?;
        let segment = inner.reserve_whole(bytes).or_else(|| inner.reserve_whole(bytes / FEWER_ADDRESSES))?;
        let first = Segment::first(segment);
        // SAFETY: the heap's: the first entry of its one extent.
        let (start, pages) = unsafe { (index::start_at(first).addr(), segment.as_ref().pages) };
        heap.whole = Some(Whole { first: Span(first), start, bytes: pages * page_bytes });
        Some(heap)
    }

    /// Returns the span that starts at an address, if the address is within the one reservation of
    /// the heap. The result is a span only if one starts there.
    ///
    /// Cost: a comparison; no lock.
    #[inline]
    #[must_use]
    pub fn span_at(&self, start: NonNull<u8>) -> Option<Span> {
        let whole = self.whole.as_ref()?;
        let at = start.addr().get().wrapping_sub(whole.start);
        // SAFETY: the table has an entry for each page of the reservation.
        (at < whole.bytes).then(|| Span(unsafe { whole.first.0.add(at / self.page_bytes) }))
    }

    /// Takes a span as [`take`](Self::take) does, with all bytes zero. The pages of a large span
    /// are allocated on first touch.
    ///
    /// Cost: as `take`; bytes that are not known to be zero are written.
    ///
    /// # Errors
    ///
    /// [`PageError`].
    ///
    /// # Panics
    ///
    /// Panics if the alignment is not a power of two.
    ///
    /// ```
    /// use bufkit::{PageHeap, PageSource};
    ///
    /// let heap = PageHeap::new(PageSource::System, usize::MAX);
    /// let span = heap.take_zeroed(4096, 1)?;
    /// // SAFETY: it is ours.
    /// assert_eq!(unsafe { span.start().cast::<[u8; 4096]>().read() }, [0; 4096]);
    /// # Ok::<(), bufkit::PageError>(())
    /// ```
    pub fn take_zeroed(&self, bytes: usize, alignment: usize) -> Result<Span, PageError> {
        if bytes > ZEROED_DIRTY_BYTES && alignment.is_power_of_two() {
            let pages = self.pages(bytes)?;
            let mut inner = self.lock();
            let taken = inner.take_clean(pages, alignment);
            self.unlock(inner);
            if let Some(span) = taken {
                return Ok(Span(span));
            }
        }
        let span = self.take(bytes, alignment)?;
        // SAFETY: just taken.
        unsafe {
            if !span.is_zero() {
                span.start().write_bytes(0, span.len());
            }
        }
        Ok(span)
    }

    /// Extends a span, in place or by moving its pages to a larger range. Its bytes are kept; the
    /// bytes after them are initialised with arbitrary values. It returns `None`, and leaves the
    /// span unchanged, if the heap has no room or copying the bytes is cheaper.
    ///
    /// Cost: as [`take`](PageHeap::take) for the additional pages; if the pages are moved, a system
    /// call for them, without the lock.
    ///
    /// # Safety
    ///
    /// The span is from this heap and owned by the caller. If another span is returned, the caller
    /// owns that one, and the old one is freed.
    ///
    /// ```
    /// use bufkit::{PageHeap, PageSource};
    ///
    /// let heap = PageHeap::new(PageSource::System, usize::MAX);
    /// let span = heap.take(100_000, 1)?;
    /// // SAFETY: from this heap, and ours.
    /// let span = unsafe { heap.grow(span, 200_000, 1) }.unwrap_or(span);
    /// // SAFETY: likewise.
    /// assert!(unsafe { span.len() } >= 100_000);
    /// # Ok::<(), bufkit::PageError>(())
    /// ```
    #[must_use]
    pub unsafe fn grow(&self, span: Span, bytes: usize, alignment: usize) -> Option<Span> {
        let pages = self.pages(bytes).ok()?;
        // SAFETY: the caller's promise.
        let its = unsafe { index::pages_at(span.0) };
        if pages <= its {
            return Some(span);
        }
        let mut inner = self.lock();
        // SAFETY: likewise.
        if unsafe { inner.extend(span.0, pages) } {
            self.unlock(inner);
            return Some(span);
        }
        let other = inner.begin_move(its, pages, alignment);
        self.unlock(inner);
        let other = other?;
        // SAFETY: both are ours, and of as many pages.
        let moved = unsafe { self.move_span(span.0, other, its) };
        let mut inner = self.lock();
        // SAFETY: as `begin_move` left them, and moved so far.
        let is_moved = unsafe { inner.end_move(span.0, other, moved) };
        self.unlock(inner);
        is_moved.then_some(Span(other))
    }

    /// Frees the pages of a span after its first `bytes` bytes.
    ///
    /// # Safety
    ///
    /// The span is from this heap and owned by the caller, which does not use its bytes after these
    /// any more.
    ///
    /// ```
    /// use bufkit::{PageHeap, PageSource};
    ///
    /// let heap = PageHeap::new(PageSource::System, usize::MAX);
    /// let span = heap.take(1 << 20, 1)?;
    /// // SAFETY: from this heap, and ours.
    /// unsafe { heap.shrink(span, 1 << 16) };
    /// // SAFETY: likewise.
    /// assert_eq!(unsafe { span.len() }, 1 << 16);
    /// # Ok::<(), bufkit::PageError>(())
    /// ```
    pub unsafe fn shrink(&self, span: Span, bytes: usize) {
        let pages = bytes.max(1).div_ceil(self.page_bytes);
        // SAFETY: the caller's promise.
        let its = unsafe { index::pages_at(span.0) };
        if pages >= its {
            return;
        }
        let mut inner = self.lock();
        // SAFETY: likewise: the pages behind are of no extent else.
        unsafe {
            let rest = index::split(span.0, pages, self.page_bytes);
            inner.index.add(rest, its - pages, Kind::Dirty);
        }
        inner.used -= its - pages;
        inner.return_excess();
        self.unlock(inner);
    }

    /// Locks the heap until the returned guard is dropped. Until then other threads that use the
    /// heap wait, and this thread must not use it.
    pub fn hold(&self) -> HeldHeap<'_> {
        HeldHeap(self.lock())
    }

    /// Moves pages of a span to another one. Parts that the system refuses to move are copied, if
    /// others came.
    ///
    /// # Safety
    ///
    /// Both are the caller's; of the other one, nothing was written to the first `pages` pages.
    unsafe fn move_span(&self, from: NonNull<Entry>, to: NonNull<Entry>, pages: usize) -> Moved {
        let (mut at, mut most, mut calls, mut copied, mut kept) = (0, pages, 0, 0, 0);
        while at < pages {
            let count = most.min(pages - at);
            let (offset, bytes) = (at * self.page_bytes, count * self.page_bytes);
            // SAFETY: the caller's promise.
            let (old, new) = unsafe {
                let (old, new) = (index::start_at(from), index::start_at(to));
                (NonNull::new_unchecked(old.add(offset)), NonNull::new_unchecked(new.add(offset)))
            };
            // SAFETY: likewise.
            match unsafe { system::move_pages(old, new, bytes, true) } {
                Outcome::Done => {
                    (at, calls) = (at + count, calls + 1);
                    most = most.saturating_mul(2);
                }
                // They may be of several mappings, which are not moved as one.
                Outcome::Refused if count > 1 => most = count.div_ceil(2),
                Outcome::Refused if at == 0 => return Moved::Refused,
                Outcome::Refused => {
                    // SAFETY: the pages of two spans.
                    unsafe { ptr::copy_nonoverlapping(old.as_ptr(), new.as_ptr(), bytes) };
                    // SAFETY: likewise. At once, so that the process has few pages twice.
                    kept += if unsafe { system::discard(old, bytes) } { 0 } else { count };
                    (at, copied) = (at + count, copied + count);
                }
                Outcome::Lost => {
                    // SAFETY: likewise; where pages moved from is as if reserved.
                    unsafe {
                        ptr::copy_nonoverlapping(index::start_at(to), index::start_at(from), offset);
                    }
                    return Moved::Lost(at, count);
                }
            }
        }
        Moved::All(calls, copied, kept)
    }
}

impl Inner {
    /// Reserves addresses, once for good.
    fn reserve_whole(&mut self, bytes: usize) -> Option<NonNull<Segment>> {
        let segment = Segment::reserve(bytes, self.page_bytes)?;
        self.is_whole = true;
        // SAFETY: new, with one extent in no list.
        unsafe {
            self.adopt(segment);
            self.index.add(Segment::first(segment), segment.as_ref().pages, Kind::Clean);
        }
        Some(segment)
    }

    /// Takes a span of clean pages alone.
    fn take_clean(&mut self, pages: usize, alignment: usize) -> Option<NonNull<Entry>> {
        // SAFETY: held extents, all of them clean.
        unsafe {
            let held = self.hold_clean(pages, pages, alignment)?;
            let others = self.limit.saturating_sub(self.used + pages);
            if !self.return_pages(others, Order::Smallest) || !self.commit(held, pages) {
                self.put_back(held, pages);
                return None;
            }
            self.count_faulted(pages);
            Some(self.end_take(held, pages))
        }
    }

    /// Holds clean pages, for which the system has memory, and the limit for `more` of them.
    fn hold_clean(&mut self, pages: usize, more: usize, alignment: usize) -> Option<NonNull<Entry>> {
        if !self.has_room(more) {
            return None;
        }
        let window = self.index.clean.fit(pages + (alignment / self.page_bytes).saturating_sub(1), LOOKS)?;
        // SAFETY: of the list, and of this many pages and more.
        Some(unsafe { self.cut(window, 0, pages, alignment) })
    }

    /// Extends a span in place. Returns whether that is so.
    ///
    /// # Safety
    ///
    /// The first entry of a used extent of fewer pages.
    unsafe fn extend(&mut self, first: NonNull<Entry>, pages: usize) -> bool {
        // SAFETY: the caller's promise: extents that follow each other, up to an edge (X1).
        unsafe {
            let its = index::pages_at(first);
            let (behind, more) = (first.add(its), pages - its);
            let (mut entry, mut total) = (behind, 0);
            while total < more && matches!(index::kind_at(entry), Kind::Dirty | Kind::Clean) {
                total += index::pages_at(entry);
                entry = entry.add(index::pages_at(entry));
            }
            if total < more || !self.has_room(more) {
                return false;
            }
            let held = self.hold(behind, 0, more);
            if !matches!(self.fill(held, more), Ok(true)) {
                return false;
            }
            self.end_take(held, more);
            index::write(first, pages, Kind::Used);
            (*first.as_ptr()).is_zero = false;
        }
        true
    }

    /// Takes a span to which the pages of one of `its` pages are to be moved, which count once.
    fn begin_move(&mut self, its: usize, pages: usize, alignment: usize) -> Option<NonNull<Entry>> {
        if its < MOVE_SPAN_FROM_PAGES || !self.is_reserved || !self.may_move() {
            return None;
        }
        let more = pages - its;
        let held = self.hold_clean(pages, more, alignment)?;
        // SAFETY: a held extent, all of it.
        unsafe {
            let tail = index::split(held, its, self.page_bytes);
            if !matches!(self.fill(tail, more), Ok(true)) {
                self.put_back(held, its);
                return None;
            }
            self.end_take(tail, more);
            index::write(held, pages, Kind::Used);
            (*held.as_ptr()).is_zero = false;
            (*held.as_ptr()).page_shift = self.page_bytes.trailing_zeros() as u8;
        }
        Some(held)
    }

    /// Gives back the span that pages were moved from; or where addresses were lost or none came,
    /// the one that they were to be moved to. Returns whether the pages came.
    ///
    /// # Safety
    ///
    /// The other one is from `begin_move`.
    unsafe fn end_move(&mut self, span: NonNull<Entry>, other: NonNull<Entry>, moved: Moved) -> bool {
        // SAFETY: the caller's promise; both are given up in part.
        unsafe {
            let (its, pages) = (index::pages_at(span), index::pages_at(other));
            match moved {
                Moved::All(calls, copied, kept) => {
                    self.moved += its - copied;
                    self.note_moves(calls);
                    self.faulted += copied;
                    self.returned += copied - kept;
                    if kept == 0 {
                        self.index.add(span, its, Kind::Clean);
                    } else {
                        // As if all were there.
                        self.faulted += its - kept;
                        self.index.add(span, its, Kind::Dirty);
                    }
                }
                Moved::Refused => {
                    self.pause_moves();
                    self.used -= pages - its;
                    let tail = index::split(other, its, self.page_bytes);
                    self.index.add(tail, pages - its, Kind::Dirty);
                    self.index.add(other, its, Kind::Clean);
                }
                Moved::Lost(at, count) => {
                    self.pause_moves();
                    self.used -= pages - its;
                    let lost = if at > 0 { index::split(other, at, self.page_bytes) } else { other };
                    let rest = index::split(lost, count, self.page_bytes);
                    self.lose(lost, count);
                    let (left, more) = (its - at - count, pages - its);
                    let more_at = if left > 0 { index::split(rest, left, self.page_bytes) } else { rest };
                    self.index.add(more_at, more, Kind::Dirty);
                    if left > 0 {
                        self.index.add(rest, left, Kind::Clean);
                    }
                    if at > 0 {
                        // They came back by a copy.
                        self.faulted += at;
                        self.index.add(other, at, Kind::Dirty);
                    }
                }
            }
            let is_moved = matches!(moved, Moved::All(..));
            let most = self.limit.saturating_sub(self.used);
            self.return_pages(most, Order::Smallest);
            self.most_resident = self.most_resident.max(self.resident());
            is_moved
        }
    }
}
