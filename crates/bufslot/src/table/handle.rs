//! The release of one slot: all that a lease touches.

use core::ptr::NonNull;

#[cfg(feature = "alloc")]
use bufcore::strategy::Taken;
use bufcore::strategy::Views;
#[cfg(feature = "alloc")]
use bufcore::strategy::orphans;
use bufcore::strategy::sync::{Ordering, RELEASE};

#[cfg(feature = "alloc")]
use super::layout::TABLE_OFFSET;
use super::slot::{FREE, LIVE, Slot};
#[cfg(feature = "alloc")]
use super::slot::{ORPHANED, WATCHED};
#[cfg(feature = "alloc")]
use super::waits;

/// The release of one slot.
#[derive(Debug)]
pub(crate) struct SlotHandle {
    /// Valid until this handle's drop has stored `FREE`, and not one instruction longer.
    pub(super) slot: NonNull<Slot>,
}

// SAFETY: through the handle are used:
// - the slot's atomics, its `start` and its `extra`; the last two nobody writes while the handle
//   lives (T3);
// - its `prev`, after the pool's end, which wrote it last;
// - of the control block `waiter`, `released` and `orphan`, which are atomics and what these hand
//   over from thread to thread, and `wipe`, which is never written.
unsafe impl Send for SlotHandle {}
// SAFETY: likewise.
unsafe impl Sync for SlotHandle {}

impl SlotHandle {
    #[inline]
    pub(crate) fn views(&self) -> &Views {
        // SAFETY: the slot is valid while the handle lives; atomics may be shared.
        unsafe { &(*self.slot.as_ptr()).views }
    }

    /// Where the buffer's memory starts.
    #[inline]
    pub(crate) fn start(&self) -> NonNull<u8> {
        // SAFETY: the slot is valid while the handle lives, and nobody writes its `start` meanwhile
        // (T3).
        let start = unsafe { &(*self.slot.as_ptr()).start }.get();
        // From the region's own pointer.
        in_memory(self.slot.cast(), start)
    }

    /// The buffer's memory, if the pool wipes.
    #[cfg(feature = "wipe")]
    pub(crate) fn wipe_range(&self) -> Option<NonNull<[u8]>> {
        // SAFETY: the slot is valid while the handle lives, and nobody writes `extra` until it is
        // free again.
        let slot = unsafe { self.slot.as_ref() };
        let control = slot.extra.control.get();
        // SAFETY: the control block lives as long as any of its slots is live, and nobody writes
        // this field after `build`. It is read through the pointer: a reference to the control
        // block would cover its link, which a sweeper may be writing.
        let wipe = unsafe { (*control).wipe };
        wipe.then(|| NonNull::slice_from_raw_parts(self.start(), slot.extra.capacity.get()))
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
            let released = unsafe { &(*slot.extra.control.get()).released };
            released.add(slot.extra.capacity.get());
        }
        // SAFETY: valid until the store below.
        let state = unsafe { &(*self.slot.as_ptr()).state };
        // ORDER: Relaxed. It only says which way to go: `late` looks again, with Acquire.
        if state.load(Ordering::Relaxed) != LIVE {
            // SAFETY: the state is not `LIVE`, and this is the drop of the lease.
            return unsafe { Self::late(self.slot) };
        }
        // ORDER: Release pairs with the Acquire in `Slots::is_free`, `Table::leave` and `settle`.
        if cfg!(loom) {
            // loom does not put a store behind an exchange that it races with, though the exchange
            // did not see it.
            state.swap(FREE, RELEASE);
        } else {
            state.store(FREE, RELEASE);
        }
        // From here on the slot may be gone.
    }
}

impl SlotHandle {
    /// Releases the slot after the pool's end, or while it may be waited for. Not by the handle:
    /// whose address is taken has to be in memory, on the fast path too.
    ///
    /// # Safety
    ///
    /// The slot is a handle's. Its state was seen to be other than `LIVE`, and the handle is not
    /// used again.
    #[cold]
    #[inline(never)]
    unsafe fn late(slot: NonNull<Slot>) {
        #[cfg(not(feature = "alloc"))]
        let _ = slot;
        #[cfg(feature = "alloc")]
        {
            let mut taken = None;
            // SAFETY: the caller's promise.
            if !unsafe { Self::free_watched(slot, &mut taken) } {
                // SAFETY: the slot is not released yet, and its pool has ended, which wrote `prev`
                // last.
                let at = unsafe { &(*slot.as_ptr()).prev }.get();
                let back = at as usize + TABLE_OFFSET;
                // SAFETY: so far behind its control block stands the slot, in one region, which is
                // all in reach of the handle's pointer.
                let control = unsafe { slot.cast::<u8>().sub(back) };
                // SAFETY: `orphan` is the first field of the control block, and the slot was
                // marked, once. The handle is not used again.
                unsafe { orphans::release_late(control.cast()) };
            }
            // The user's code: the slot may be gone.
            if let Some(taken) = taken {
                taken.wake();
            }
        }
    }

    /// Frees a slot that may be waited for, and takes out who is to be woken then. `false` when the
    /// pool has ended: then the slot is not released.
    ///
    /// # Safety
    ///
    /// As [`late`](Self::late).
    #[cfg(feature = "alloc")]
    unsafe fn free_watched(slot: NonNull<Slot>, taken: &mut Option<Taken>) -> bool {
        // SAFETY: valid until the exchange that frees it.
        let state = unsafe { &(*slot.as_ptr()).state };
        loop {
            // ORDER: Acquire pairs with the Release exchange in `Table::leave`: `prev` is as it was
            // stored there.
            let seen = state.load(Ordering::Acquire);
            if seen == ORPHANED {
                return false;
            }
            if seen == WATCHED {
                // ORDER: Release pairs with the Acquire in `Slots::is_free`, and in `Table::leave`
                // on failure. (Not in `settle`: that looks for `FREE` from after the end, and this
                // fails then.) A failure is looked at again.
                if state.compare_exchange(WATCHED, FREE, RELEASE, Ordering::Relaxed).is_ok() {
                    return true;
                }
                continue;
            }
            // The slot stays this release's until it is free, so the control block is there. ORDER:
            // Acquire pairs with the Release exchange in `Table::tell`. That is done anew each time
            // somebody is put into the place, so whoever waits is found there, or tells this slot
            // once more. A failure is looked at again.
            if state.compare_exchange(seen, WATCHED, Ordering::Acquire, Ordering::Relaxed).is_ok() {
                // SAFETY: the slot was told by its pool, and is not free yet.
                let newer = unsafe { waits::take_waiter(slot, seen) };
                if let Some(newer) = newer {
                    *taken = Some(newer.and(taken.take()));
                }
            }
        }
    }

    /// Has the release see whether somebody waits. For the thread that took the slot, before the
    /// lease is handed out.
    #[cfg(feature = "alloc")]
    pub(crate) fn watch(&self) {
        // SAFETY: the slot is valid while the handle lives.
        let state = unsafe { &(*self.slot.as_ptr()).state };
        // ORDER: Relaxed. Only this thread reads the state until the lease is handed over, and that
        // publishes it.
        state.store(WATCHED, Ordering::Relaxed);
    }
}

/// The byte at `address` in the region that `reaching` reaches.
#[inline(always)]
pub(super) fn in_memory(reaching: NonNull<u8>, address: usize) -> NonNull<u8> {
    let byte = reaching.as_ptr().with_addr(address);
    // SAFETY: no byte of a region is at address zero, nor is the end of one.
    unsafe { NonNull::new_unchecked(byte) }
}
