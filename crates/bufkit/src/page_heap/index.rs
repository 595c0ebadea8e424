//! Extents: runs of pages of one kind, found by their neighbours and by their size.
//!
//! Each page of a segment has an [`Entry`] in a table. The first and the last entry of an extent
//! say how long it is and of what kind, so both neighbours of an extent are found at once. Those
//! between say nothing. An entry of its own at each end of the table is nobody's neighbour.
//!
//! # Invariants
//!
//! - X1: extents of a table follow each other without gaps, and the first and the last entry of
//!   each have its number of pages and its kind; `start` of the first is its address.
//! - X2: a free extent is in the list of its kind and size, and no other extent is.
//! - X3: no two neighbours are free and of one kind.

use core::ptr::{self, NonNull};

/// Of a bin: extents between a quarter of a doubling and the next.
const BINS: usize = 128;
/// How many extents of a bin are looked at.
pub(super) const LOOKS: usize = 16;

/// The most pages that an entry can say an extent has, and so a segment.
pub(super) const MOST_PAGES: usize = u32::MAX as usize;

/// What the pages of an extent are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Kind {
    /// The end of a table.
    Edge,
    /// A caller's.
    Used,
    /// Free, and the process has them.
    Dirty,
    /// Free, the system has them: they are zero when they are touched.
    Clean,
    /// Dirty, on its way to a caller.
    HeldDirty,
    /// Clean, on its way to a caller.
    HeldClean,
    /// Addresses that the system may have given to others: nobody uses them any more.
    Lost,
}

/// A page, or the first or last of an extent.
#[repr(C, align(32))]
pub(super) struct Entry {
    pub(super) start: *mut u8,
    pub(super) pages: u32,
    pub(super) kind: Kind,
    /// Of a used extent: nobody wrote to it since the system gave it.
    pub(super) is_zero: bool,
    /// Of a used extent: the bytes of a page, as a power of two.
    pub(super) page_shift: u8,
    pub(super) place: Place,
}

/// Sixteen bytes of an entry.
#[derive(Clone, Copy)]
#[repr(C, align(16))]
pub(super) union Place {
    pub(super) links: Links,
    /// Of an edge: the segment.
    pub(super) segment: *mut super::segment::Segment,
    /// Of a used extent: the caller's.
    pub(super) _callers: [u8; 16],
}

#[derive(Clone, Copy)]
pub(super) struct Links {
    next: *mut Entry,
    previous: *mut Entry,
}

const _: () = assert!(size_of::<Entry>() == 32);

/// Free extents of one kind, by size.
pub(super) struct Bins {
    heads: [*mut Entry; BINS],
    /// Which bins have any.
    filled: u128,
    /// All pages.
    pub(super) pages: usize,
}

fn bin_of(pages: usize) -> usize {
    match pages.checked_ilog2() {
        None | Some(0 | 1) => pages,
        Some(log) => log as usize * 4 + (pages >> (log - 2) & 3),
    }
}

impl Bins {
    pub(super) const fn new() -> Self {
        Self { heads: [ptr::null_mut(); BINS], filled: 0, pages: 0 }
    }

    /// Adds an extent.
    ///
    /// # Safety
    ///
    /// It is an extent of this kind, in no list.
    unsafe fn add(&mut self, entry: NonNull<Entry>) {
        // SAFETY: the caller's promise.
        let pages = unsafe { pages_at(entry) };
        let bin = bin_of(pages);
        let next = self.heads[bin];
        // SAFETY: likewise.
        unsafe { (*entry.as_ptr()).place.links = Links { next, previous: ptr::null_mut() } };
        if !next.is_null() {
            // SAFETY: it is in the list (X2).
            unsafe { (*next).place.links.previous = entry.as_ptr() };
        }
        self.heads[bin] = entry.as_ptr();
        self.filled |= 1 << bin;
        self.pages += pages;
    }

    /// Takes an extent out.
    ///
    /// # Safety
    ///
    /// It is in the list of its size.
    unsafe fn remove(&mut self, entry: NonNull<Entry>) {
        // SAFETY: the caller's promise.
        let pages = unsafe { pages_at(entry) };
        let bin = bin_of(pages);
        // SAFETY: a free extent's place has its links (X2).
        let Links { next, previous } = unsafe { (*entry.as_ptr()).place.links };
        if !next.is_null() {
            // SAFETY: it is in the list.
            unsafe { (*next).place.links.previous = previous };
        }
        if previous.is_null() {
            self.heads[bin] = next;
            if next.is_null() {
                self.filled &= !(1 << bin);
            }
        } else {
            // SAFETY: it is in the list.
            unsafe { (*previous).place.links.next = next };
        }
        self.pages -= pages;
    }

