//! Which span a request gets.

use core::ptr::NonNull;

use super::give_back::Order;
use super::index::{self, Entry, Kind, LOOKS, MOST_PAGES};
use super::inner::{Inner, Refused};
use super::segment::Segment;
use super::system::{self, Outcome};

/// For so much at once that is not there yet, the system is asked whether it has it.
const ASKED_FROM_BYTES: usize = 256 << 20;
/// Pages are moved where more is free than so many bytes and this share of what is used. Where
/// sizes vary, each move to fill a hole makes another, and takes longer than page faults do once.
const FREE_BYTES: usize = 4 << 20;
const FREE_OF: usize = 8;

impl Inner {
    /// Takes a span of `pages` pages whose start is a multiple of `alignment` bytes. A segment that
    /// is free and much larger stays whole, so that it can go, unless `is_last_resort`.
    pub(super) fn take(
        &mut self,
        pages: usize,
        alignment: usize,
        is_last_resort: bool,
    ) -> Result<NonNull<Entry>, Refused> {
        let wanted = pages + (alignment / self.page_bytes).saturating_sub(1);
        if wanted > MOST_PAGES {
            return Err(Refused::System);
        }
        let stays = |&found: &NonNull<Entry>| {
            // SAFETY: of the list.
            let is_large = || unsafe { index::pages_at(found) } > self.grain.max(2 * wanted);
            // SAFETY: likewise.
            !self.is_reserved
                && !is_last_resort
                && is_large()
                && unsafe { Segment::of_whole(found) }.is_some()
        };
        if let Some(found) = self.index.dirty.fit(wanted, LOOKS).filter(|found| !stays(found)) {
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
        if !self.has_room(pages) {
            return Err(Refused::System);
        }
        let mut looks = LOOKS;
        loop {
            let Some((window, at)) = self.window(wanted, looks) else {
                if self.reserve(wanted).is_err() {
                    if looks == usize::MAX {
                        return Err(Refused::System);
                    }
                    // Free runs are longest when none is dirty.
                    self.return_pages(0, Order::Largest);
                    looks = usize::MAX;
                }
                continue;
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

    /// Returns whether the limit has room for so many more pages, and the system memory.
    pub(super) fn has_room(&self, pages: usize) -> bool {
        let is_much = pages >= ASKED_FROM_BYTES / self.page_bytes;
        pages <= self.left() && (!is_much || system::has(pages * self.page_bytes))
    }

    /// Finds free extents that follow each other and have this number of pages together: around one
    /// of the largest that the process has, or else a small one of those that it has not, of which
    /// it looks at `looks`. Returns the first, and where the dirty one starts in them, in pages.
    fn window(&self, wanted: usize, looks: usize) -> Option<(NonNull<Entry>, usize)> {
        if let Some(dirty) = self.index.dirty.largest() {
            // SAFETY: entries of extents that follow each other, up to an edge (X1).
            unsafe {
                let (mut first, mut total) = (dirty, index::pages_at(dirty));
                let mut behind = dirty.add(total);
                while total < wanted && matches!(index::kind_at(behind), Kind::Dirty | Kind::Clean) {
                    let pages = index::pages_at(behind);
                    total += pages;
                    behind = behind.add(pages);
                }
                let mut at = 0;
                while total < wanted {
                    let in_front = first.sub(1);
                    if !matches!(index::kind_at(in_front), Kind::Dirty | Kind::Clean) {
                        break;
                    }
                    let pages = index::pages_at(in_front);
                    (first, total, at) = (first.sub(pages), total + pages, at + pages);
                }
                if total >= wanted {
                    return Some((first, at));
                }
            }
        }
        Some((self.index.clean.fit(wanted, looks)?, 0))
    }

    /// Takes `pages` pages out of free extents that follow each other from `window` on, at `at` if
    /// that leaves enough, and aligned. They are held extents then, in no list.
    ///
    /// # Safety
    ///
    /// There are at least as many, and as many more as the alignment may take.
    pub(super) unsafe fn cut(
        &mut self,
        window: NonNull<Entry>,
        at: usize,
        pages: usize,
        alignment: usize,
    ) -> NonNull<Entry> {
        let page_bytes = self.page_bytes;
        // SAFETY: the first entry of an extent.
        let start = unsafe { index::start_at(window) }.addr();
        // How many there are; not beyond what is needed from `at` on.
        let (mut total, mut entry) = (0, window);
        let most = at + pages + alignment / page_bytes;
        // SAFETY: extents that follow each other (X1).
        while total < most && matches!(unsafe { index::kind_at(entry) }, Kind::Dirty | Kind::Clean) {
            // SAFETY: likewise.
            let its = unsafe { index::pages_at(entry) };
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
    pub(super) unsafe fn hold(
        &mut self,
        window: NonNull<Entry>,
        skip: usize,
        pages: usize,
    ) -> NonNull<Entry> {
        let (page_bytes, end) = (self.page_bytes, skip + pages);
        let (mut entry, mut position) = (window, 0);
        // SAFETY: within the table, by the caller's promise.
        let first = unsafe { window.add(skip) };
        while position < end {
            // SAFETY: extents that follow each other, up to `end`.
            unsafe {
                let (its, kind) = (index::pages_at(entry), index::kind_at(entry));
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
    pub(super) unsafe fn end_take(&mut self, first: NonNull<Entry>, pages: usize) -> NonNull<Entry> {
        // SAFETY: the caller's promise.
        let is_zero = unsafe { index::kind_at(first) == Kind::HeldClean && index::pages_at(first) == pages };
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
    pub(super) unsafe fn put_back(&mut self, first: NonNull<Entry>, pages: usize) {
        // SAFETY: the caller's promise; each is off the lists, or lost.
        unsafe {
            for entry in index::extents(first, pages) {
                let its = index::pages_at(entry);
                match index::kind_at(entry) {
                    Kind::Lost => {}
                    Kind::HeldDirty => _ = self.index.add(entry, its, Kind::Dirty),
                    _ => _ = self.index.add(entry, its, Kind::Clean),
                }
            }
        }
    }

    /// Gathers pages in held extents, and sees to it that the rest of them has room within the
    /// limit. Returns `false` if some addresses are lost: then nothing is held any more.
    ///
    /// # Safety
    ///
    /// As for `end_take`.
    pub(super) unsafe fn fill(&mut self, first: NonNull<Entry>, pages: usize) -> Result<bool, Refused> {
        self.pause = self.pause.saturating_sub(1);
        let mut missing = 0;
        let moves = self.is_thrifty || self.is_much_free() || self.resident() + pages > self.limit;
        // SAFETY: the caller's promise.
        for entry in unsafe { index::extents(first, pages) } {
            // SAFETY: held extents.
            unsafe {
                if index::kind_at(entry) == Kind::HeldClean {
                    let its = index::pages_at(entry);
                    let there = if moves { self.gather(entry) } else { Some(0) };
                    let Some(there) = there else {
                        self.put_back(first, pages);
                        return Ok(false);
                    };
                    missing += its - there;
                }
            }
        }
        let others = self.limit.saturating_sub(self.used + pages);
        // SAFETY: as above.
        unsafe {
            if !self.return_pages(others, Order::Smallest) || !self.commit(first, pages) {
                self.put_back(first, pages);
                return Err(Refused::System);
            }
        }
        self.count_faulted(missing);
        Ok(true)
    }

    /// Returns whether more is free than what sizes that vary leave in holes.
    fn is_much_free(&self) -> bool {
        self.index.dirty.pages > FREE_BYTES / self.page_bytes + self.used / FREE_OF
    }

    /// Makes held clean extents usable: all of them, or none.
    ///
    /// # Safety
    ///
    /// As for `end_take`.
    pub(super) unsafe fn commit(&mut self, first: NonNull<Entry>, pages: usize) -> bool {
        // SAFETY: the caller's promise; the pages are nobody else's, and nothing is in them.
        unsafe {
            let clean = |entry: &NonNull<Entry>| index::kind_at(*entry) == Kind::HeldClean;
            let bytes_of = |entry, page_bytes: usize| {
                (NonNull::new_unchecked(index::start_at(entry)), index::pages_at(entry) * page_bytes)
            };
            for (position, entry) in index::extents(first, pages).filter(clean).enumerate() {
                let (start, bytes) = bytes_of(entry, self.page_bytes);
                if !system::commit(start, bytes) {
                    for entry in index::extents(first, pages).filter(clean).take(position) {
                        let (start, bytes) = bytes_of(entry, self.page_bytes);
                        // Where that is refused, they stay usable, and zero.
                        if system::give_back(start, bytes) == Outcome::Lost {
                            self.lose(entry, bytes / self.page_bytes);
                        }
                    }
                    return false;
                }
            }
        }
        true
    }

    /// Makes room in the limit for a segment of `pages` pages.
    fn segment_for(&mut self, pages: usize) -> Refused {
        let over = self.resident().saturating_add(pages).saturating_sub(self.limit);
        let target = self.index.dirty.pages.checked_sub(over);
        if !self.return_pages(target.unwrap_or(0), Order::Largest) || target.is_none() {
            // SAFETY: of the list.
            let largest = self.index.dirty.largest().map_or(0, |entry| unsafe { index::pages_at(entry) });
            return Refused::Exhausted((self.limit - self.resident().min(self.limit)).max(largest));
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
            self.count_faulted(index::pages_at(all));
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
        let pages = unsafe { index::pages_at(first) };
        self.used -= pages;
        // SAFETY: likewise.
        unsafe { self.index.add(first, pages, Kind::Dirty) };
    }
}
