//! The search for a free block, when neither the newest one nor the one behind it does.
//!
//! The invariants P1 to P3 of `pool` are kept here.

use crate::pool::RingPool;
use crate::ring::{At, GUARD, UNIT};

impl RingPool {
    /// Finds a free block of at least `units`: where the requests were before they went back, or by
    /// a search.
    pub(crate) fn find(&mut self, units: usize) -> Option<At> {
        self.close_lent();
        self.return_gap();
        if self.resume != self.ring.front() {
            self.move_to(self.resume);
            self.resume = self.ring.front();
            let at = if self.ring.is_free(self.newest) { self.newest } else { self.head };
            if self.ring.is_free(at) && self.widen(at, units) >= units {
                self.base = at;
                return Some(at);
            }
        }
        let found = self.search(units);
        self.move_to(self.newest);
        self.base = self.newest;
        found
    }

    /// Finds a free block of at least `units` in one turn of the ring; none only when there is
    /// none. Merges the free ones that it passes; each was made by an earlier request. `newest` is
    /// there then.
    fn search(&mut self, units: usize) -> Option<At> {
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
                if wrapped && at >= start {
                    return None;
                }
            }
            at = self.ring.next(at);
        }
    }

    /// The largest buffer that the free blocks have room for.
    pub(crate) fn largest(&self) -> usize {
        let (mut largest, mut run) = (0, 0);
        for at in self.ring.all() {
            run = if self.ring.is_free(at) { run + self.ring.size(at) } else { 0 };
            largest = largest.max(run);
        }
        (largest * UNIT).saturating_sub(GUARD)
    }
}