    /// Iterates over the first extents of a bin.
    fn some(&self, bin: usize, looks: usize) -> impl Iterator<Item = NonNull<Entry>> {
        let mut next = NonNull::new(self.heads[bin]);
        core::iter::from_fn(move || {
            let entry = next?;
            #[cfg(all(test, not(any(loom, shuttle))))]
            super::system::hooks::with(|hooks| hooks.steps += 1);
            // SAFETY: it is in the list (X2).
            next = NonNull::new(unsafe { (*entry.as_ptr()).place.links.next });
            Some(entry)
        })
        .take(looks)
    }

    /// Finds a small extent of at least this number of pages. Of those of about as many, it looks
    /// at `looks`.
    pub(super) fn fit(&self, pages: usize, looks: usize) -> Option<NonNull<Entry>> {
        if pages > MOST_PAGES {
            return None;
        }
        let bin = bin_of(pages);
        // SAFETY: of the list.
        let its = |entry: &NonNull<Entry>| unsafe { pages_at(*entry) };
        if let Some(found) = self.some(bin, looks).filter(|entry| its(entry) >= pages).min_by_key(its) {
            return Some(found);
        }
        let larger = self.filled & u128::MAX.checked_shl(bin as u32 + 1).unwrap_or(0);
        if larger == 0 { None } else { NonNull::new(self.heads[larger.trailing_zeros() as usize]) }
    }

    /// Iterates over the extents of at least this number of pages, some of each size.
    pub(super) fn from(&self, pages: usize) -> impl Iterator<Item = NonNull<Entry>> {
        (bin_of(pages)..BINS).flat_map(|bin| self.some(bin, LOOKS))
    }

    /// Returns all extents of the lists, each of which is where its size says.
    #[cfg(all(test, not(any(loom, shuttle))))]
    pub(super) fn listed(&self) -> alloc::collections::BTreeSet<NonNull<Entry>> {
        let mut all = alloc::collections::BTreeSet::new();
        for bin in 0..BINS {
            assert_eq!(self.filled >> bin & 1 == 0, self.heads[bin].is_null());
            for entry in self.some(bin, usize::MAX) {
                // SAFETY: of the list.
                assert_eq!(bin_of(unsafe { pages_at(entry) }), bin);
                assert!(all.insert(entry), "listed twice");
            }
        }
        all
    }

    /// Finds one of the largest extents.
    pub(super) fn largest(&self) -> Option<NonNull<Entry>> {
        let bin = self.filled.checked_ilog2()? as usize;
        // SAFETY: of the list.
        self.some(bin, LOOKS).max_by_key(|entry| unsafe { pages_at(*entry) })
    }

    /// Finds one of the smallest extents.
    pub(super) fn smallest(&self) -> Option<NonNull<Entry>> {
        if self.filled == 0 { None } else { NonNull::new(self.heads[self.filled.trailing_zeros() as usize]) }
    }
}

/// The two kinds of free extents.
pub(super) struct Index {
    pub(super) dirty: Bins,
    pub(super) clean: Bins,
}

impl Index {
    pub(super) const fn new() -> Self {
        Self { dirty: Bins::new(), clean: Bins::new() }
    }

    fn bins(&mut self, kind: Kind) -> &mut Bins {
        if kind == Kind::Dirty { &mut self.dirty } else { &mut self.clean }
    }

    /// Adds a free extent of which this is the first entry, joined with its neighbours of the same
    /// kind. Returns the first entry of what there is then.
    ///
    /// # Safety
    ///
    /// The pages are an extent's, or a part of one at whose place in the table all else is written;
    /// they are in no list, and of the given kind.
    pub(super) unsafe fn add(&mut self, first: NonNull<Entry>, pages: usize, kind: Kind) -> NonNull<Entry> {
        let (mut first, mut pages) = (first, pages);
        // SAFETY: the next extent of the table (X1).
        let behind = unsafe { first.add(pages) };
        // SAFETY: likewise.
        if unsafe { kind_at(behind) } == kind {
            // SAFETY: a free one is in its list (X2).
            unsafe { self.bins(kind).remove(behind) };
            // SAFETY: as above.
            pages += unsafe { pages_at(behind) };
        }
        // SAFETY: the last entry of the extent in front (X1).
        let (kind_in_front, in_front) = unsafe { (kind_at(first.sub(1)), pages_at(first.sub(1))) };
        if kind_in_front == kind {
            // SAFETY: its first entry.
            first = unsafe { first.sub(in_front) };
            pages += in_front;
            // SAFETY: a free one is in its list (X2).
            unsafe { self.bins(kind).remove(first) };
        }
        // SAFETY: all pages of these are ours now.
        unsafe { write(first, pages, kind) };
        // SAFETY: an extent, in no list.
        unsafe { self.bins(kind).add(first) };
        first
    }

