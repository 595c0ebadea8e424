//! The search for a free block, when neither the newest one nor the one behind it does.
//!
//! The invariants P1 and P2 of `pool` are kept here.

use crate::pool::RingPool;
use crate::ring::{GuardPtr, room};

/// How many live blocks a request steps over before the end moves up for it.
const MAX_PROBES: usize = 64;

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
        let found = if has_unused { self.find_or_extend(units) } else { self.search(units, None) };
        self.move_to(self.newest);
        self.base = self.newest;
        found
    }

    /// Finds a free block of at least `units` where the ring does not use all of its region; none
    /// only when there is none. `newest` is there then.
    #[cold]
    #[inline(never)]
    fn find_or_extend(&mut self, units: usize) -> Option<GuardPtr> {
        if let Some(at) = self.search(units, Some(MAX_PROBES)) {
            return Some(at);
        }
        if let Some(at) = self.extend(units) {
            self.newest = at;
            return Some(at);
        }
        self.search(units, None)
    }

    /// Finds a free block of at least `units` in one turn of the ring; none only when there is
    /// none, or when it has stepped over `probes` others. Merges the free ones that it passes; each
    /// was made by an earlier request. `newest` is there then.
    #[inline(always)]
    pub(crate) fn search(&mut self, units: usize, mut probes: Option<usize>) -> Option<GuardPtr> {
        let start = self.newest;
        let (mut at, mut wrapped) = (start, false);
        loop {
            if at == self.ring.end() {
                if wrapped {
                    return None;
                }
                wrapped = true;
                at = self.ring.front();
            } else if self.ring.is_free(at) {
                self.newest = at;
                if self.widen(at, units) >= units {
                    return Some(at);
                }
            } else {
                self.newest = at;
                if (wrapped && at >= start) || probes == Some(0) {
                    return None;
                }
                probes = probes.map(|probes| probes - 1);
            }
            at = self.ring.next(at);
        }
    }

    /// Returns the largest buffer that the free blocks have room for.
    pub(crate) fn largest(&self) -> usize {
        let (mut largest, mut run) = (0, 0);
        for at in self.ring.all() {
            run = if self.ring.is_free(at) { run + self.ring.size(at) } else { 0 };
            largest = largest.max(run);
        }
        room(largest.max(run + self.ring.unused()))
    }
}
