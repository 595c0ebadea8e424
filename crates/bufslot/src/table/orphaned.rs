//! What the list of orphans asks of a table whose pool has ended.

use core::ptr::NonNull;

use bufkit::{ControlBlock, CountMissed};

use super::Table;
use super::layout::TABLE_OFFSET;
use super::slot::Slot;

// SAFETY: each slot that was freed after the mark is found by one exchange of its state.
unsafe impl CountMissed for Table {
    unsafe fn count_missed(control: NonNull<ControlBlock>, slots: usize) -> usize {
        // SAFETY: the table stands behind the control block (`Layout`).
        let table = unsafe { control.byte_add(TABLE_OFFSET) }.cast::<Slot>();
        let is_missed = |&index: &usize| {
            // SAFETY: a slot of the table.
            let slot = unsafe { table.add(index) };
            // SAFETY: initialised, and only its atomic state is borrowed.
            unsafe { &(*slot.as_ptr()).state }.count_missed()
        };
        (0..slots).filter(is_missed).count()
    }
}
