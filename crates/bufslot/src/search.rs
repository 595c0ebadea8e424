//! The search for a gap, when neither the one at the tail nor the places around it do.
//!
//! The invariants P1 to P4 of `pool` are kept here. Nothing here calls the user's code.

use bufcore::BufferPool;

use crate::pool::{Carved, SlotPool};
use crate::table::{NONE, STEP};

/// How many live slots one request steps over in search of a gap. The next request continues from
/// there.
const MAX_PROBES: usize = 64;

/// How many slots of the table one request looks at for a free one, when none is left on the stack
/// and none is free around the tail. The next request continues from there.
const MAX_LOOKS: usize = 2048;

/// How many it looks at for a gap beside a free one, when the probes have found none.
const MAX_LAST_LOOKS: usize = 256;

impl<F: BufferPool> SlotPool<F> {
    /// Takes `bytes` from any gap that a bounded search finds: behind the last slot (`Mode::Back`),
    /// before the first or between two (`Mode::Front`). Lets go of the free slots that it passes.
    /// When there is none, it moves the end up. When that does not do, it looks in the index of
    /// gaps.
    #[cold]
    #[inline(never)]
    pub(crate) fn search(&mut self, bytes: usize) -> Carved {
        if bytes == 0 || bytes > self.capacity {
            return Carved::NONE;
        }
        if self.is_crowded() {
            return self.search_crowd(bytes);
        }
        self.take_freed();
        let carved = self.search_near(bytes);
        if carved.is_somewhere() || !self.table.gaps.exist() {
            return carved;
        }
        self.watch_all();
        self.search_crowd(bytes)
    }

    /// Searches a bounded number of slots, and the memory behind the end.
    fn search_near(&mut self, bytes: usize) -> Carved {
        let has_unused = self.has_unused();
        // So a burst goes on in a row.
        if has_unused && self.is_tail_last() && !self.is_room_near_front(bytes) {
            let carved = self.carve_at_end(bytes);
            if carved.is_somewhere() {
                return carved;
            }
        }
        let carved = self.search_in_use(bytes);
        if carved.is_somewhere() || !has_unused {
            return carved;
        }
        self.carve_at_end(bytes)
    }

    /// Searches the gaps up to the end.
    fn search_in_use(&mut self, bytes: usize) -> Carved {
        self.resume = self.tail;
        if self.free == NONE {
            if !self.refill_free_list() {
                return Carved::NONE;
            }
            let carved = self.carve_in_front(bytes);
            if carved.is_somewhere() {
                return carved;
            }
        }
        let carved = self.carve_widened(self.tail, bytes);
        if carved.is_somewhere() {
            return carved;
        }
        for gap in [self.clear_end(), self.sentinel()] {
            let carved = self.carve_widened(gap, bytes);
            if carved.is_somewhere() {
                return carved;
            }
        }
        for _ in 0..MAX_PROBES {
            self.resume = self.table.slots().next(self.resume);
            let carved = self.carve_widened(self.resume, bytes);
            if carved.is_somewhere() {
                return carved;
            }
        }
        let mut looks = MAX_LAST_LOOKS.min(self.slots());
        while self.reclaim(&mut looks) {
            let carved = self.carve_widened(self.table.slots().next(self.resume), bytes);
            if carved.is_somewhere() {
                return carved;
            }
        }
        Carved::NONE
    }

    /// Puts free slots on the stack, which is empty: those behind the tail, those at the end of the
    /// list, those at its front, or else the next ones in the table. Returns whether there is one.
    fn refill_free_list(&mut self) -> bool {
        self.widen(self.tail);
        if self.free == NONE {
            self.clear_end();
        }
        if self.free == NONE {
            self.widen(self.sentinel());
        }
        self.free != NONE || self.reclaim(&mut MAX_LOOKS.min(self.slots()))
    }

