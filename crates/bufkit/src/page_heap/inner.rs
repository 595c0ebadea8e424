//! What is behind the lock of a heap: which span a request gets, and which pages go.

use core::mem;
use core::ptr::{self, NonNull};

use super::index::{self, Entry, Index, Kind};
use super::segment::Segment;
use super::slab::Slabs;
use super::system::{self, Moved};

/// The least that is moved in place of being touched anew, in pages: of shorter runs, a call to the
/// system for each takes longer than the page faults.
const MOVE_FROM_PAGES: usize = 16;
/// After the system refused to move pages, so many requests do not ask.
const MOVES_PAUSE: u32 = 64;
/// So many mappings the pages that were moved may make, of the 65,530 that Linux allows a process.
const MOST_MAPPINGS: usize = 16 << 10;
/// The least and the most that is reserved at once.
const LEAST_RESERVED: usize = 64 << 20;
#[cfg(all(target_pointer_width = "64", not(windows)))]
const MOST_RESERVED: usize = 64 << 30;
// Windows counts the tables.
#[cfg(all(target_pointer_width = "64", windows))]
const MOST_RESERVED: usize = 1 << 30;
#[cfg(not(target_pointer_width = "64"))]
const MOST_RESERVED: usize = 64 << 20;
/// Where there is no limit and nobody looks after the memory, so much stays that nobody uses.
const MOST_DIRTY_BYTES: usize = 32 << 20;
/// With so many pages that went back side by side, their table goes too.
const TABLE_FROM_PAGES: usize = 1024;
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
    segments: *mut Segment,
    /// Segments to give back without the lock.
    pub(super) leaving: *mut Segment,
    pub(super) page_bytes: usize,
    /// Whether addresses are reserved.
    pub(super) is_reserved: bool,
    /// Whether free pages go at once; whether somebody looks after them.
    pub(super) is_ended: bool,
    is_watched: bool,
    /// In pages, as all that follows.
    grain: usize,
    pub(super) limit: usize,
    /// Spans, and segments that were asked for.
    pub(super) used: usize,
    /// The least that was dirty since the last look.
    least_dirty: usize,
    /// Of all segments, with their tables.
    pub(super) reserved_bytes: usize,
    pub(super) most_resident: usize,
    /// Pages that the system had to give, that went back, and that were moved.
    pub(super) faulted: usize,
    pub(super) returned: usize,
    pub(super) moved: usize,
    /// Pages that the system refused to take.
    pub(super) refusals: usize,
    mappings: usize,
    pause: u32,
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
            is_ended: false,
            is_watched: false,
            grain,
            limit,
            used: 0,
            least_dirty: 0,
            reserved_bytes: 0,
            most_resident: 0,
            faulted: 0,
            returned: 0,
            moved: 0,
            refusals: 0,
            mappings: 0,
            pause: 0,
        }
    }

    /// Pages that the process has.
    pub(super) fn resident(&self) -> usize {
        self.used + self.index.dirty.pages
    }

    /// Returns how many pages are left of the limit, if all that is free goes.
    pub(super) fn left(&self) -> usize {
        self.limit.saturating_sub(self.used)
    }

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

    /// Moves dirty pages from elsewhere to a held extent of clean ones, from its start on, as long
    /// as that takes less time than to touch new ones. Returns how many came, or `None` if some of
    /// the addresses are lost. What came is a held extent, and the rest another.
    ///
    /// # Safety
    ///
    /// The extent is held.
    unsafe fn gather(&mut self, held: NonNull<Entry>) -> Option<usize> {
        let page_bytes = self.page_bytes;
        // SAFETY: the caller's promise.
        let (all, start) = unsafe { (held.as_ref().pages as usize, held.as_ref().start) };
        let (mut there, mut most) = (0, usize::MAX);
        if self.mappings > MOST_MAPPINGS {
            self.join_mappings();
        }
        while self.pause == 0 && self.mappings <= MOST_MAPPINGS && all - there >= MOVE_FROM_PAGES {
            let Some(source) = self.index.dirty.largest() else { break };
            // SAFETY: of the list.
            let its = unsafe { source.as_ref() }.pages as usize;
            let count = its.min(all - there).min(most);
            if its < MOVE_FROM_PAGES || count < MOVE_FROM_PAGES {
                break;
            }
            // SAFETY: of the list, and from then on ours; the held extent is as well.
            unsafe {
                self.index.remove(source);
                let mut from = source;
                if count < its {
                    from = index::split(source, its - count, page_bytes);
                    index::write(from, count, Kind::HeldDirty);
                    self.index.add(source, its - count, Kind::Dirty);
                }
                let to = NonNull::new_unchecked(start.add(there * page_bytes));
                let old = NonNull::new_unchecked(from.as_ref().start);
                match system::move_pages(old, to, count * page_bytes) {
                    Moved::Yes => {
                        self.index.add(from, count, Kind::Clean);
                        there += count;
                        self.moved += count;
                        self.mappings += 2;
                    }
                    Moved::No => {
                        self.index.add(from, count, Kind::Dirty);
                        // It may be of several mappings, which older kernels do not move at once.
                        most = count / 2;
                        if most < MOVE_FROM_PAGES {
                            self.pause = MOVES_PAUSE;
                        }
                    }
                    Moved::Lost => {
                        self.index.add(from, count, Kind::Dirty);
                        self.pause = MOVES_PAUSE;
                        self.mark(held, all, there);
                        let lost = if there > 0 { held.add(there) } else { held };
                        if count < all - there {
                            let rest = index::split(lost, count, page_bytes);
                            index::write(rest, all - there - count, Kind::HeldClean);
                        }
                        index::write(lost, count, Kind::Used);
                        return None;
                    }
                }
            }
        }
        // SAFETY: the caller's promise.
        unsafe { self.mark(held, all, there) };
        Some(there)
    }

    /// Writes down that the first `there` pages of a held extent came.
    ///
    /// # Safety
    ///
    /// The extent is held, and of `all` pages.
    unsafe fn mark(&self, held: NonNull<Entry>, all: usize, there: usize) {
        // SAFETY: the caller's promise.
        unsafe {
            if there == all {
                index::write(held, all, Kind::HeldDirty);
            } else if there > 0 {
                let rest = index::split(held, there, self.page_bytes);
                index::write(rest, all - there, Kind::HeldClean);
                index::write(held, there, Kind::HeldDirty);
            }
        }
    }

    /// Gives all free pages back with their mappings made anew, so that they join.
    #[cold]
    fn join_mappings(&mut self) {
        self.mappings = 0;
        for segment in self.segments() {
            let (mut entry, end) = (Segment::first(segment), unsafe {
                // SAFETY: the heap's.
                Segment::first(segment).add(segment.as_ref().pages)
            });
            while entry < end {
                // SAFETY: extents that follow each other (X1).
                unsafe {
                    let (pages, kind) = (entry.as_ref().pages as usize, entry.as_ref().kind);
                    if matches!(kind, Kind::Dirty | Kind::Clean) {
                        if let Some(start) = NonNull::new(entry.as_ref().start)
                            && system::give_back(start, pages * self.page_bytes, true)
                            && kind == Kind::Dirty
                        {
                            self.returned += pages;
                            self.index.remove(entry);
                            // Joins with those around: the walk goes on behind all of them.
                            let joined = self.index.add(entry, pages, Kind::Clean);
                            entry = joined.add(joined.as_ref().pages as usize);
                            continue;
                        }
                    } else {
                        self.mappings += 1;
                    }
                    entry = entry.add(pages);
                }
            }
        }
    }

    fn segments(&self) -> impl Iterator<Item = NonNull<Segment>> + use<> {
        let mut next = NonNull::new(self.segments);
        core::iter::from_fn(move || {
            let segment = next?;
            // SAFETY: the heap's, as long as it is locked.
            next = NonNull::new(unsafe { segment.as_ref() }.next);
            Some(segment)
        })
    }

    /// Reserves addresses for `wanted` pages or more.
    fn reserve(&mut self, wanted: usize) -> Result<(), Refused> {
        let usual = if self.limit <= MOST_RESERVED / self.page_bytes {
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
    unsafe fn adopt(&mut self, segment: NonNull<Segment>) {
        // SAFETY: the caller's promise.
        unsafe { Segment::link(segment, &mut self.segments) };
        // SAFETY: likewise.
        self.reserved_bytes += unsafe { segment.as_ref() }.reserved_bytes();
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

    /// Gives dirty pages back to the system until at most `target` are left. Returns whether that
    /// is so.
    pub(super) fn return_pages(&mut self, target: usize, order: Order) -> bool {
        if !self.is_reserved {
            return self.return_segments(target);
        }
        while self.index.dirty.pages > target {
            let extent = match order {
                Order::Smallest => self.index.dirty.smallest(),
                Order::Largest => self.index.dirty.largest(),
            };
            let Some(mut extent) = extent else { break };
            // SAFETY: of the list, and from then on ours.
            unsafe {
                self.index.remove(extent);
                let its = extent.as_ref().pages as usize;
                // What the list had with it.
                let count = its.min(self.index.dirty.pages + its - target);
                if count < its {
                    let rest = index::split(extent, its - count, self.page_bytes);
                    index::write(rest, count, Kind::HeldDirty);
                    self.index.add(extent, its - count, Kind::Dirty);
                    extent = rest;
                }
                let is_gone = NonNull::new(extent.as_ref().start)
                    .is_some_and(|start| system::give_back(start, count * self.page_bytes, false));
                if !is_gone {
                    self.index.add(extent, count, Kind::Dirty);
                    self.refusals += count;
                    break;
                }
                self.returned += count;
                let joined = self.index.add(extent, count, Kind::Clean);
                let pages = joined.as_ref().pages as usize;
                if pages / TABLE_FROM_PAGES != (pages - count) / TABLE_FROM_PAGES {
                    self.return_table(joined);
                }
            }
        }
        self.least_dirty = self.least_dirty.min(self.index.dirty.pages);
        self.index.dirty.pages <= target
    }

    /// Gives back the pages of the table that only have entries within a clean extent, which say
    /// nothing.
    ///
    /// # Safety
    ///
    /// The first entry of a clean extent of a reservation.
    unsafe fn return_table(&self, first: NonNull<Entry>) {
        // SAFETY: the caller's promise.
        let pages = unsafe { first.as_ref() }.pages as usize;
        let (from, to) =
            (first.addr().get() + size_of::<Entry>(), first.addr().get() + (pages - 1) * size_of::<Entry>());
        let (from, to) = (from.next_multiple_of(self.page_bytes), to / self.page_bytes * self.page_bytes);
        // Windows would have to commit them again.
        if cfg!(unix) && from < to {
            // SAFETY: within the table; nobody reads these entries before they are written.
            unsafe {
                let start = first.cast::<u8>().add(from - first.addr().get());
                system::give_back(start, to - from, false);
            }
        }
    }

    /// Lets whole segments go, whose pages do not go one by one.
    fn return_segments(&mut self, target: usize) -> bool {
        for segment in self.segments() {
            if self.index.dirty.pages <= target {
                break;
            }
            let first = Segment::first(segment);
            // SAFETY: the heap's; a free extent is in its list.
            unsafe {
                if first.as_ref().kind == Kind::Dirty && Segment::of_whole(first).is_some() {
                    self.returned += segment.as_ref().pages;
                    self.reserved_bytes -= segment.as_ref().reserved_bytes();
                    self.index.remove(first);
                    Segment::unlink(segment, &mut self.segments);
                    Segment::link(segment, &mut self.leaving);
                }
            }
        }
        self.least_dirty = self.least_dirty.min(self.index.dirty.pages);
        self.index.dirty.pages <= target
    }

    /// Gives back the tables of all that is clean.
    pub(super) fn return_tables(&self) {
        if self.is_reserved {
            for first in self.index.clean.from(TABLE_FROM_PAGES) {
                // SAFETY: of the list.
                unsafe { self.return_table(first) };
            }
        }
    }

    /// Gives back what is over the most that stays where nobody looks after it.
    pub(super) fn return_excess(&mut self) {
        let most = match (self.is_ended, self.is_watched || self.limit < usize::MAX / self.page_bytes) {
            (true, _) => 0,
            (false, true) => return,
            (false, false) => MOST_DIRTY_BYTES / self.page_bytes,
        };
        if self.index.dirty.pages > most {
            self.return_pages(most, Order::Largest);
        }
    }

    /// Gives back what was not used since the last look, and `more` pages.
    pub(super) fn return_unused(&mut self, more: usize) {
        self.is_watched = true;
        let target = self.index.dirty.pages.saturating_sub(self.least_dirty + more);
        if target < self.index.dirty.pages {
            self.return_pages(target, Order::Largest);
            self.return_tables();
        }
        self.least_dirty = self.index.dirty.pages;
    }

    /// Takes the segments that are to be given back without the lock.
    pub(super) fn take_leaving(&mut self) -> *mut Segment {
        mem::replace(&mut self.leaving, ptr::null_mut())
    }
}

/// Which pages go first.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    /// Those that serve least.
    Smallest,
    /// Those that take the fewest calls.
    Largest,
}

impl Drop for Inner {
    fn drop(&mut self) {
        // SAFETY: nobody has the heap any more, and so no span of it.
        unsafe {
            Segment::drop_all(self.segments);
            Segment::drop_all(self.leaving);
        }
    }
}
