//! The page heap: spans of pages for pools that threads share.
//!
//! # Memory
//!
//! Addresses are reserved once, several times as many as the limit has bytes. A *span* is a run of
//! pages of them. Spans that are given back join with free neighbours; their pages stay with the
//! process (*dirty*), and serve the next request of any size, until they are given back to the
//! system (*clean*). The limit counts the pages that the process has: spans and dirty pages.
//!
//! A request takes, in this order:
//!
//! 1. a dirty run that is long enough, the best of some;
//! 2. one of the longest dirty runs, with its free neighbours, or a clean run. Pages that it lacks
//!    are moved there from other dirty runs (`mremap`, on Linux), if these are long enough that
//!    this is cheaper than page faults. What is still missing is touched anew, and as many dirty
//!    pages go elsewhere if the limit has no more.
//!
//! So a request that fits into what is not used is served, however the free pages lie.
//!
//! Small blocks are cut from *slabs*, spans of one size of block. A slab of which all blocks are
//! back is a free span.
//!
//! Where addresses are not reserved (other systems, memory of a provider, mapping options), each
//! span is a *segment* of its own from there, or a part of one that is free. Segments go back as
//! wholes.
//!
//! # Threads
//!
//! One lock, which is held across calls to the system that give back and move pages, and not across
//! calls to a provider or the global allocator. Nothing is allocated under it.
//!
//! # Source
//!
//! - Spans, dirty and clean, back by age: tcmalloc's page heap (Ghemawat and Menage), jemalloc's
//!   extents (Evans).
//! - Bins of a quarter of a doubling with a bitmap: TLSF (Masmano et al. 2004).

#![allow(
    clippy::multiple_unsafe_ops_per_block,
    reason = "one promise is behind all of a block: the table is the locked heap's"
)]

mod gather;
mod give_back;
mod grow;
mod index;
mod inner;
mod segment;
mod shape;
mod slab;
mod span;
mod system;
mod take;
#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;

use core::fmt;
use core::ptr::NonNull;
// The standard library's, also in models: it is never held where a model changes threads.
use std::sync::{Mutex, MutexGuard, PoisonError};

#[cfg(feature = "mmap")]
use bufcore::MapOptions;
use bufcore::{Region, RegionError, size};

use self::gather::JOINED_FROM_MOVES;
use self::give_back::Order;
pub use self::grow::HeldHeap;
use self::grow::Whole;
use self::index::Entry;
use self::inner::{Inner, Refused};
use self::segment::Segment;
pub use self::shape::SlabShape;
pub use self::slab::Cut;
pub use self::span::{Given, Span};
use crate::shared_pool::provider::PoolProvider;

/// The source of the pages of a heap.
///
/// ```
/// use bufkit::{PageHeap, PageSource};
///
/// let heap = PageHeap::new(PageSource::System, usize::MAX);
/// assert_eq!(heap.stats().resident_bytes, 0);
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum PageSource {
    /// The operating system, or the global allocator if the system reserves no addresses.
    System,
    /// Mappings with these options.
    #[cfg(feature = "mmap")]
    Mapped(MapOptions),
    /// A program's provider.
    Provider(PoolProvider),
}

impl PageSource {
    /// Returns the bytes of a page of a heap of this source, a power of two and at least 4096.
    #[must_use]
    pub fn page_bytes(&self) -> usize {
        match self {
            Self::System => system::page_bytes().max(4096),
            #[cfg(feature = "mmap")]
            Self::Mapped(_) => 4096,
            Self::Provider(_) => 4096,
        }
    }

    /// Returns whether a heap of this source reserves addresses, so that its pages are mapped and
    /// returned one by one. Otherwise spans are parts of segments, which are mapped and returned as
    /// wholes.
    #[must_use]
    pub fn is_reserved(&self) -> bool {
        matches!(self, Self::System) && system::page_bytes() != 0
    }

    /// Returns the granularity of segments, a power of two: a page, except for huge pages.
    #[must_use]
    pub fn unit_bytes(&self) -> usize {
        match self {
            #[cfg(feature = "mmap")]
            Self::Mapped(options) => options.page_bytes().max(self.page_bytes()),
            _ => self.page_bytes(),
        }
    }
}

