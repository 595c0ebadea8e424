//! Which span a request gets.

use core::ptr::NonNull;

use super::give_back::Order;
use super::index::{self, Entry, Kind};
use super::inner::{Inner, Refused};
use super::segment::Segment;
use super::system;

/// For so much at once that is not there yet, the system is asked whether it has it.
const ASKED_FROM_BYTES: usize = 256 << 20;

impl Inner {
    /// Takes a span of `pages` pages whose start is a multiple of `alignment` bytes.
    pub(super) fn take(&mut self, pages: usize, alignment: usize) -> Result<NonNull<Entry>, Refused> {
        let wanted = pages + (alignment / self.page_bytes).saturating_sub(1);
        if let Some(found) = self.index.dirty.fit(wanted) {
            // SAFETY: of the list.
            let first = unsafe { self.cut(found, 0, pages, alignment) };
            // SAFETY: a held extent, all of it.
            return Ok(unsafe { self.end_take(first, pages) });
        }
        if !self.is_reserved {
            return Err(match wanted.checked_next_multiple_of(self.grain) {
                Some(wanted) => self.segment_for(wanted),
                None => Refused::System,
            });
        }
        if pages > self.left() {
            return Err(Refused::Exhausted(self.left()));
        }
        if pages >= ASKED_FROM_BYTES / self.page_bytes && !system::has(pages * self.page_bytes) {
            return Err(Refused::System);
        }
        loop {
            let (window, at) = match self.window(wanted) {
                Some(found) => found,
                None => {
                    self.reserve(wanted)?;
                    continue;
                }
            };
            // SAFETY: free extents of this many pages follow each other.
            let first = unsafe { self.cut(window, at, pages, alignment) };
            // SAFETY: held extents.
            match unsafe { self.fill(first, pages) } {
                // SAFETY: likewise.
                Ok(true) => return Ok(unsafe { self.end_take(first, pages) }),
                Ok(false) => {}
                Err(refused) => return Err(refused),
            }
        }
    }

    /// Finds free extents that follow each other and have this number of pages together: around one
    /// of the largest that the process has, or else a small one of those that it has not. Returns
    /// the first, and where the dirty one starts in them, in pages.
    fn window(&self, wanted: usize) -> Option<(NonNull<Entry>, usize)> {
        if let Some(dirty) = self.index.dirty.largest() {
            // SAFETY: entries of extents that follow each other, up to an edge (X1).
            unsafe {
                let (mut first, mut total) = (dirty, dirty.as_ref().pages as usize);
                let mut behind = dirty.add(total);
                while total < wanted && matches!(behind.as_ref().kind, Kind::Dirty | Kind::Clean) {
                    let pages = behind.as_ref().pages as usize;
                    total += pages;
                    behind = behind.add(pages);
                }
                let mut at = 0;
                while total < wanted {
                    let in_front = first.sub(1).as_ref();
                    if !matches!(in_front.kind, Kind::Dirty | Kind::Clean) {
                        break;
                    }
                    let pages = in_front.pages as usize;
                    (first, total, at) = (first.sub(pages), total + pages, at + pages);
                }
                if total >= wanted {
                    return Some((first, at));
                }
            }
        }
        Some((self.index.clean.fit(wanted)?, 0))
    }

