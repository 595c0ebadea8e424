//! The methods that the list of orphans calls on a control block whose pool has ended.

use core::ptr::NonNull;

use bufkit::orphan::{self, Orphan};

use super::control::{Control, take_region};
use super::layout::TABLE_OFFSET;
use super::slot::Slot;

/// What the list of orphans asks of a control block.
pub(super) static METHODS: orphan::Methods = orphan::Methods { count_missed, free };

/// Finds the slots that were left to their leases, and were freed all the same, once each.
///
/// # Safety
///
/// As `Methods::count_missed` says: `orphan` is the first field of a valid `Control` whose pool has
/// ended.
unsafe fn count_missed(orphan: NonNull<Orphan>) -> usize {
    let control = orphan.cast::<Control>();
    // SAFETY: the control block is valid, and this field is never written.
    let slots = unsafe { (*control.as_ptr()).slots };
    let mut found = 0;
    for index in 0..slots as usize {
        // SAFETY: within the table.
        let slot =
            unsafe { control.cast::<u8>().add(TABLE_OFFSET + index * size_of::<Slot>()) }.cast::<Slot>();
        // SAFETY: an initialised slot, of which only the state is used here and may change.
        let state = unsafe { &(*slot.as_ptr()).state };
        found += usize::from(state.count_missed());
    }
    found
}

/// Frees an adopted control block.
///
/// # Safety
///
/// As `Methods::free` says: `orphan` is the first field of an adopted `Control` that nobody uses
/// any more.
unsafe fn free(orphan: NonNull<Orphan>) {
    #[cfg(all(test, loom))]
    crate::tests::memory_goes();
    // SAFETY: the caller's promise.
    drop(unsafe { take_region(orphan.cast()) });
}
