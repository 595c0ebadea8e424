//! The search for a free block, when neither the newest one nor the one behind it does, and all
//! requests where guards stand in a table.
//!
//! The invariants P1 to P4 of `pool` are kept here.

use crate::pool::RingPool;
use crate::ring::At;

impl RingPool {
    /// Finds a free block of at least `units`: where the requests were before they went back, or by
    /// a search.
    pub(crate) fn find(&mut self, units: usize) -> Option<At> {
        if self.resume != self.ring.front() {
            self.move_to(self.resume);
            (self.base, self.resume) = (self.newest, self.ring.front());
            let at = if self.ring.is_free(self.newest) { self.newest } else { self.head };
            if self.ring.is_free(at) && self.widen(at, units) >= units {
                self.base = at;
                return Some(at);
            }
        }
        if self.has_parked()
            && let Some(at) = self.extend(units)
        {
            return Some(at);
        }
        let found = if self.has_parked() { self.find_with_parked(units) } else { self.search(units, None) };
        self.move_to(self.newest);
        self.base = self.newest;
        found
    }

    /// Finds a free block of at least `units` in one turn of the ring; none only when there is
    /// none, or when it has stepped over `probes` others. Merges the free ones that it passes; each
    /// was made by an earlier request. `newest` is there then.
    #[inline(always)]
    pub(crate) fn search(&mut self, units: usize, mut probes: Option<usize>) -> Option<At> {
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
            run = if self.ring.is_vacant(at) { run + self.ring.size(at) } else { 0 };
            largest = largest.max(run);
        }
        self.ring.room_in(largest)
    }

    /// Takes a block for `bytes` bytes where guards are in a table; none when there is none.
    pub(crate) fn take_beside_table(&mut self, bytes: usize) -> Option<At> {
        let (at, units) = self.free_beside_table(bytes)?;
        self.ring.cut(at, units);
        self.ring.occupy(at);
        self.move_to(at);
        Some(at)
    }

    /// Finds a free block of as many units as `bytes` bytes need, which are not none, where guards
    /// are in a table.
    fn free_beside_table(&mut self, bytes: usize) -> Option<(At, usize)> {
        if !self.ring.has_table() || bytes > self.capacity {
            return None;
        }
        let units = self.grid.units(bytes);
        if let Some(at) = self.at_hand() {
            if self.widen(at, units) >= units {
                return Some((at, units));
            }
            self.move_to(at);
        }
        Some((self.find(units)?, units))
    }
}
