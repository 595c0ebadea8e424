//! The invariants of the pool, as code.

use bufcore::BufferPool;

use crate::SlotPool;
use crate::table::{NONE, STEP};

impl<F: BufferPool> SlotPool<F> {
    /// Whether the next request goes back, which is the slow way to the newest slot.
    pub(crate) fn goes_back(&self) -> bool {
        let slots = self.table.slots();
        slots.is_free(self.tail) && slots.is_free(slots.prev(self.tail))
    }

    /// Asserts the invariants of `crowd`. There are no other threads.
    fn check_crowd(&self) {
        let (slots, sentinel) = (self.table.slots(), self.sentinel());
        let is_wall = |at| at == sentinel || slots.is_watched(at);
        let (mut at, mut watched, mut rows) = (sentinel, 0, 0);
        loop {
            let next = slots.next(at);
            watched += u32::from(at != sentinel && is_wall(at));
            rows += usize::from(is_wall(at) && !is_wall(next));
            if is_wall(at) && is_wall(next) && self.tail != at {
                let room = self.room_behind(at);
                assert!(self.table.gaps.noted((at / STEP) as usize) as usize >= room, "C2: {room} bytes");
            }
            at = next;
            if at == sentinel {
                break;
            }
        }
        assert_eq!(watched, self.watched);
        assert!(rows == 0 || rows == 1 && (!is_wall(self.tail) || !is_wall(slots.next(self.tail))), "C1");
    }

    /// Asserts the invariants P1 to P4 of `pool`, and those of `crowd` in one.
    pub(crate) fn check(&self) {
        let sentinel = self.sentinel();
        let first = self.table.memory().addr().get();
        let (mut at, mut offset, mut linked, mut tail_seen) = (sentinel, first, 0, false);
        loop {
            tail_seen |= at == self.tail;
            let next = self.table.slots().next(at);
            assert_eq!(self.table.slots().prev(next), at);
            if next == sentinel {
                break;
            }
            assert!(offset <= self.table.slots().start(next), "P2: slots overlap or are out of order");
            offset = self.table.slots().end(next);
            let is_empty = offset == self.table.slots().start(next);
            assert!(!is_empty || !self.table.slots().is_free(next), "P2: a free slot without bytes");
            let limit = self.table.slots().start(self.table.slots().next(next));
            assert!(offset <= limit, "P2: {offset} in {limit}");
            assert!(self.table.slots().is_listed(next), "P4");
            at = next;
            linked += 1;
        }
        assert!(tail_seen, "P1: the tail is in the list");
        assert!(self.clock < sentinel && self.clock.is_multiple_of(STEP), "P3");
        assert!(self.table.end() <= first + self.capacity, "P2");
        let (mut free, mut stacked) = (self.free, 0);
        while free != NONE {
            assert!(self.table.slots().is_free(free) && !self.table.slots().is_listed(free), "P4");
            free = self.table.slots().next(free);
            stacked += 1;
        }
        assert_eq!(linked + stacked, self.slots(), "P4");
        if self.is_crowded() {
            self.check_crowd();
        }
    }
}
