//! The methods that the list of orphans calls on a control block whose ring has ended.

use core::ptr::NonNull;

use bufkit::orphan::{self, Orphan};

use super::control::{CONTROL, take_region};
use super::guard::{GUARD, Guard, GuardPtr, UNIT};

/// What the list of orphans asks of a control block.
pub(super) static METHODS: orphan::Methods = orphan::Methods { count_missed, free };

/// Counts the release of a block of a ring that is gone.
///
/// # Safety
///
/// `front` is the guard at the front of a ring that has ended. The block was marked as `ORPHANED`,
/// its release was not counted, and nobody uses it after this.
pub(super) unsafe fn release_orphaned(front: GuardPtr) {
    // SAFETY: the control block stands right in front of this guard (`Layout`), and the pointer
    // reaches all of the region.
    let control = unsafe { front.byte_sub(CONTROL) };
    // SAFETY: `orphan` is the first field of the control block (`repr(C)`); the rest is the
    // caller's promise.
    unsafe { orphan::release_orphaned(control.cast()) };
}

/// Finds the blocks that were left to their leases, and were freed all the same, once each.
///
/// # Safety
///
/// As `Methods::count_missed` says: `orphan` is the first field of a valid `Control` whose ring has
/// ended.
unsafe fn count_missed(orphan: NonNull<Orphan>) -> usize {
    // SAFETY: the guard at the front stands right behind the control block, in one region
    // (`Layout`).
    let front = unsafe { orphan.byte_add(CONTROL) }.cast::<Guard>();
    // SAFETY: behind that comes the first one that has a block (`Ring::build`).
    let mut at = unsafe { front.byte_add(GUARD) };
    let mut found = 0;
    loop {
        // SAFETY: a guard of the ring (R1), whose links nobody writes any more; its state is
        // atomic.
        let guard = unsafe { at.as_ref() };
        if guard.size.get() == 0 {
            return found;
        }
        found += usize::from(guard.state.count_missed());
        // SAFETY: `size` leads to the next guard (R1).
        at = unsafe { at.byte_add(guard.size.get() as usize * UNIT) };
    }
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
