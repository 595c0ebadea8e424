//! What is behind the lock of a heap: which span a request gets, and which pages go.

use core::ptr::{self, NonNull};
use std::time::Instant;

use super::index::{Index, Kind};
use super::segment::Segment;
use super::slab::Slabs;

/// The least and the most that is reserved at once.
const LEAST_RESERVED: usize = if cfg!(target_pointer_width = "64") { 64 << 20 } else { 64 << 10 };
#[cfg(all(target_pointer_width = "64", not(windows)))]
const MOST_RESERVED: usize = 64 << 30;
// Windows counts the tables.
#[cfg(all(target_pointer_width = "64", windows))]
const MOST_RESERVED: usize = 1 << 30;
#[cfg(not(target_pointer_width = "64"))]
const MOST_RESERVED: usize = 64 << 20;
/// Of addresses there are so many times as many as a limit has bytes, so that there are places to
/// gather pages at.
const ADDRESSES: usize = 4;

/// Why there is no span.
pub(super) enum Refused {
    /// This number of pages is left of the limit.
    Exhausted(usize),
    /// A segment of this number of pages is needed, which count as used from now on.
    Segment(usize),
    /// The system refuses.
    System,
}

/// A heap, locked.
pub(super) struct Inner {
    pub(super) index: Index,
    pub(super) slabs: Slabs,
    /// The first of all segments.
    pub(super) segments: *mut Segment,
    /// Segments to give back without the lock.
    pub(super) leaving: *mut Segment,
    pub(super) page_bytes: usize,
    /// Whether addresses are reserved.
    pub(super) is_reserved: bool,
    /// Whether all addresses are there that it ever has.
    pub(super) is_whole: bool,
    /// Whether free pages go at once; whether somebody looks after them.
    pub(super) is_ended: bool,
    /// When somebody looked last.
    pub(super) watched: Option<Instant>,
    /// Whether some addresses are lost.
    pub(super) is_torn: bool,
    /// Whether pages are moved however few are free. Tests say so, whose heaps are small.
    pub(super) is_thrifty: bool,
    /// In pages, as all that follows.
    pub(super) grain: usize,
    pub(super) limit: usize,
    /// Spans, and segments that were asked for.
    pub(super) used: usize,
    /// The least that was dirty since the last look.
    pub(super) least_dirty: usize,
    /// What went back as too much, of which requests have not missed any yet; and what they missed.
    /// Each look halves both.
    pub(super) excess: usize,
    pub(super) missed: usize,
    /// Of all segments, with their tables.
    pub(super) reserved_bytes: usize,
    pub(super) most_resident: usize,
    /// Pages that the system had to give, that went back, and that were moved.
    pub(super) faulted: usize,
    pub(super) returned: usize,
    pub(super) moved: usize,
    /// Pages that the system refused to take.
    pub(super) refusals: usize,
    pub(super) mappings: usize,
    /// Since mappings were joined.
    pub(super) moves: usize,
    pub(super) pause: u32,
}

// SAFETY: what the pointers lead to is the heap's alone, and is reached under its lock.
unsafe impl Send for Inner {}

impl Inner {
    /// Makes an empty heap. Segments that are asked for are of a multiple of `grain` pages.
    pub(super) fn new(limit: usize, page_bytes: usize, is_reserved: bool, grain: usize) -> Self {
        Self {
            index: Index::new(),
            slabs: Slabs::new(),
            segments: ptr::null_mut(),
            leaving: ptr::null_mut(),
            page_bytes,
            is_reserved,
            is_whole: false,
            is_ended: false,
            watched: None,
            is_torn: false,
            is_thrifty: cfg!(test),
            grain,
            limit,
            used: 0,
            least_dirty: 0,
            excess: 0,
            missed: 0,
            reserved_bytes: 0,
            most_resident: 0,
            faulted: 0,
            returned: 0,
            moved: 0,
            refusals: 0,
            mappings: 0,
            moves: 0,
            pause: 0,
        }
    }

    /// Pages that the process has.
    pub(super) fn resident(&self) -> usize {
        self.used + self.index.dirty.pages
    }

    /// Counts pages that the system gives.
    pub(super) fn count_faulted(&mut self, pages: usize) {
        self.faulted += pages;
        let missed = pages.min(self.excess);
        self.excess -= missed;
        self.missed += missed;
    }

    /// Returns how many pages are left of the limit, if all that is free goes.
    pub(super) fn left(&self) -> usize {
        self.limit.saturating_sub(self.used)
    }

    pub(super) fn segments(&self) -> impl Iterator<Item = NonNull<Segment>> + use<> {
        let mut next = NonNull::new(self.segments);
        core::iter::from_fn(move || {
            let segment = next?;
            // SAFETY: the heap's, as long as it is locked.
            next = NonNull::new(unsafe { segment.as_ref() }.next);
            Some(segment)
        })
    }

    /// Reserves addresses for `wanted` pages or more.
    pub(super) fn reserve(&mut self, wanted: usize) -> Result<(), Refused> {
        if self.is_whole {
            return Err(Refused::System);
        }
        let has_addresses = cfg!(target_pointer_width = "64");
        let usual = if has_addresses && self.limit <= MOST_RESERVED / self.page_bytes {
            self.limit * self.page_bytes * ADDRESSES
        } else {
            // As many as there are: many pools have room beside each other.
            self.reserved_bytes
        };
        let usual = usual.clamp(LEAST_RESERVED, MOST_RESERVED);
        // A table takes less than a page for 64, and a page.
        let least = (wanted + wanted / 64 + 2).checked_mul(self.page_bytes).ok_or(Refused::System)?;
        let mut bytes = usual.max(least);
        loop {
            if let Some(segment) = Segment::reserve(bytes, self.page_bytes) {
                // SAFETY: new, with one extent in no list.
                unsafe {
                    self.adopt(segment);
                    self.index.add(Segment::first(segment), segment.as_ref().pages, Kind::Clean);
                }
                return Ok(());
            }
            if bytes == least {
                return Err(Refused::System);
            }
            bytes = (bytes / 4).max(least);
        }
    }

    /// Adds a segment to the heap's.
    ///
    /// # Safety
    ///
    /// It is the caller's, and no other heap's.
    pub(super) unsafe fn adopt(&mut self, segment: NonNull<Segment>) {
        // SAFETY: the caller's promise.
        unsafe { Segment::link(segment, &mut self.segments) };
        // SAFETY: likewise.
        self.reserved_bytes += unsafe { segment.as_ref() }.reserved_bytes();
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.note_mappings(0);
        // SAFETY: nobody has the heap any more, and so no span of it.
        unsafe {
            Segment::drop_all(self.segments, self.is_torn.then_some(self.page_bytes));
            Segment::drop_all(self.leaving, None);
        }
    }
}