    /// Takes a free extent out of its list.
    ///
    /// # Safety
    ///
    /// It is the first entry of a free extent.
    pub(super) unsafe fn remove(&mut self, first: NonNull<Entry>) {
        // SAFETY: the caller's promise.
        let kind = unsafe { kind_at(first) };
        // SAFETY: likewise (X2).
        unsafe { self.bins(kind).remove(first) };
    }
}

/// Iterates over extents that follow each other and have this number of pages together. Each may be
/// written anew before the next is asked for.
///
/// # Safety
///
/// There are such extents from `first` on, which are the caller's meanwhile.
pub(super) unsafe fn extents(first: NonNull<Entry>, pages: usize) -> impl Iterator<Item = NonNull<Entry>> {
    let (mut next, mut left) = (first, pages);
    core::iter::from_fn(move || {
        let entry = (left > 0).then_some(next)?;
        // SAFETY: the caller's promise (X1).
        let its = unsafe { pages_at(entry) };
        left -= its;
        // SAFETY: likewise: the next extent, or the edge.
        next = unsafe { entry.add(its) };
        Some(entry)
    })
}

/// Returns what the first or last entry of an extent says of its kind.
///
/// Entries are read field by field: `place` is the owner's of a used extent, who may write to it
/// meanwhile, so there is never a reference to all of an entry.
///
/// # Safety
///
/// It is the first or last entry of an extent, or an edge, and the heap is locked or the caller has
/// the extent.
#[inline]
pub(super) unsafe fn kind_at(entry: NonNull<Entry>) -> Kind {
    // SAFETY: the caller's promise.
    unsafe { (*entry.as_ptr()).kind }
}

/// Returns what the first or last entry of an extent says of its pages.
///
/// # Safety
///
/// As for [`kind_at`].
#[inline]
pub(super) unsafe fn pages_at(entry: NonNull<Entry>) -> usize {
    // SAFETY: the caller's promise.
    unsafe { (*entry.as_ptr()).pages as usize }
}

/// Returns the address of an extent.
///
/// # Safety
///
/// As for [`kind_at`]; it is the first entry.
#[inline]
pub(super) unsafe fn start_at(entry: NonNull<Entry>) -> *mut u8 {
    // SAFETY: the caller's promise.
    unsafe { (*entry.as_ptr()).start }
}

/// Writes what the table says of an extent. The first entry has its address.
///
/// # Safety
///
/// The entries are the caller's.
pub(super) unsafe fn write(first: NonNull<Entry>, pages: usize, kind: Kind) {
    // SAFETY: the caller's promise.
    let last = unsafe { first.add(pages - 1) };
    for entry in [first, last] {
        // SAFETY: likewise.
        unsafe {
            (*entry.as_ptr()).pages = pages as u32;
            (*entry.as_ptr()).kind = kind;
        }
    }
}

/// Splits an extent that is in no list: the first entry of what is behind `at` pages.
///
/// # Safety
///
/// The entries are the caller's; `at` is within the extent.
pub(super) unsafe fn split(first: NonNull<Entry>, at: usize, page_bytes: usize) -> NonNull<Entry> {
    // SAFETY: the caller's promise.
    let (start, pages, kind) = unsafe { (start_at(first), pages_at(first), kind_at(first)) };
    debug_assert!(at > 0 && at < pages);
    // SAFETY: within the extent.
    let rest = unsafe { first.add(at) };
    // SAFETY: likewise, as its bytes are.
    unsafe { (*rest.as_ptr()).start = start.add(at * page_bytes) };
    // SAFETY: likewise.
    unsafe { write(first, at, kind) };
    // SAFETY: likewise.
    unsafe { write(rest, pages - at, kind) };
    rest
}
