//! Pages that are moved to where a request needs them.

use core::ptr::NonNull;

use super::index::{self, Entry, Kind};
use super::inner::Inner;
use super::segment::Segment;
use super::system::{self, Outcome};
use crate::sync::{CountUsize, Ordering};

/// The least that is moved in place of being touched anew, in pages: of shorter runs, a call to the
/// system for each takes longer than the page faults.
const MOVE_FROM_PAGES: usize = 16;
/// After the system refused to move pages, so many requests do not ask.
const MOVES_PAUSE: u32 = 64;
/// So many mappings the pages that were moved may make, and those of all heaps together, of the
/// 65,530 that Linux allows a process.
pub(super) const MOST_MAPPINGS: usize = 8 << 10;
const MOST_OF_ALL: usize = 32 << 10;

/// Those of all heaps. Not modelled: it decides what is cheap, and nothing else.
static MAPPINGS: CountUsize = CountUsize::new(0);
/// After so many moves a trim of all that is free joins the mappings.
pub(super) const JOINED_FROM_MOVES: usize = 64;

impl Inner {
    /// Returns whether the system is asked to move pages.
    pub(super) fn may_move(&self) -> bool {
        // ORDER: Relaxed: a count.
        let are_few = || self.mappings <= MOST_MAPPINGS && MAPPINGS.load(Ordering::Relaxed) <= MOST_OF_ALL;
        cfg!(target_os = "linux") && self.pause == 0 && are_few()
    }

    /// Notes that so many mappings are made of moved pages.
    pub(super) fn note_mappings(&mut self, mappings: usize) {
        // ORDER: Relaxed: a count.
        MAPPINGS.fetch_add(mappings.wrapping_sub(self.mappings), Ordering::Relaxed);
        self.mappings = mappings;
    }

    /// Notes so many moves.
    pub(super) fn note_moves(&mut self, moves: usize) {
        // Each makes two more of the mappings that it is of.
        self.note_mappings(self.mappings + 2 * moves);
        self.moves += moves;
    }

    /// Notes that the system refused to move pages.
    pub(super) fn pause_moves(&mut self) {
        self.pause = MOVES_PAUSE;
    }

    /// Moves dirty pages from elsewhere to a held extent of clean ones, from its start on, as long
    /// as that takes less time than to touch new ones. Returns how many came, or `None` if some of
    /// the addresses are lost. What came is a held extent, and the rest another.
    ///
    /// # Safety
    ///
    /// The extent is held.
    pub(super) unsafe fn gather(&mut self, held: NonNull<Entry>) -> Option<usize> {
        let page_bytes = self.page_bytes;
        // SAFETY: the caller's promise.
        let (all, start) = unsafe { (index::pages_at(held), index::start_at(held)) };
        let (mut there, mut most) = (0, usize::MAX);
        if self.pause == 0 && self.mappings > MOST_MAPPINGS {
            self.join_mappings();
        }
        while all - there >= MOVE_FROM_PAGES && self.may_move() {
            let Some(source) = self.index.dirty.largest() else { break };
            // SAFETY: of the list.
            let its = unsafe { index::pages_at(source) };
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
                let old = NonNull::new_unchecked(index::start_at(from));
                match system::move_pages(old, to, count * page_bytes, false) {
                    Outcome::Done => {
                        self.index.add(from, count, Kind::Clean);
                        there += count;
                        self.moved += count;
                        self.note_moves(1);
                    }
                    Outcome::Refused => {
                        self.index.add(from, count, Kind::Dirty);
                        // It may be of several mappings, which older kernels do not move at once.
                        most = count / 2;
                        if most < MOVE_FROM_PAGES {
                            self.pause_moves();
                        }
                    }
                    Outcome::Lost => {
                        self.index.add(from, count, Kind::Dirty);
                        self.pause_moves();
                        self.mark(held, all, there);
                        let lost = if there > 0 { held.add(there) } else { held };
                        if count < all - there {
                            let rest = index::split(lost, count, page_bytes);
                            index::write(rest, all - there - count, Kind::HeldClean);
                        }
                        self.lose(lost, count);
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
    ///
    /// Cost: as many steps as there are extents. Where that many spans are out, it is of no use,
    /// and as many requests are served without moves before the next try.
    #[cold]
    pub(super) fn join_mappings(&mut self) {
        self.moves = 0;
        let mut mappings = 0;
        for segment in self.segments() {
            // SAFETY: the heap's: extents that follow each other, up to an edge (X1).
            unsafe {
                let mut entry = Segment::first(segment);
                while index::kind_at(entry) != Kind::Edge {
                    let (joined, pages) = (self.join_run(entry), index::pages_at(entry));
                    // A span that is out may be of as many as there were moves to it.
                    mappings += if joined == 0 { pages.div_ceil(MOVE_FROM_PAGES) } else { 1 };
                    entry = entry.add(if joined == 0 { pages } else { joined });
                }
            }
        }
        self.note_mappings(mappings.min(self.mappings));
        if self.mappings > MOST_MAPPINGS {
            self.pause = u32::try_from(self.mappings).unwrap_or(u32::MAX);
        }
        self.least_dirty = self.least_dirty.min(self.index.dirty.pages);
    }

    /// Makes one clean extent of the free ones that follow each other from `first` on. Returns
    /// their pages.
    ///
    /// # Safety
    ///
    /// The first entry of an extent.
    unsafe fn join_run(&mut self, first: NonNull<Entry>) -> usize {
        let (mut pages, mut dirty) = (0, 0);
        // SAFETY: extents that follow each other (X1), which are ours from when they are off the
        // lists (X2).
        unsafe {
            let mut entry = first;
            while matches!(index::kind_at(entry), Kind::Dirty | Kind::Clean) {
                let its = index::pages_at(entry);
                dirty += if index::kind_at(entry) == Kind::Dirty { its } else { 0 };
                self.index.remove(entry);
                (entry, pages) = (entry.add(its), pages + its);
            }
            if pages > 0 {
                let start = NonNull::new_unchecked(index::start_at(first));
                let outcome = system::renew(start, pages * self.page_bytes);
                if outcome == Outcome::Done || outcome == Outcome::Refused && dirty == 0 {
                    self.returned += dirty;
                    self.index.add(first, pages, Kind::Clean);
                } else {
                    // As for pages that are given back.
                    self.lose(first, pages);
                    self.used += dirty;
                }
            }
        }
        pages
    }
}
