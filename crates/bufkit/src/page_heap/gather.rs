//! Pages that are moved to where a request needs them.

use core::ptr::NonNull;

use super::index::{self, Entry, Kind};
use super::inner::Inner;
use super::segment::Segment;
use super::system::{self, Moved};

/// The least that is moved in place of being touched anew, in pages: of shorter runs, a call to the
/// system for each takes longer than the page faults.
const MOVE_FROM_PAGES: usize = 16;
/// After the system refused to move pages, so many requests do not ask.
const MOVES_PAUSE: u32 = 64;
/// So many mappings the pages that were moved may make, of the 65,530 that Linux allows a process.
const MOST_MAPPINGS: usize = 16 << 10;

impl Inner {
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
}
