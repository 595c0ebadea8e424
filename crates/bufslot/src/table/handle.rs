//! The release of one slot: all that a lease touches.

use core::ptr::NonNull;

use bufcore::author::RefCount;
use bufkit::{ControlBlock, FreedList, SlotState};

use super::layout::{Head, TABLE_OFFSET};
use super::slot::Slot;

/// The release of one slot.
#[derive(Debug)]
pub(crate) struct SlotHandle {
    /// Valid until this handle's drop has freed it, and not one instruction longer.
    pub(super) slot: NonNull<Slot>,
}

// SAFETY: through the handle are used:
// - the slot's atomics, its `start`, its `end` and its `control`, which nobody else writes while
//   the handle lives (T3);
// - its `prev`, after the pool's end, which wrote it last;
// - of the head `freed`, and of its control block `released` and `orphan`, which are atomics and
//   what these hand over from thread to thread, and `wipe`, which is never written.
unsafe impl Send for SlotHandle {}
// SAFETY: likewise.
unsafe impl Sync for SlotHandle {}

impl SlotHandle {
    #[inline]
    pub(crate) fn views(&self) -> &RefCount {
        // SAFETY: the slot is valid while the handle lives; atomics may be shared.
        unsafe { &(*self.slot.as_ptr()).views }
    }

    /// Returns the start of the buffer's memory.
    #[inline]
    pub(crate) fn start(&self) -> NonNull<u8> {
        // SAFETY: the slot is valid while the handle lives, and nobody writes its `start` meanwhile
        // (T3).
        let start = unsafe { &(*self.slot.as_ptr()).start }.get();
        // From the region's own pointer.
        in_memory(self.slot.cast(), start)
    }

    /// Returns the buffer's memory, if the pool wipes.
    #[cfg(feature = "wipe")]
    pub(crate) fn wipe_range(&self) -> Option<NonNull<[u8]>> {
        // SAFETY: the slot is valid while the handle lives, and nobody writes these cells
        // meanwhile (T3).
        let slot = unsafe { self.slot.as_ref() };
        let control = slot.control.get();
        // SAFETY: the control block lives as long as any of its slots is live, and nobody writes
        // this field after `build`. It is read through the pointer: a reference to the control
        // block would cover its link, which a sweeper may be writing.
        let wipe = unsafe { (*control).wipe };
        wipe.then(|| NonNull::slice_from_raw_parts(self.start(), slot.end.get() - slot.start.get()))
    }
}

impl Drop for SlotHandle {
    #[inline]
    fn drop(&mut self) {
        #[cfg(feature = "stats")]
        {
            // SAFETY: as in `wipe_range`.
            let slot = unsafe { self.slot.as_ref() };
            // SAFETY: as in `wipe_range`: of the control block, only the counters are borrowed,
            // which are atomic.
            let released = unsafe { &(*slot.control.get()).released };
            released.add(slot.end.get() - slot.start.get());
        }
        // SAFETY: the state is the first field of a slot, which is valid while the handle lives.
        // This is the drop of the lease. From here on the slot may be gone.
        if !unsafe { SlotState::release(self.slot.cast()) } {
            // SAFETY: the slot is not released yet, and this is the drop of the lease.
            unsafe { Self::late(self.slot) };
        }
    }
}

impl SlotHandle {
    /// Lists the release of a slot that is watched, or counts that of one whose pool has ended. Not
    /// by the handle: a handle whose address is taken has to be in memory, on the fast path too.
    ///
    /// # Safety
    ///
    /// The slot is a handle's. [`SlotState::release`] has returned `false` for it, and the
    /// handle is not used again.
    #[cold]
    #[inline(never)]
    unsafe fn late(slot: NonNull<Slot>) {
        // SAFETY: the slot is not counted yet, so it is valid. Only its atomic state is borrowed.
        let state = unsafe { &(*slot.as_ptr()).state };
        let watched = state.watched_at();
        let at = watched.unwrap_or_else(|| {
            state.see_end();
            // SAFETY: valid, as above. The pool has ended, and wrote it last.
            unsafe { &(*slot.as_ptr()).prev }.get()
        });
        // SAFETY: so far behind its head stands the slot, in one region, which is all in reach of
        // the handle's pointer.
        let head = unsafe { slot.byte_sub(at as usize + TABLE_OFFSET) }.cast::<Head>();
        if watched.is_some() {
            // SAFETY: the head is valid while the slot is not released. Of it, only the list is
            // borrowed, which is atomic.
            let freed = NonNull::from(unsafe { &(*head.as_ptr()).freed });
            // SAFETY: as above; a handle pushes its slot once.
            if unsafe { FreedList::push(freed, slot.cast(), at) } {
                return;
            }
        }
        // SAFETY: the slot was marked, once. The handle is not used again.
        unsafe { ControlBlock::release_orphaned(head.cast()) };
    }
}

/// Returns the byte at `address` in the region that `reaching` reaches.
#[inline(always)]
pub(super) fn in_memory(reaching: NonNull<u8>, address: usize) -> NonNull<u8> {
    let byte = reaching.as_ptr().with_addr(address);
    // SAFETY: no byte of a region is at address zero, nor is the end of one.
    unsafe { NonNull::new_unchecked(byte) }
}