    /// Takes `bytes` before the first slot, when the tail is the last one and a quarter of all up
    /// to it is free there: so a queue keeps to memory that it has used, and to little more than it
    /// needs, though the region has more behind.
    fn carve_in_front(&mut self, bytes: usize) -> Carved {
        let (slots, sentinel) = (self.table.slots(), self.sentinel());
        let first = self.table.memory().addr().get();
        let used = slots.end(self.tail) - first;
        if slots.next(self.tail) != sentinel || self.widen(sentinel) - first < used / 4 {
            return Carved::NONE;
        }
        self.carve_widened(sentinel, bytes)
    }

    /// Lets go of the free slots at the end of the list, and returns the last one that is left.
    pub(crate) fn clear_end(&mut self) -> u32 {
        let slots = self.table.slots();
        let mut last = slots.prev(self.sentinel());
        while slots.is_free(last) {
            let before = slots.prev(last);
            self.unlist(last);
            last = before;
        }
        last
    }

    /// Lets go of the next slot in the table that is free and in the list, and of the free ones
    /// around it; the probes continue with the gap that they leave, behind the one that comes after
    /// `resume`. Returns whether there is one, and takes what it looks at from `looks`.
    ///
    /// The table is read in the order of its memory, which costs far less for each slot than the
    /// list.
    fn reclaim(&mut self, looks: &mut usize) -> bool {
        let slots = self.table.slots();
        while *looks > 0 {
            *looks -= 1;
            let slot = self.clock;
            self.clock = if slot + STEP == self.sentinel() { 0 } else { slot + STEP };
            if slots.is_free(slot) && slots.is_listed(slot) {
                let mut before = slots.prev(slot);
                while slots.is_free(before) {
                    before = slots.prev(before);
                }
                self.widen(before);
                self.resume = slots.prev(before);
                return true;
            }
        }
        false
    }

    /// Takes `bytes`, which are not none, from any gap in the region that has them: the last resort
    /// before an error. Lets go of all free slots first, and places the buffer end to end with the
    /// one in front, without stagger.
    ///
    /// Cost: two looks at every slot in the list, or as that of
    /// [`search_crowd`](Self::search_crowd).
    ///
    /// # Errors
    ///
    /// The most bytes that any gap has; none when there is no slot left for them.
    #[cold]
    #[inline(never)]
    pub(crate) fn search_all(&mut self, bytes: usize) -> Result<Carved, usize> {
        // Buffers may have come back while the fallback was asked.
        self.take_freed();
        if self.is_crowded() && u32::try_from(bytes).is_ok() {
            let carved = self.search_crowd(bytes);
            return carved.found().ok_or_else(|| self.largest_in_crowd());
        }
        let (slots, sentinel) = (self.table.slots(), self.sentinel());
        self.tail = sentinel;
        loop {
            self.widen(self.tail);
            self.tail = slots.next(self.tail);
            if self.tail == sentinel {
                break;
            }
        }
        let mut largest = 0;
        while self.free != NONE {
            let start = self.align(slots.end(self.tail));
            let room = self.gap_limit(self.tail).saturating_sub(start);
            if bytes <= room {
                let _fits = self.extend_to(start + bytes);
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

    /// Carves behind `before`, after taking the free slots behind it into the gap. It is the tail
    /// then, or the slot that was carved.
    fn carve_widened(&mut self, before: u32, bytes: usize) -> Carved {
        self.tail = before;
        let limit = self.widen(before);
        let slots = self.table.slots();
        let start = self.gap_start(slots, before, bytes);
        if self.free == NONE || bytes > limit.saturating_sub(start) {
            return Carved::NONE;
        }
        self.carve_new(slots, before, start, bytes)
    }

    /// Takes the free slots behind `before` out of the list; returns where the gap behind it ends
    /// then.
    pub(crate) fn widen(&mut self, before: u32) -> usize {
        let slots = self.table.slots();
        let mut next = slots.next(before);
        while slots.is_free(next) {
            let behind = slots.next(next);
            self.unlist(next);
            next = behind;
        }
        slots.start(next)
    }

    /// Puts a free slot of the list on the stack.
    pub(crate) fn unlist(&mut self, slot: u32) {
        for kept in [&mut self.tail, &mut self.resume, &mut self.run] {
            if *kept == slot {
                *kept = self.table.slots().prev(slot);
            }
        }
        self.free = self.table.slots().unlink(slot, self.free);
    }
}
