//! Pieces larger than a shard that are kept for the next request of their size.
//!
//! Four sizes in each doubling, and for each some places. The table of them is made by the first
//! request larger than a shard, and goes with the bookkeeping.

use alloc::boxed::Box;
use core::ptr::NonNull;
use std::sync::OnceLock;

use bufcore::author::try_box;

use crate::atomic_slots::AtomicSlots;
use crate::shard::{Chain, Shard};

/// Sizes that pieces are kept in: four in each doubling, for ten doublings above a shard. Fewer in
/// models, whose atomics are dear.
pub(crate) const CLASSES: usize = if cfg!(any(loom, shuttle)) { 2 } else { 40 };
/// Pieces of each size.
const SLOTS: usize = if cfg!(any(loom, shuttle)) { 1 } else { 8 };
/// How many sizes above its own a request looks at: at most a third of the memory is idle then, and
/// less than a fifth where it is of the request's own.
const LOOKS_UP: usize = 1;

/// The pieces of all sizes.
struct Table {
    classes: [AtomicSlots<SLOTS>; CLASSES],
}

impl Table {
    fn new() -> Self {
        Self { classes: [(); CLASSES].map(|()| AtomicSlots::new()) }
    }
}

// What a pool costs that served a request larger than a shard.
const _: () = assert!(cfg!(any(loom, shuttle)) || size_of::<Table>() <= 2560);

/// The table, once there is one.
pub(crate) struct Large {
    table: OnceLock<Box<Table>>,
}

impl Large {
    pub(super) fn new() -> Self {
        Self { table: OnceLock::new() }
    }

    fn table(&self) -> Option<&Table> {
        self.table.get().map(|table| &**table)
    }

    /// Makes the table, if there is none and there is memory. The caller holds a handle.
    pub(crate) fn make(&self) {
        if self.table().is_none()
            && let Some(table) = try_box(Table::new())
        {
            // SAFETY: made by `try_box`, and nobody else knows of it.
            let table = unsafe { Box::from_raw(table.as_ptr()) };
            // Another thread may have been quicker.
            drop(self.table.set(table));
        }
    }

    /// Keeps a piece of a class; `false` when there is no place, and then it is still the caller's.
    ///
    /// # Safety
    ///
    /// As for [`AtomicSlots::put`].
    pub(crate) unsafe fn keep(&self, piece: NonNull<Shard>, class: usize) -> bool {
        let slots = self.table().and_then(|table| table.classes.get(class));
        // SAFETY: the caller's promise.
        slots.is_some_and(|slots| unsafe { slots.put(piece, SLOTS) })
    }

    /// Takes a piece that serves a request of a class. The caller holds a handle.
    pub(crate) fn take(&self, class: usize) -> Option<NonNull<Shard>> {
        let classes = self.table()?.classes.get(class..)?;
        classes.iter().take(1 + LOOKS_UP).find_map(AtomicSlots::take)
    }

    /// Takes a piece of any class, one of the largest. The caller holds a handle.
    pub(crate) fn take_any(&self) -> Option<NonNull<Shard>> {
        self.table()?.classes.iter().rev().find_map(AtomicSlots::take)
    }

    /// Takes the pieces that nobody needed since the last call. The caller holds a handle.
    pub(crate) fn take_unused(&self, chain: &mut Chain) {
        for slots in self.table().iter().flat_map(|table| &table.classes) {
            slots.take_unused(chain);
        }
    }

    /// Counts the pieces that are kept, as far as can be seen.
    pub(crate) fn count(&self) -> usize {
        self.table().map_or(0, |table| table.classes.iter().map(AtomicSlots::count).sum())
    }

    /// Takes all, and keeps nothing any more. For the pool's end, once.
    pub(super) fn close(&self, chain: &mut Chain) {
        for slots in self.table().iter().flat_map(|table| &table.classes) {
            slots.close(chain);
        }
    }
}
