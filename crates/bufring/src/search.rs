//! The search for a free block, when neither the newest one nor the one behind it does.
//!
//! The invariants P1 and P2 of `pool` are kept here.

use crate::pool::RingPool;
use crate::ring::GuardPtr;

/// How many live blocks a request steps over before the end moves up for it, and in a short search.
const MAX_PROBES: usize = 64;
/// A search past more live blocks that finds nothing is paid off by the searches after it, which
/// are short.
const LONG_FROM: usize = 256;

impl RingPool {
    /// Finds a free block of at least `units`: where the requests were before they went back, or by
    /// a search.
    pub(crate) fn find(&mut self, units: usize) -> Option<GuardPtr> {
        if self.resume != self.ring.front() {
            self.move_to(self.resume);
            (self.base, self.resume) = (self.newest, self.ring.front());
            let at = if self.ring.is_free(self.newest) { self.newest } else { self.head };
            if self.ring.is_free(at) && self.widen(at, units) >= units {
                self.base = at;
                return Some(at);
            }
        }
        let has_unused = self.ring.unused() > 0;
        // So a burst goes on in a row, and the requests after it can go back to where it began.
        if has_unused
            && self.head == self.ring.end()
            && !self.is_room_near_front(units)
            && let Some(at) = self.extend(units)
        {
            return Some(at);
        }
        let found = if has_unused { self.find_or_extend(units) } else { self.search_on(units) };
        self.move_to(self.newest);
        self.base = self.newest;
        found
    }

    /// Finds a free block of at least `units` where the ring does not use all of its region.
    /// `newest` is there then.
    #[cold]
    #[inline(never)]
    fn find_or_extend(&mut self, units: usize) -> Option<GuardPtr> {
        if let Some(at) = self.search(units, MAX_PROBES) {
            return Some(at);
        }
        if let Some(at) = self.extend(units) {
            self.newest = at;
            return Some(at);
        }
        self.search_on(units)
    }

    /// Finds a free block of at least `units` in one turn of the ring; none only when there is
    /// none, or when a long search found none before, and this one is short therefore. `newest` is
    /// there then.
    #[inline(always)]
    fn search_on(&mut self, units: usize) -> Option<GuardPtr> {
        let most = if self.short > 0 { MAX_PROBES } else { usize::MAX };
        self.short = self.short.saturating_sub(1);
        self.search(units, most)
    }

    /// Finds a free block of at least `units` in one turn of the ring; none only when there is
    /// none, or when it has stepped over `most` others. Merges the free ones that it passes; each
    /// was made by an earlier request. `newest` is there then, and `largest` the largest that it
    /// passed.
    #[inline(always)]
    pub(crate) fn search(&mut self, units: usize, most: usize) -> Option<GuardPtr> {
        let start = self.newest;
        let (mut at, mut wrapped, mut left) = (start, false, most);
        // What is free in front of `at`.
        let mut run = 0;
        self.largest = 0;
        let found = loop {
            if at == self.ring.end() {
                self.largest = self.largest.max(run + self.ring.unused());
                if wrapped {
                    break None;
                }
                (wrapped, run) = (true, 0);
                at = self.ring.front();
            } else if self.ring.is_free(at) {
                self.newest = at;
                run = self.widen(at, units);
                if run >= units {
                    break Some(at);
                }
                self.largest = self.largest.max(run);
            } else {
                self.newest = at;
                if (wrapped && at >= start) || left == 0 {
                    break None;
                }
                (left, run) = (left - 1, 0);
            }
            at = self.ring.next(at);
        };
        if found.is_none() && most - left > LONG_FROM {
            self.short = (most - left) / MAX_PROBES;
        }
        found
    }
}