    /// Takes `pages` pages out of free extents that follow each other from `window` on, at `at` if
    /// that leaves enough, and aligned. They are held extents then, in no list.
    ///
    /// # Safety
    ///
    /// There are at least as many, and as many more as the alignment may take.
    unsafe fn cut(
        &mut self,
        window: NonNull<Entry>,
        at: usize,
        pages: usize,
        alignment: usize,
    ) -> NonNull<Entry> {
        let page_bytes = self.page_bytes;
        // SAFETY: the first entry of an extent.
        let start = unsafe { window.as_ref() }.start.addr();
        // How many there are; not beyond what is needed from `at` on.
        let (mut total, mut entry) = (0, window);
        let most = at + pages + alignment / page_bytes;
        // SAFETY: extents that follow each other (X1).
        while total < most && matches!(unsafe { entry.as_ref() }.kind, Kind::Dirty | Kind::Clean) {
            // SAFETY: likewise.
            let its = unsafe { entry.as_ref() }.pages as usize;
            total += its;
            // SAFETY: likewise.
            entry = unsafe { entry.add(its) };
        }
        let latest = start + at.min(total - pages) * page_bytes;
        let alignment = alignment.max(page_bytes);
        let from = if latest / alignment * alignment >= start {
            latest / alignment * alignment
        } else {
            start.next_multiple_of(alignment)
        };
        let skip = (from - start) / page_bytes;
        debug_assert!(skip + pages <= total);
        // SAFETY: the entries are those of free extents, which are ours from when they are off the
        // lists. Parts outside are added when all others are held.
        unsafe { self.hold(window, skip, pages) }
    }

    /// Takes the pages from `skip` on, `pages` of them, out of the free extents from `window` on.
    ///
    /// # Safety
    ///
    /// There are as many.
    unsafe fn hold(&mut self, window: NonNull<Entry>, skip: usize, pages: usize) -> NonNull<Entry> {
        let (page_bytes, end) = (self.page_bytes, skip + pages);
        let (mut entry, mut position) = (window, 0);
        // SAFETY: within the table, by the caller's promise.
        let first = unsafe { window.add(skip) };
        while position < end {
            // SAFETY: extents that follow each other, up to `end`.
            unsafe {
                let (its, kind) = (entry.as_ref().pages as usize, entry.as_ref().kind);
                let next = (entry.add(its), position + its);
                if next.1 > skip {
                    self.index.remove(entry);
                    let mut held = entry;
                    if position < skip {
                        held = index::split(entry, skip - position, page_bytes);
                    }
                    let from = position.max(skip);
                    let rest = (next.1 > end).then(|| index::split(held, end - from, page_bytes));
                    let kind_held = if kind == Kind::Dirty { Kind::HeldDirty } else { Kind::HeldClean };
                    index::write(held, next.1.min(end) - from, kind_held);
                    if position < skip {
                        self.index.add(entry, skip - position, kind);
                    }
                    if let Some(rest) = rest {
                        self.index.add(rest, next.1 - end, kind);
                    }
                }
                (entry, position) = next;
            }
        }
        first
    }

    /// Makes one used extent of held ones.
    ///
    /// # Safety
    ///
    /// The held extents from `first` on have this number of pages.
    unsafe fn end_take(&mut self, first: NonNull<Entry>, pages: usize) -> NonNull<Entry> {
        // SAFETY: the caller's promise.
        let entry = unsafe { first.as_ref() };
        let is_zero = entry.kind == Kind::HeldClean && entry.pages as usize == pages;
        // SAFETY: likewise.
        unsafe {
            index::write(first, pages, Kind::Used);
            (*first.as_ptr()).is_zero = is_zero;
            (*first.as_ptr()).page_shift = self.page_bytes.trailing_zeros() as u8;
        }
        self.used += pages;
        self.least_dirty = self.least_dirty.min(self.index.dirty.pages);
        self.most_resident = self.most_resident.max(self.resident());
        first
    }

    /// Puts held extents back.
    ///
    /// # Safety
    ///
    /// As for `end_take`.
    unsafe fn put_back(&mut self, first: NonNull<Entry>, pages: usize) {
        let (mut entry, mut left) = (first, pages);
        while left > 0 {
            // SAFETY: the caller's promise.
            unsafe {
                let its = entry.as_ref().pages as usize;
                let kind = if entry.as_ref().kind == Kind::HeldDirty { Kind::Dirty } else { Kind::Clean };
                let is_lost = entry.as_ref().kind == Kind::Used;
                let next = entry.add(its);
                if !is_lost {
                    self.index.add(entry, its, kind);
                }
                (entry, left) = (next, left - its);
            }
        }
    }

