//! The release of one block: all that a lease touches.

use core::ptr::NonNull;

use bufcore::author::{RefCount, TaggedPtr};
use bufkit::SlotState;

#[cfg(any(feature = "wipe", feature = "stats"))]
use super::control::Control;
#[cfg(feature = "alloc")]
use super::guard::UNIT;
use super::guard::{self, Guard, GuardPtr};
#[cfg(any(feature = "wipe", feature = "stats"))]
use super::layout;

/// The release of one block.
#[derive(Debug)]
pub(crate) struct GuardHandle {
    /// A guard is valid until this handle's drop has freed its block, and not one instruction
    /// longer. None for a buffer of no bytes.
    tagged: TaggedPtr<Guard>,
    /// Dangling for a buffer of no bytes.
    #[cfg(any(feature = "wipe", feature = "stats"))]
    control: NonNull<Control>,
}

// SAFETY: through the handle only the guard's atomics and its `size` are used, and what the control
// block has of atomics and settings; nobody writes the size of a block that a lease owns (R3).
// `before` is used after the allocator's end, which wrote it last.
unsafe impl Send for GuardHandle {}
// SAFETY: likewise.
unsafe impl Sync for GuardHandle {}

impl GuardHandle {
    /// Makes the handle of a live block.
    #[inline]
    pub(super) fn new(
        guard: GuardPtr,
        #[cfg(any(feature = "wipe", feature = "stats"))] control: NonNull<Control>,
    ) -> Self {
        Self {
            tagged: TaggedPtr::of(guard),
            #[cfg(any(feature = "wipe", feature = "stats"))]
            control,
        }
    }

    /// Makes the handle of no block.
    #[inline]
    pub(crate) fn empty() -> Self {
        Self {
            tagged: TaggedPtr::empty(),
            #[cfg(any(feature = "wipe", feature = "stats"))]
            control: NonNull::dangling(),
        }
    }

    /// Returns whether the handle is marked as one of several.
    #[inline(always)]
    pub(crate) fn is_shared(&self) -> bool {
        self.tagged.is_shared()
    }

    /// Returns the guard, if the buffer has all of its block.
    #[inline(always)]
    pub(crate) fn alone(&self) -> Option<GuardPtr> {
        self.tagged.unmarked()
    }

    /// Marks the handle as one of several.
    #[inline]
    pub(crate) fn into_shared(self) -> Self {
        // Not released: the marked one is the same handle.
        let handle = core::mem::ManuallyDrop::new(self);
        Self {
            tagged: handle.tagged.shared(),
            #[cfg(any(feature = "wipe", feature = "stats"))]
            control: handle.control,
        }
    }

    #[inline]
    pub(crate) fn views(&self) -> Option<&RefCount> {
        // SAFETY: the guard is valid while the handle lives; atomics may be shared.
        self.tagged.block().map(|guard| unsafe { &(*guard.as_ptr()).views })
    }

    /// Returns the bytes of the block.
    ///
    /// # Safety
    ///
    /// `guard` is that of a handle, which lives.
    #[cfg(any(feature = "wipe", feature = "stats"))]
    unsafe fn room(guard: GuardPtr) -> usize {
        // SAFETY: the guard is valid while the handle lives, and nobody writes its size meanwhile
        // (R3).
        let size = unsafe { &(*guard.as_ptr()).size }.get();
        layout::room(size as usize)
    }

    /// Returns the start of the block's memory.
    pub(crate) fn start(&self) -> Option<NonNull<u8>> {
        // SAFETY: the guard of a live block, which is valid while the handle lives.
        self.tagged.block().map(|guard| unsafe { guard::data(guard) })
    }

    /// Returns the block's memory, if the allocator wipes.
    #[cfg(feature = "wipe")]
    pub(crate) fn wipe_range(&self) -> Option<NonNull<[u8]>> {
        let (guard, first) = (self.tagged.block()?, self.start()?);
        // SAFETY: the control block lives as long as any of its blocks is live, and `wipe` is never
        // written.
        let wipe = unsafe { (*self.control.as_ptr()).wipe };
        // SAFETY: the handle's guard.
        wipe.then(|| NonNull::slice_from_raw_parts(first, unsafe { Self::room(guard) }))
    }
}

impl Drop for GuardHandle {
    #[inline]
    fn drop(&mut self) {
        // By value, because a handle whose address is taken has to be in memory, on the fast path
        // too.
        let (tagged, here) = (self.tagged, self.here());
        match tagged.unmarked() {
            // SAFETY: the handle's guard, and this is the drop of the lease.
            Some(guard) => unsafe { Self::release(guard, here) },
            // SAFETY: likewise.
            None => unsafe { Self::release_marked(tagged, here) },
        }
    }
}

/// What a release has to know for the optional features.
#[cfg(any(feature = "wipe", feature = "stats"))]
type Here = NonNull<Control>;
#[cfg(not(any(feature = "wipe", feature = "stats")))]
type Here = ();

impl GuardHandle {
    #[inline(always)]
    fn here(&self) -> Here {
        #[cfg(any(feature = "wipe", feature = "stats"))]
        self.control
    }

    /// Releases a block that was split, by its last part, and nothing for a buffer of no bytes.
    ///
    /// # Safety
    ///
    /// As [`release`](Self::release), for the guard that is named.
    #[cold]
    #[inline(never)]
    unsafe fn release_marked(tagged: TaggedPtr<Guard>, here: Here) {
        if let Some(guard) = tagged.block() {
            // SAFETY: the caller's promise.
            unsafe { Self::release(guard, here) };
        }
    }

    /// Releases a block.
    ///
    /// # Safety
    ///
    /// The guard, and what is known here, are a handle's, which is the last of its block and is not
    /// used again.
    #[inline(always)]
    #[cfg_attr(not(feature = "stats"), allow(unused_variables, reason = "nothing is counted"))]
    unsafe fn release(guard: GuardPtr, here: Here) {
        #[cfg(feature = "stats")]
        {
            // SAFETY: the control block lives as long as any of its blocks is live; the counters
            // are atomics.
            let released = unsafe { &(*here.as_ptr()).released };
            // SAFETY: the handle's guard, which lives until the store below.
            released.add(unsafe { Self::room(guard) });
        }
        // SAFETY: the state is the first field of a guard, which is valid until it is free. This is
        // the drop of the lease. From here on the guard may be gone.
        if !unsafe { SlotState::release(guard.cast()) } {
            // SAFETY: the block is not released yet, and this is the drop of the lease.
            unsafe { Self::late(guard) };
        }
    }
}

impl GuardHandle {
    /// Counts the release of a block whose allocator has ended. Not by the handle: a handle whose
    /// address is taken has to be in memory, on the fast path too.
    ///
    /// # Safety
    ///
    /// The guard is a handle's. [`SlotState::release`] has returned `false` for it, and the
    /// handle is not used again.
    #[cold]
    #[inline(never)]
    unsafe fn late(guard: GuardPtr) {
        #[cfg(not(feature = "alloc"))]
        let _ = guard;
        #[cfg(feature = "alloc")]
        {
            // SAFETY: the block is not counted yet, so its guard is valid.
            let guard_at = unsafe { guard.as_ref() };
            guard_at.state.see_end();
            // The allocator has ended, and wrote it last.
            let before = guard_at.before.get();
            // SAFETY: so far in front of it stands the guard at the front, in one region, which is
            // all in reach of the handle's pointer.
            let front = unsafe { guard.byte_sub(before as usize * UNIT) };
            // SAFETY: the guard at the front, and the block was marked, once. The handle is not
            // used again.
            unsafe { super::orphaned::release_orphaned(front) };
        }
    }
}
