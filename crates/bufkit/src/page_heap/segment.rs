//! Segments: memory that is contiguous, with its table.
//!
//! ```text
//!  | Segment | edge | an entry for each page | edge |      the pages
//!  in the reservation's first pages, or on the heap        the rest, or a region
//! ```

use core::mem::ManuallyDrop;
use core::ptr::{self, NonNull};

use bufcore::{Region, RegionError};

use super::index::{self, Entry, Kind};
use super::system;

/// Memory with its table.
#[repr(C, align(32))]
pub(super) struct Segment {
    /// The next of the heap's, or of those that are on their way back.
    pub(super) next: *mut Self,
    previous: *mut Self,
    pub(super) pages: usize,
    memory: Memory,
}

enum Memory {
    /// A reservation of this many bytes, which starts with the segment.
    Reserved(usize),
    /// The region of the table, which starts with the segment, and that of the pages.
    Regions(#[allow(dead_code, reason = "kept for its Drop")] Region, ManuallyDrop<Region>),
}

/// The bytes of a table.
fn table_bytes(pages: usize) -> usize {
    size_of::<Segment>() + (pages + 2) * size_of::<Entry>()
}

impl Segment {
    /// Reserves `bytes` bytes of addresses, of which the table takes some.
    pub(super) fn reserve(bytes: usize, page_bytes: usize) -> Option<NonNull<Self>> {
        let all = bytes / page_bytes;
        let front = table_bytes(all).div_ceil(page_bytes);
        let pages = all.checked_sub(front).filter(|&pages| pages > 0 && u32::try_from(pages).is_ok())?;
        let start = system::reserve(all * page_bytes)?;
        // SAFETY: of the reservation, and nobody uses it yet.
        if !unsafe { system::commit(start, front * page_bytes) } {
            // SAFETY: just reserved.
            unsafe { system::release(start, all * page_bytes) };
            return None;
        }
        // SAFETY: behind the table.
        let first = unsafe { start.add(front * page_bytes) };
        let memory = Memory::Reserved(all * page_bytes);
        // SAFETY: the table is in front of the pages; all of it is zero, and nobody else's.
        Some(unsafe { Self::begin(start.cast(), memory, first, pages, Kind::Clean) })
    }

    /// Makes a segment of a region, with its table on the heap.
    pub(super) fn of_region(region: Region, page_bytes: usize) -> Result<NonNull<Self>, RegionError> {
        let (first, pages) = (region.as_ptr(), region.len() / page_bytes);
        let table = Region::heap_aligned(table_bytes(pages), align_of::<Self>())?;
        let start = table.as_ptr().cast();
        let memory = Memory::Regions(table, ManuallyDrop::new(region));
        // SAFETY: as many bytes, aligned so, zero and nobody else's.
        Ok(unsafe { Self::begin(start, memory, first, pages, Kind::Dirty) })
    }

    /// Writes a segment and its table, with one extent that is in no list.
    ///
    /// # Safety
    ///
    /// `table_bytes(pages)` bytes from `start` are valid, zero and nobody else's, and `pages` pages
    /// from `first`.
    unsafe fn begin(
        start: NonNull<Self>,
        memory: Memory,
        first: NonNull<u8>,
        pages: usize,
        kind: Kind,
    ) -> NonNull<Self> {
        let segment = Self { next: ptr::null_mut(), previous: ptr::null_mut(), pages, memory };
        // SAFETY: the caller's promise.
        unsafe { start.write(segment) };
        // SAFETY: the table is behind it.
        let edge = unsafe { start.add(1) }.cast::<Entry>();
        // SAFETY: zero bytes are entries, of an edge.
        unsafe { (*edge.as_ptr()).place.segment = start.as_ptr() };
        // SAFETY: likewise.
        let entry = unsafe { edge.add(1) };
        // SAFETY: likewise.
        unsafe { (*entry.as_ptr()).start = first.as_ptr() };
        // SAFETY: likewise; the last edge is behind these.
        unsafe { index::write(entry, pages, kind) };
        start
    }

    /// Returns the entry of the first page.
    pub(super) fn first(this: NonNull<Self>) -> NonNull<Entry> {
        // SAFETY: the table is behind the segment, an edge first.
        unsafe { this.add(1).cast::<Entry>().add(1) }
    }