    /// Gathers pages in held extents, and sees to it that the rest of them has room within the
    /// limit. Returns `false` if some addresses are lost: then nothing is held any more.
    ///
    /// # Safety
    ///
    /// As for `end_take`.
    unsafe fn fill(&mut self, first: NonNull<Entry>, pages: usize) -> Result<bool, Refused> {
        self.pause = self.pause.saturating_sub(1);
        let (mut entry, mut left, mut dirty, mut missing) = (first, pages, 0, 0);
        while left > 0 {
            // SAFETY: held extents that follow each other.
            let (its, kind) = unsafe { (entry.as_ref().pages as usize, entry.as_ref().kind) };
            if kind == Kind::HeldDirty {
                dirty += its;
            } else {
                // SAFETY: a held extent of clean pages.
                match unsafe { self.gather(entry) } {
                    Some(there) => {
                        dirty += there;
                        missing += its - there;
                    }
                    None => {
                        // SAFETY: as above.
                        unsafe { self.put_back(first, pages) };
                        return Ok(false);
                    }
                }
            }
            left -= its;
            // SAFETY: as above.
            entry = unsafe { entry.add(its) };
        }
        let others = self.limit.saturating_sub(self.used + pages);
        debug_assert!(dirty + missing == pages);
        let is_done = self.return_pages(others, Order::Smallest) && {
            let (mut entry, mut left, mut is_done) = (first, pages, true);
            while left > 0 && is_done {
                // SAFETY: held extents; the pages are nobody else's.
                unsafe {
                    let its = entry.as_ref().pages as usize;
                    if entry.as_ref().kind == Kind::HeldClean
                        && let Some(start) = NonNull::new(entry.as_ref().start)
                    {
                        is_done = system::commit(start, its * self.page_bytes);
                    }
                    left -= its;
                    entry = entry.add(its);
                }
            }
            is_done
        };
        if !is_done {
            // SAFETY: as above.
            unsafe { self.put_back(first, pages) };
            return Err(Refused::System);
        }
        self.faulted += missing;
        Ok(true)
    }

    /// Makes room in the limit for a segment of `pages` pages.
    fn segment_for(&mut self, pages: usize) -> Refused {
        let over = self.resident().saturating_add(pages).saturating_sub(self.limit);
        let target = self.index.dirty.pages.checked_sub(over);
        if !self.return_pages(target.unwrap_or(0), Order::Largest) || target.is_none() {
            // SAFETY: of the list.
            let largest = self.index.dirty.largest().map_or(0, |entry| unsafe { entry.as_ref() }.pages);
            return Refused::Exhausted((self.limit - self.resident().min(self.limit)).max(largest as usize));
        }
        self.used += pages;
        Refused::Segment(pages)
    }

    /// Takes back that a segment of `pages` pages counts.
    pub(super) fn cancel_segment(&mut self, pages: usize) {
        self.used -= pages;
    }

    /// Adds a segment that was asked for, and takes a span of it.
    ///
    /// # Safety
    ///
    /// New, from `Segment::of_region`; `counted` pages count as used for it, of which a span of
    /// `pages` pages with this alignment fits.
    pub(super) unsafe fn take_of(
        &mut self,
        segment: NonNull<Segment>,
        counted: usize,
        pages: usize,
        alignment: usize,
    ) -> NonNull<Entry> {
        self.used -= counted;
        // SAFETY: the caller's promise.
        unsafe {
            self.adopt(segment);
            let all = self.index.add(Segment::first(segment), segment.as_ref().pages, Kind::Dirty);
            self.faulted += all.as_ref().pages as usize;
            let first = self.cut(all, 0, pages, alignment);
            let span = self.end_take(first, pages);
            (*span.as_ptr()).is_zero = true;
            span
        }
    }

    /// Takes a span back.
    ///
    /// # Safety
    ///
    /// The first entry of a used extent, which the caller gives up.
    pub(super) unsafe fn give(&mut self, first: NonNull<Entry>) {
        // SAFETY: the caller's promise.
        let pages = unsafe { first.as_ref() }.pages as usize;
        self.used -= pages;
        // SAFETY: likewise.
        unsafe { self.index.add(first, pages, Kind::Dirty) };
    }
}
