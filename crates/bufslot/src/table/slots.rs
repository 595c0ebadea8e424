//! Access to the slots by their offsets in the table.

use core::iter;
use core::ptr::NonNull;

use bufkit::FreedList;

use super::handle::SlotHandle;
use super::slot::{STEP, Slot};

/// Access to the slots by their offsets. A copy of one pointer, so that a request can keep it in
/// a register: what it reads through the pool is read anew after each look at a state, which is an
/// atomic load that orders others.
///
/// T1 to T3 of [`Table`](super::Table) hold for it. It is used up to
/// [`Table::leave`](super::Table::leave) only.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Slots {
    pub(super) first: NonNull<Slot>,
}

impl Slots {
    #[inline]
    pub(super) fn slot<'a>(self, at: u32) -> &'a Slot {
        debug_assert!(at.is_multiple_of(STEP), "slot at {at}");
        // SAFETY: `at <= sentinel` (T2), so this stays in the table (T1).
        let slot = unsafe { self.first.byte_add(at as usize) };
        // SAFETY: an initialised slot (T1, T2); it is only ever shared, all its fields allow that.
        unsafe { slot.as_ref() }
    }

    /// Returns whether the buffer of this slot was released. It is never true for the sentinel.
    #[inline]
    pub(crate) fn is_free(self, at: u32) -> bool {
        self.slot(at).state.is_free()
    }

    /// Frees a slot that was taken from the list of released ones.
    pub(crate) fn mark_free(self, at: u32) {
        self.slot(at).state.mark_free();
    }

    /// Has the release of the slot list it, from now on; returns whether it does. Not for the
    /// sentinel.
    pub(crate) fn watch(self, at: u32) -> bool {
        let state = &self.slot(at).state;
        state.is_watched() || state.watch(at)
    }

    /// Returns whether the slot is watched: its release adds it to the list, or has done so.
    pub(crate) fn is_watched(self, at: u32) -> bool {
        self.slot(at).state.is_watched()
    }

    /// Iterates over the list of released slots, from `first` on.
    pub(crate) fn freed_from(self, first: u32) -> impl Iterator<Item = u32> {
        let mut next = first;
        iter::from_fn(move || {
            let at = next;
            (at != FreedList::END).then(|| {
                // First: the slot may be freed then.
                next = self.slot(at).state.next_freed();
                at
            })
        })
    }

    /// Marks the slot as owned by a buffer, whose bytes are `start..end`.
    #[inline]
    pub(crate) fn occupy(self, at: u32) {
        self.slot(at).state.mark_live();
    }

    #[inline]
    pub(crate) fn start(self, at: u32) -> usize {
        self.slot(at).start.get()
    }

    #[inline]
    pub(crate) fn set_start(self, at: u32, start: usize) {
        self.slot(at).start.set(start);
    }

    #[inline]
    pub(crate) fn end(self, at: u32) -> usize {
        self.slot(at).end.get()
    }

    #[inline]
    pub(crate) fn set_end(self, at: u32, end: usize) {
        self.slot(at).end.set(end);
    }

    #[inline]
    pub(crate) fn prev(self, at: u32) -> u32 {
        self.slot(at).prev.get()
    }

    #[inline]
    pub(crate) fn next(self, at: u32) -> u32 {
        self.slot(at).next.get()
    }

    /// Puts a slot that is in neither list behind `after`.
    #[inline]
    pub(crate) fn link(self, at: u32, after: u32) {
        let after_slot = self.slot(after);
        let before = after_slot.next.get();
        let slot = self.slot(at);
        slot.prev.set(after);
        slot.next.set(before);
        after_slot.next.set(at);
        self.slot(before).prev.set(at);
    }

    /// Takes a slot out of the list and puts it on the stack whose top is `stack`; returns the new
    /// top.
    #[inline]
    pub(crate) fn unlink(self, at: u32, stack: u32) -> u32 {
        let slot = self.slot(at);
        let (prev, next) = (slot.prev.get(), slot.next.get());
        self.slot(prev).next.set(next);
        self.slot(next).prev.set(prev);
        slot.next.set(stack);
        // For `is_listed`.
        slot.prev.set(at);
        at
    }

    /// Returns whether the slot is in the list, and not on the stack.
    #[inline]
    pub(crate) fn is_listed(self, at: u32) -> bool {
        self.slot(at).prev.get() != at
    }

    /// Makes the lease of a slot that was just occupied.
    #[inline]
    pub(crate) fn handle(self, at: u32) -> SlotHandle {
        debug_assert!(at.is_multiple_of(STEP), "slot at {at}");
        // From the region's own pointer, so that a late release may go from here to the control
        // block.
        // SAFETY: `at <= sentinel` (T2), so this stays in the table (T1).
        SlotHandle { slot: unsafe { self.first.byte_add(at as usize) } }
    }
}
