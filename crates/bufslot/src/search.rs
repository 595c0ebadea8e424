//! The search for a gap, when neither the one at the tail nor the places around it do.
//!
//! The invariants P1 to P4 of `pool` are kept here. Nothing here calls the user's code.

use bufcore::BufferPool;

use crate::pool::{Carved, SlotPool};
use crate::table::NONE;

/// How many live slots one request steps over in search of a gap. The next request goes on from
/// there.
const MAX_PROBES: usize = 64;

impl<F: BufferPool> SlotPool<F> {
    /// Takes `bytes` from any gap that a bounded search finds: behind the last slot (`Mode::Back`),
    /// before the first or between two (`Mode::Front`). Lets go of the free slots that it passes.
    #[cold]
    #[inline(never)]
    pub(crate) fn search(&mut self, bytes: usize) -> Carved {
        if bytes == 0 || bytes > self.capacity {
            return Carved::NOWHERE;
        }
        self.resume = self.tail;
        let carved = self.carve_widened(bytes);
        if carved.is_somewhere() {
            return carved;
        }
        // Behind the last slot, once the free ones there are gone.
        let mut last = self.table.slots().prev(self.sentinel());
        while self.table.slots().is_free(last) {
            let before = self.table.slots().prev(last);
            if self.tail == last {
                self.tail = before;
            }
            self.let_go(last);
            last = before;
        }
        for gap in [last, self.sentinel()] {
            self.tail = gap;
            let carved = self.carve_widened(bytes);
            if carved.is_somewhere() {
                return carved;
            }
        }
        for _ in 0..MAX_PROBES {
            self.tail = self.table.slots().next(self.resume);
            self.resume = self.tail;
            let carved = self.carve_widened(bytes);
            if carved.is_somewhere() {
                return carved;
            }
        }
        Carved::NOWHERE
    }

    /// Takes `bytes`, which are not none, from any gap in the region that has them: the last resort
    /// before an error. Lets go of all free slots first, and places the buffer end to end with the
    /// one in front, without stagger.
    ///
    /// Cost: two looks at every slot in the list.
    ///
    /// # Errors
    ///
    /// The most bytes that any gap has; none when there is no slot left for them.
    #[cold]
    #[inline(never)]
    pub(crate) fn go_round(&mut self, bytes: usize) -> Result<Carved, usize> {
        let (slots, sentinel) = (self.table.slots(), self.sentinel());
        self.tail = sentinel;
        loop {
            self.widen();
            self.tail = slots.next(self.tail);
            if self.tail == sentinel {
                break;
            }
        }
        let mut largest = 0;
        while self.free != NONE {
            let start = self.align(slots.end(self.tail));
            let room = slots.start(slots.next(self.tail)).saturating_sub(start);
            if bytes <= room {
                return Ok(self.carve_new(slots, self.tail, start, bytes));
            }
            largest = largest.max(room);
            self.tail = slots.next(self.tail);
            if self.tail == sentinel {
                break;
            }
        }
        self.tail = self.resume;
        Err(largest)
    }

    /// Carves behind the tail, after taking the free slots behind the gap into it.
    fn carve_widened(&mut self, bytes: usize) -> Carved {
        let limit = self.widen();
        let slots = self.table.slots();
        let start = self.behind(slots, self.tail, bytes);
        if self.free == NONE || bytes > limit.saturating_sub(start) {
            return Carved::NOWHERE;
        }
        self.carve_new(slots, self.tail, start, bytes)
    }

    /// Takes the free slots behind the tail out of the list; returns where the gap behind it ends
    /// then.
    pub(crate) fn widen(&mut self) -> usize {
        let slots = self.table.slots();
        let mut next = slots.next(self.tail);
        while slots.is_free(next) {
            let behind = slots.next(next);
            self.let_go(next);
            next = behind;
        }
        slots.start(next)
    }

    /// Puts a free slot of the list on the stack.
    pub(crate) fn let_go(&mut self, slot: u32) {
        for kept in [&mut self.resume, &mut self.run] {
            if *kept == slot {
                *kept = self.table.slots().prev(slot);
            }
        }
        self.free = self.table.slots().unlink(slot, self.free);
    }
}
