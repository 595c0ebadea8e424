//! Pages that go back to the system.

use core::mem;
use core::ptr::{self, NonNull};
use core::time::Duration;
use std::time::Instant;

use super::index::{self, Entry, Kind};
use super::inner::Inner;
use super::segment::Segment;
use super::system::{self, Outcome};

/// Where there is no limit, so much stays that nobody uses.
const MOST_DIRTY_BYTES: usize = 32 << 20;
/// With so many pages that went back side by side, their table goes too.
const TABLE_FROM_PAGES: usize = 1024;

/// Which pages go first.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    /// Those that serve least.
    Smallest,
    /// Those that take the fewest calls.
    Largest,
}

/// Somebody looks after the memory if it was looked at within this time: a keeper does so once a
/// minute at least.
const WATCHED_FOR: Duration = Duration::from_secs(120);

impl Inner {
    /// Gives dirty pages back to the system until at most `target` are left. Returns whether that
    /// is so.
    pub(super) fn return_pages(&mut self, target: usize, order: Order) -> bool {
        if !self.is_reserved {
            return self.return_segments(target);
        }
        let mut is_lost = false;
        while self.index.dirty.pages > target && !is_lost {
            let extent = match order {
                Order::Smallest => self.index.dirty.smallest(),
                Order::Largest => self.index.dirty.largest(),
            };
            let Some(mut extent) = extent else { break };
            // SAFETY: of the list, and from then on ours.
            unsafe {
                self.index.remove(extent);
                let its = index::pages_at(extent);
                // What the list had with it.
                let count = its.min(self.index.dirty.pages + its - target);
                if count < its {
                    let rest = index::split(extent, its - count, self.page_bytes);
                    index::write(rest, count, Kind::HeldDirty);
                    self.index.add(extent, its - count, Kind::Dirty);
                    extent = rest;
                }
                let start = NonNull::new_unchecked(index::start_at(extent));
                match system::give_back(start, count * self.page_bytes) {
                    Outcome::Done => {}
                    Outcome::Refused => {
                        self.index.add(extent, count, Kind::Dirty);
                        self.refusals += count;
                        break;
                    }
                    Outcome::Lost => {
                        // The process may have the pages as before, so they stay counted.
                        self.lose(extent, count);
                        self.used += count;
                        is_lost = true;
                        continue;
                    }
                }
                self.returned += count;
                let joined = self.index.add(extent, count, Kind::Clean);
                let pages = index::pages_at(joined);
                if pages / TABLE_FROM_PAGES != (pages - count) / TABLE_FROM_PAGES {
                    self.return_table(joined);
                }
            }
        }
        self.least_dirty = self.least_dirty.min(self.index.dirty.pages);
        self.index.dirty.pages <= target && !is_lost
    }

    /// Notes that the addresses of an extent are lost (Y1).
    ///
    /// # Safety
    ///
    /// The extent is the caller's, and in no list.
    pub(super) unsafe fn lose(&mut self, extent: NonNull<Entry>, pages: usize) {
        // SAFETY: the caller's promise.
        unsafe { index::write(extent, pages, Kind::Lost) };
        self.is_torn = true;
    }

    /// Gives back the pages of the table that only have entries within a clean extent, which say
    /// nothing.
    ///
    /// # Safety
    ///
    /// The first entry of a clean extent of a reservation.
    unsafe fn return_table(&self, first: NonNull<Entry>) {
        // SAFETY: the caller's promise.
        let pages = unsafe { index::pages_at(first) };
        let (from, to) =
            (first.addr().get() + size_of::<Entry>(), first.addr().get() + (pages - 1) * size_of::<Entry>());
        let (from, to) = (from.next_multiple_of(self.page_bytes), to / self.page_bytes * self.page_bytes);
        if from < to {
            // SAFETY: within the table; nobody reads these entries before they are written.
            unsafe {
                let start = first.cast::<u8>().add(from - first.addr().get());
                system::discard(start, to - from);
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
                if index::kind_at(first) == Kind::Dirty && Segment::of_whole(first).is_some() {
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

    /// Gives back what is over the most that stays where there is no limit. Where somebody looks
    /// after the heap, more stays: four times as much as requests missed lately of what went. At
    /// the end of a burst they miss nothing.
    pub(super) fn return_excess(&mut self) {
        let dirty = self.index.dirty.pages;
        let mut most = if self.is_ended { 0 } else { MOST_DIRTY_BYTES / self.page_bytes };
        let has_limit = self.limit < usize::MAX / self.page_bytes;
        if dirty <= most || has_limit && !self.is_ended {
            return;
        }
        // The time is asked for where there is much.
        if !self.is_ended && self.watched.is_some_and(|since| since.elapsed() < WATCHED_FOR) {
            most += 4 * self.missed;
        }
        if dirty > most {
            self.return_pages(most, Order::Largest);
            self.excess += dirty - self.index.dirty.pages;
        }
    }

    /// Gives back what was not used since the last look, and `more` pages.
    pub(super) fn return_unused(&mut self, more: usize) {
        self.watched = Some(Instant::now());
        let target = self.index.dirty.pages.saturating_sub(self.least_dirty + more);
        if target < self.index.dirty.pages {
            self.return_pages(target, Order::Largest);
            self.return_tables();
        }
        self.least_dirty = self.index.dirty.pages;
        (self.excess, self.missed) = (self.excess / 2, self.missed / 2);
    }

    /// Takes the segments that are to be given back without the lock.
    pub(super) fn take_leaving(&mut self) -> *mut Segment {
        mem::replace(&mut self.leaving, ptr::null_mut())
    }
}