    /// Returns the entry of the page at `address`, if it is one of this segment's.
    pub(super) fn entry_of(
        this: NonNull<Self>,
        address: NonNull<u8>,
        page_bytes: usize,
    ) -> Option<NonNull<Entry>> {
        let first = Self::first(this);
        // SAFETY: the first entry has the address of the first page.
        let from = unsafe { index::start_at(first) };
        let page = address.addr().get().checked_sub(from.addr())? / page_bytes;
        // SAFETY: the segment is there while it is in a list; an entry for each page.
        (page < unsafe { this.as_ref() }.pages).then(|| unsafe { first.add(page) })
    }

    /// Returns the segment of which a free extent is all, if it is that.
    ///
    /// # Safety
    ///
    /// The first entry of an extent.
    pub(super) unsafe fn of_whole(first: NonNull<Entry>) -> Option<NonNull<Self>> {
        // SAFETY: the entry in front of an extent is in the table (X1).
        let edge = unsafe { first.sub(1) };
        // SAFETY: likewise.
        if unsafe { index::kind_at(edge) } != Kind::Edge {
            return None;
        }
        // SAFETY: an edge in front has its segment.
        let segment = NonNull::new(unsafe { (*edge.as_ptr()).place.segment })?;
        // SAFETY: the caller's promise; the segment is there.
        (unsafe { index::pages_at(first) == segment.as_ref().pages }).then_some(segment)
    }

    /// Puts a segment on a list.
    ///
    /// # Safety
    ///
    /// Both are the caller's.
    pub(super) unsafe fn link(this: NonNull<Self>, head: &mut *mut Self) {
        // SAFETY: the caller's promise.
        unsafe {
            (*this.as_ptr()).next = *head;
            (*this.as_ptr()).previous = ptr::null_mut();
            if let Some(next) = NonNull::new(*head) {
                (*next.as_ptr()).previous = this.as_ptr();
            }
        }
        *head = this.as_ptr();
    }

    /// Takes a segment off its list.
    ///
    /// # Safety
    ///
    /// It is on this list, which is the caller's.
    pub(super) unsafe fn unlink(this: NonNull<Self>, head: &mut *mut Self) {
        // SAFETY: the caller's promise.
        let (next, previous) = unsafe { (this.as_ref().next, this.as_ref().previous) };
        // SAFETY: on the same list.
        unsafe {
            match NonNull::new(previous) {
                Some(previous) => (*previous.as_ptr()).next = next,
                None => *head = next,
            }
            if let Some(next) = NonNull::new(next) {
                (*next.as_ptr()).previous = previous;
            }
        }
    }

    /// Returns the bytes of addresses, with the table's.
    pub(super) fn reserved_bytes(&self) -> usize {
        match &self.memory {
            Memory::Reserved(bytes) => *bytes,
            Memory::Regions(_, region) => region.len(),
        }
    }

    /// Gives all segments of a list back, but no lost addresses: `torn` has the bytes of a page if
    /// there are any. Providers are called in this.
    ///
    /// # Safety
    ///
    /// They are the caller's, and nobody uses their pages.
    pub(super) unsafe fn drop_all(head: *mut Self, torn: Option<usize>) {
        let mut next = head;
        while let Some(this) = NonNull::new(next) {
            // SAFETY: the caller's promise.
            let mut segment = unsafe { this.read() };
            next = segment.next;
            match &mut segment.memory {
                Memory::Reserved(bytes) => {
                    // SAFETY: likewise.
                    let kept = torn.and_then(|bytes| unsafe { Self::release_behind_lost(this, bytes) });
                    // SAFETY: all of it that is left, and not used again (Y1).
                    unsafe { system::release(this.cast(), kept.unwrap_or(*bytes)) };
                }
                // SAFETY: taken once. The table goes after it.
                Memory::Regions(_, region) => unsafe { ManuallyDrop::drop(region) },
            }
        }
    }

    /// Gives back what is behind the first lost addresses of a reservation. Returns how many bytes
    /// are in front of these, if some are lost.
    ///
    /// # Safety
    ///
    /// As for `drop_all`.
    unsafe fn release_behind_lost(this: NonNull<Self>, page_bytes: usize) -> Option<usize> {
        // SAFETY: the caller's promise: extents that follow each other (X1).
        unsafe {
            let (mut entry, mut kept) = (Self::first(this), None);
            let end = entry.add(this.as_ref().pages);
            while entry < end {
                let (start, pages) = (index::start_at(entry), index::pages_at(entry));
                if index::kind_at(entry) == Kind::Lost {
                    kept = kept.or(Some(start.addr() - this.addr().get()));
                } else if let (Some(start), Some(_)) = (NonNull::new(start), kept) {
                    system::release(start, pages * page_bytes);
                }
                entry = entry.add(pages);
            }
            kept
        }
    }
}