/// A heap of pages with a limit on resident memory.
///
/// ```
/// use bufkit::{PageHeap, PageSource};
///
/// let heap = PageHeap::new(PageSource::System, 1 << 20);
/// let span = heap.take(100_000, 64)?;
/// // SAFETY: it is ours.
/// assert!(unsafe { span.len() } >= 100_000);
/// assert!(heap.take(1 << 20, 64).is_err()); // so much is not left
/// // SAFETY: from this heap, and not used any more.
/// unsafe { heap.give(span) };
/// assert_eq!(heap.stats().dirty_bytes, heap.stats().resident_bytes);
/// assert!(heap.take(1 << 20, 64).is_ok());
/// # Ok::<(), bufkit::PageError>(())
/// ```
pub struct PageHeap {
    source: PageSource,
    page_bytes: usize,
    /// Its one reservation, if it was made with that.
    whole: Option<Whole>,
    inner: Mutex<Inner>,
}

/// Why a heap could not serve a span.
///
/// ```
/// use bufkit::{PageError, PageHeap, PageSource};
///
/// let heap = PageHeap::new(PageSource::System, 1 << 20);
/// assert!(matches!(heap.take(2 << 20, 1), Err(PageError::Exhausted { available, .. }) if available == 1 << 20));
/// assert_eq!(heap.take(usize::MAX, 1), Err(PageError::OutOfMemory));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum PageError {
    /// The limit is reached: it has room for this many bytes.
    Exhausted {
        /// Bytes of whole pages.
        available: usize,
        /// A bit for each slab that has a free block.
        slabs: u64,
    },
    /// There is no memory, or the size is too large.
    OutOfMemory,
}

impl fmt::Display for PageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exhausted { available, .. } => write!(f, "the limit has room for {available} bytes"),
            Self::OutOfMemory => f.write_str("out of memory"),
        }
    }
}

impl core::error::Error for PageError {}

/// What a heap has.
///
/// ```
/// use bufkit::{PageHeap, PageSource, PageStats};
///
/// let heap = PageHeap::new(PageSource::System, usize::MAX);
/// assert_eq!(heap.stats(), PageStats::default());
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PageStats {
    /// Pages of spans, touched or not, and dirty pages. jemalloc's `resident`.
    pub resident_bytes: usize,
    /// Free pages that are resident. jemalloc's `dirty`, tcmalloc's `pageheap_free`.
    pub dirty_bytes: usize,
    /// Blocks of slabs that are not in use, less the returned pages of slabs.
    pub free_block_bytes: usize,
    /// Pages of slabs that were returned to the system: their blocks can be allocated again, so the
    /// limit counts them as resident until the slab is free.
    pub gone_bytes: usize,
    /// Address space, including the heap's own tables. jemalloc's `mapped` and `retained`.
    pub address_bytes: usize,
    /// The most that was ever resident.
    pub most_resident_bytes: usize,
    /// The total of clean pages that spans took: the system allocates such a page on first touch.
    pub faulted_bytes: usize,
    /// The total that was returned to the system. tcmalloc's `pageheap_unmapped`.
    pub returned_bytes: usize,
    /// The total that was moved to other addresses.
    pub moved_bytes: usize,
}

impl PageHeap {
    /// Makes an empty heap. Its pages never exceed `limit` bytes.
    #[must_use]
    pub fn new(source: PageSource, limit: usize) -> Self {
        let page_bytes = source.page_bytes();
        let grain = source.unit_bytes() / page_bytes;
        let inner = Inner::new(limit / page_bytes, page_bytes, source.is_reserved(), grain.max(1));
        Self { source, page_bytes, whole: None, inner: Mutex::new(inner) }
    }

    /// Returns the bytes of a page, a power of two and at least 4096.
    #[must_use]
    pub fn page_bytes(&self) -> usize {
        self.page_bytes
    }

    /// Returns whether the heap returns pages one by one, and coalesces them. Otherwise free pages
    /// between used ones cannot serve a larger request.
    #[must_use]
    pub fn returns_pages(&self) -> bool {
        self.lock().is_reserved
    }

    /// Takes a span of at least `bytes` bytes, whose start is a multiple of `alignment` and of the
    /// page size. Its bytes are initialised: recycled bytes, or zeros if [`Span::is_zero`] returns
    /// true.
    ///
    /// Cost: a short lock if enough contiguous resident pages are free; otherwise system calls and
    /// page faults.
    ///
    /// # Errors
    ///
    /// [`PageError`].
    ///
    /// # Panics
    ///
    /// Panics if the alignment is not a power of two.
    pub fn take(&self, bytes: usize, alignment: usize) -> Result<Span, PageError> {
        assert!(alignment.is_power_of_two(), "not a power of two: {alignment}");
        let pages = self.pages(bytes)?;
        let inner = self.lock();
        self.take_in(inner, pages, alignment).map(|(_, span)| Span(span))
    }

