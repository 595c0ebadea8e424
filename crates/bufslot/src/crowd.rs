//! The search among many buffers: by an index of gaps, which releases keep up.
//!
//! A bounded search that has found nothing among more than a few slots makes a crowd: each slot in
//! the list is watched, so that its release lists it, and each gap is noted in the index. From then
//! on a request takes the released slots off their list, and asks the index. Where it carves,
//! others follow without the index, in a row: slots that are not watched. These are watched at the
//! next search, each once. When few watched slots are left, the bounded search is used again.
//!
//! # Invariants
//!
//! The invariants P1 to P4 of `pool` are kept here. The index is a hint, and not needed for them.
//!
//! - C1: in a crowd, what is not watched in the list is one row, and the tail is in it or in front
//!   of it; but for slots that were released on another thread at the moment when they were watched
//!   (a sweep finds these).
//! - C2: in a crowd, each gap is in the index with at least its bytes, or is behind a slot of the
//!   row or behind the one in front of it.
//!
//! Nothing here calls the user's code.

use bufcore::BufferPool;

use crate::pool::{Carved, SlotPool};
use crate::table::{FEW_SLOTS, NONE, STEP};

/// How many slots a sweep may look at for each search before it.
const SWEPT_PER_SEARCH: usize = 8;

impl<F: BufferPool> SlotPool<F> {
    /// Returns whether so many slots are watched that the index is kept.
    pub(crate) fn is_crowded(&self) -> bool {
        self.watched as usize > FEW_SLOTS
    }

    /// Takes `bytes`, which are not none, from any gap in the region that has them, in a crowd.
    ///
    /// Cost: two steps for each bit of the number of slots, and as many for each slot that was
    /// acquired or released since the last search.
    pub(crate) fn search_crowd(&mut self, bytes: usize) -> Carved {
        self.watch_row();
        self.take_freed();
        self.credit = self.credit.saturating_add(SWEPT_PER_SEARCH);
        let carved = self.carve_indexed(bytes);
        if carved.is_somewhere() || self.credit < self.slots() {
            return carved;
        }
        self.watch_all();
        self.carve_indexed(bytes)
    }

    /// Takes `bytes` from a gap in the index, or else behind the end.
    fn carve_indexed(&mut self, bytes: usize) -> Carved {
        if self.free == NONE {
            return Carved::NONE;
        }
        let slots = self.table.slots();
        while let Some(index) = self.table.gaps.find(bytes) {
            let before = index as u32 * STEP;
            let room = self.room_behind(before);
            if room < bytes {
                // More than a node can have.
                if u32::try_from(bytes).is_err() {
                    break;
                }
                self.table.gaps.note(index, room);
                continue;
            }
            let mut start = self.gap_start(slots, before, bytes);
            if start.saturating_add(bytes) > slots.start(slots.next(before)) {
                // Without stagger.
                start = self.align(slots.end(before));
            }
            return self.carve_new(slots, before, start, bytes);
        }
        self.carve_at_end(bytes)
    }

    /// Returns the bytes behind a slot of the index, none when it is not watched any more.
    pub(crate) fn room_behind(&self, at: u32) -> usize {
        let slots = self.table.slots();
        if at != self.sentinel() && !slots.is_watched(at) {
            return 0;
        }
        slots.start(slots.next(at)).saturating_sub(self.align(slots.end(at)))
    }

    /// Returns the most bytes that a gap has, after a search of the crowd.
    pub(crate) fn largest_in_crowd(&self) -> usize {
        if self.free == NONE {
            return 0;
        }
        let slots = self.table.slots();
        let last = slots.prev(self.sentinel());
        let behind = self.gap_limit(last).saturating_sub(self.align(slots.end(last)));
        behind.max(self.table.gaps.most() as usize)
    }

    /// Notes the gap behind a slot whose neighbours or bounds have changed.
    #[inline(always)]
    pub(crate) fn note_gap(&mut self, at: u32) {
        if self.watched > 0 {
            self.note(at);
        }
    }

    #[cold]
    #[inline(never)]
    fn note(&mut self, at: u32) {
        self.table.gaps.note((at / STEP) as usize, self.room_behind(at));
    }

    /// Lets go of the slots that were released and are listed.
    pub(crate) fn take_freed(&mut self) {
        if self.watched == 0 {
            return;
        }
        let slots = self.table.slots();
        for freed in slots.freed_from(self.table.freed().take()) {
            slots.mark_free(freed);
            self.watched -= 1;
            let mut before = slots.prev(freed);
            while slots.is_free(before) {
                before = slots.prev(before);
            }
            self.widen(before);
            self.note_gap(freed);
            self.note_gap(before);
        }
    }

    /// Watches the slots of the row that the tail is in.
    fn watch_row(&mut self) {
        let slots = self.table.slots();
        let mut first = self.tail;
        while first != self.sentinel() && !slots.is_watched(first) {
            first = slots.prev(first);
        }
        self.watch_behind(first, false);
    }

    /// Watches all slots, and notes all gaps.
    pub(crate) fn watch_all(&mut self) {
        (self.watched, self.credit) = (0, 0);
        self.table.gaps.clear();
        self.watch_behind(self.sentinel(), true);
    }

    /// Watches the slots behind `before`: up to one that is watched, or `all`. Lets go of the free
    /// ones, and notes the gaps.
    fn watch_behind(&mut self, mut before: u32, all: bool) {
        let slots = self.table.slots();
        loop {
            self.widen(before);
            self.note(before);
            let next = slots.next(before);
            if next == self.sentinel() || !all && slots.is_watched(next) {
                return;
            }
            // Otherwise it was released at this moment.
            if slots.watch(next) {
                self.watched += 1;
                before = next;
            }
        }
    }
}