    fn pages(&self, bytes: usize) -> Result<usize, PageError> {
        size::align_up(bytes.max(1), self.page_bytes)
            .map(|bytes| bytes / self.page_bytes)
            .filter(|&pages| pages <= index::MOST_PAGES)
            .ok_or(PageError::OutOfMemory)
    }

    /// Takes a span, and gets a segment for it without the lock if it needs one.
    fn take_in<'a>(
        &'a self,
        mut inner: MutexGuard<'a, Inner>,
        pages: usize,
        alignment: usize,
    ) -> Result<(MutexGuard<'a, Inner>, NonNull<Entry>), PageError> {
        let taken = inner.take(pages, alignment, false);
        let counted = match taken {
            Ok(span) => return Ok((inner, span)),
            Err(Refused::Segment(counted)) => counted,
            Err(Refused::System) => {
                self.unlock(inner);
                return Err(PageError::OutOfMemory);
            }
            Err(Refused::Exhausted(left)) => {
                let slabs = inner.slabs.open();
                self.unlock(inner);
                return Err(PageError::Exhausted { available: left.saturating_mul(self.page_bytes), slabs });
            }
        };
        self.unlock(inner);
        let segment = self.new_segment(counted);
        let mut inner = self.lock();
        match segment {
            Ok(segment) => {
                // SAFETY: new, and of the pages that `segment_for` counts.
                let span = unsafe { inner.take_of(segment, counted, pages, alignment) };
                Ok((inner, span))
            }
            Err(_refused) => {
                inner.cancel_segment(counted);
                match inner.take(pages, alignment, true) {
                    Ok(span) => Ok((inner, span)),
                    Err(refused) => {
                        if let Refused::Segment(counted) = refused {
                            inner.cancel_segment(counted);
                        }
                        self.unlock(inner);
                        Err(PageError::OutOfMemory)
                    }
                }
            }
        }
    }

    fn new_segment(&self, pages: usize) -> Result<NonNull<Segment>, RegionError> {
        let bytes = pages * self.page_bytes;
        let region = match &self.source {
            PageSource::System => Region::heap_aligned(bytes, self.page_bytes),
            #[cfg(feature = "mmap")]
            PageSource::Mapped(options) => Region::mapped(bytes, *options),
            PageSource::Provider(provider) => provider.take(bytes),
        }?;
        Segment::of_region(region, self.page_bytes)
    }

    /// Gives a span back.
    ///
    /// # Safety
    ///
    /// It is from this heap, is freed once, and its bytes are not used any more.
    pub unsafe fn give(&self, span: Span) {
        let mut span = Some(Given::Span(span));
        // SAFETY: the caller's promise.
        unsafe { self.give_all(|| span.take()) };
    }

    /// Takes a block of a slab of this shape; if the limit has no room for a new slab, a block of a
    /// shape with a larger number. Its bytes are initialised, with arbitrary values.
    ///
    /// # Errors
    ///
    /// [`PageError`].
    pub fn take_block(&self, shape: SlabShape) -> Result<Cut, PageError> {
        let least = shape.least_bytes(self.page_bytes) / self.page_bytes;
        let mut inner = self.lock();
        if let Some(cut) = inner.take_cut(shape.number(), false) {
            return Ok(cut);
        }
        let mut pages = shape.pages(self.page_bytes, inner.limit);
        loop {
            match self.take_in(inner, pages, 1) {
                // SAFETY: just taken.
                Ok((mut inner, span)) => return Ok(unsafe { inner.cut_new(span, shape) }),
                // A slab of one block may have room.
                Err(PageError::Exhausted { .. }) if least < pages => pages = least,
                Err(error @ PageError::Exhausted { .. }) => {
                    return self.lock().take_cut(shape.number(), true).ok_or(error);
                }
                Err(error) => return Err(error),
            }
            inner = self.lock();
        }
    }

    /// Returns the bytes of a block, `offset` bytes after the start of its slab.
    ///
    /// # Safety
    ///
    /// It is from this heap, and not freed.
    #[must_use]
    pub unsafe fn block_bytes(&self, block: NonNull<u8>, offset: usize) -> usize {
        // SAFETY: the caller's promise.
        unsafe { self.lock().block_bytes(block, offset) }
    }

    /// Frees blocks and spans, several under one lock.
    ///
    /// # Safety
    ///
    /// For each item of `next`: as for [`give`](Self::give); a block is freed with the distance
    /// that it was taken with. `next` does not use the heap.
    pub unsafe fn give_all(&self, mut next: impl FnMut() -> Option<Given>) {
        let Some(mut given) = next() else { return };
        let mut inner = self.lock();
        loop {
            match given {
                // SAFETY: the caller's promise.
                Given::Span(span) => unsafe { inner.give(span.0) },
                // SAFETY: likewise.
                Given::Block(block, offset) => unsafe { inner.give_block(block, offset) },
            }
            match next() {
                Some(other) => given = other,
                None => break,
            }
        }
        inner.return_excess();
        self.unlock(inner);
    }

    /// Returns all free pages to the system, now and whenever more become free: nothing is taken
    /// any more.
    pub fn end(&self) {
        let mut inner = self.lock();
        inner.is_ended = true;
        inner.return_pages(0, Order::Largest);
        self.unlock(inner);
    }

    /// Returns how many bytes are available for requests: the limit's remainder if all free memory
    /// were returned, plus the free blocks of slabs.
    #[must_use]
    pub fn room(&self) -> usize {
        let inner = self.lock();
        inner.left().saturating_mul(self.page_bytes).saturating_add(inner.slabs.free_bytes)
    }

    /// Returns the bytes of spans in use, and of slabs.
    #[must_use]
    pub fn used(&self) -> usize {
        self.lock().used.saturating_mul(self.page_bytes)
    }

    /// Returns free pages to the system until at most `resident` bytes are resident, or none is
    /// free.
    pub fn trim(&self, resident: usize) {
        let mut inner = self.lock();
        let target = (resident / self.page_bytes).saturating_sub(inner.used);
        inner.return_pages(target, Order::Largest);
        if inner.resident() - inner.slabs.gone > resident / self.page_bytes {
            inner.sweep_slabs(true);
        }
        if resident == 0 {
            inner.return_tables();
        }
        if resident == 0 && inner.index.dirty.pages == 0 && inner.moves >= JOINED_FROM_MOVES {
            inner.join_mappings();
        }
        self.unlock(inner);
    }

    /// Returns the free pages to the system that no request needed since the last call, and `more`
    /// bytes of others.
    pub fn trim_unused(&self, more: usize) {
        let mut inner = self.lock();
        inner.return_unused(more / self.page_bytes);
        inner.sweep_slabs(false);
        self.unlock(inner);
    }

    /// Returns the statistics of the heap.
    #[must_use]
    pub fn stats(&self) -> PageStats {
        let inner = self.lock();
        let bytes = |pages: usize| pages.saturating_mul(self.page_bytes);
        PageStats {
            resident_bytes: bytes(inner.resident() - inner.slabs.gone),
            dirty_bytes: bytes(inner.index.dirty.pages),
            free_block_bytes: inner.slabs.free_bytes.saturating_sub(bytes(inner.slabs.gone)),
            gone_bytes: bytes(inner.slabs.gone),
            address_bytes: inner.reserved_bytes,
            most_resident_bytes: bytes(inner.most_resident),
            faulted_bytes: bytes(inner.faulted),
            returned_bytes: bytes(inner.returned),
            moved_bytes: bytes(inner.moved),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // As `bufcore::author::sync::lock` does for ThreadSanitizer; in models it is not modelled.
        while cfg!(tsan) {
            match self.inner.try_lock() {
                Ok(inner) => return inner,
                Err(_held) => std::thread::yield_now(),
            }
        }
        // Nothing panics under it.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets segments go that are to, without the lock: their providers may do anything.
    fn unlock(&self, mut inner: MutexGuard<'_, Inner>) {
        let leaving = inner.take_leaving();
        drop(inner);
        // SAFETY: of this heap, which gave them up.
        unsafe { Segment::drop_all(leaving, None) };
    }
}

impl fmt::Debug for PageHeap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PageHeap").field("source", &self.source).field("stats", &self.stats()).finish()
    }
}
