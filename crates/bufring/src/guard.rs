//! The guard in front of each block, and the release of a block.

use core::cell::Cell;
use core::ptr::NonNull;

#[cfg(any(feature = "wipe", feature = "stats"))]
use crate::ring::Control;
use bufcore::strategy::Views;
use bufcore::strategy::sync::{AtomicU32, Ordering, RELEASE};

/// Blocks are measured in units of so many bytes, so that a `u32` reaches to 64 GiB.
pub(crate) const UNIT: usize = 16;

/// Bytes of a guard: what each buffer takes beside its own.
pub(crate) const GUARD: usize = size_of::<Guard>();

/// Where a guard is. Made from the region's own pointer, so that it reaches all of the region.
pub(crate) type At = NonNull<Guard>;

/// The block is free: its memory may be handed out.
pub(crate) const FREE: u32 = 0;
/// A buffer or an open frame owns the block; or it is one of the two guards at the ends.
pub(crate) const LIVE: u32 = 1;
/// A buffer owned the block when its allocator ended: its release is counted in the control block, and leaves the state as it is.
pub(crate) const ORPHANED: u32 = 2;
/// The block was free when its allocator ended, or its release was found afterwards.
pub(crate) const SETTLED: u32 = 3;

/// Stands in front of a block. It has no padding, so a guard that is merged into a block leaves initialised bytes.
#[repr(C, align(16))]
pub(crate) struct Guard {
    /// `FREE`, `LIVE`, and after the allocator's end `ORPHANED` or `SETTLED`. Set to `LIVE` by the allocator, to `FREE` by the lease.
    pub(crate) state: AtomicU32,
    /// How many frozen views share the buffer. Used by `bufcore` only.
    views: Views,
    /// Units from this guard to the next one; 0 for the guard at the end.
    pub(crate) size: Cell<u32>,
    /// Units from the guard in front to this one; 0 for the guard at the front. After the allocator's end, those from the guard at
    /// the front.
    pub(crate) before: Cell<u32>,
}

#[cfg(not(loom))]
const _: () = assert!(GUARD == 16, "four words, and no padding");
const _: () = assert!(GUARD.is_multiple_of(UNIT), "a block starts where its guard ends");

impl Guard {
    pub(crate) fn new(state: u32, size: u32, before: u32) -> Self {
        Self {
            state: AtomicU32::new(state),
            views: Views::new(),
            size: Cell::new(size),
            before: Cell::new(before),
        }
    }
}

/// The release of one block.
#[derive(Debug)]
pub(crate) struct GuardHandle {
    /// Valid until this handle's drop has stored `FREE`, and not one instruction longer.
    guard: At,
    #[cfg(any(feature = "wipe", feature = "stats"))]
    control: NonNull<Control>,
}

// SAFETY: through the handle only the guard's atomics and its `size` are used, and what the control block has of atomics and
// settings; nobody writes the size of a block that a lease owns (R3). `before` is used after the allocator's end, which wrote it last.
unsafe impl Send for GuardHandle {}
// SAFETY: likewise.
unsafe impl Sync for GuardHandle {}

impl GuardHandle {
    /// The handle of a live block.
    #[inline]
    pub(crate) fn new(
        guard: At,
        #[cfg(any(feature = "wipe", feature = "stats"))] control: NonNull<Control>,
    ) -> Self {
        Self {
            guard,
            #[cfg(any(feature = "wipe", feature = "stats"))]
            control,
        }
    }

    #[inline]
    pub(crate) fn views(&self) -> &Views {
        // SAFETY: the guard is valid while the handle lives; atomics may be shared.
        unsafe { &(*self.guard.as_ptr()).views }
    }

    /// Bytes of the block behind its guard.
    #[cfg(any(feature = "wipe", feature = "stats"))]
    fn room(&self) -> usize {
        // SAFETY: the guard is valid while the handle lives, and nobody writes its size meanwhile (R3).
        let size = unsafe { &(*self.guard.as_ptr()).size }.get();
        size as usize * UNIT - GUARD
    }

    /// The block's memory, if the allocator wipes.
    #[cfg(feature = "wipe")]
    pub(crate) fn wipe_range(&self) -> Option<NonNull<[u8]>> {
        // SAFETY: the control block lives as long as any of its blocks is live, and `wipe` is never written.
        let wipe = unsafe { (*self.control.as_ptr()).wipe };
        // SAFETY: a block starts where its guard ends.
        let first = unsafe { self.guard.byte_add(GUARD) }.cast::<u8>();
        wipe.then(|| NonNull::slice_from_raw_parts(first, self.room()))
    }
}

impl Drop for GuardHandle {
    #[inline]
    fn drop(&mut self) {
        #[cfg(feature = "stats")]
        {
            // SAFETY: the control block lives as long as any of its blocks is live; the counters are atomics.
            let released = unsafe { &(*self.control.as_ptr()).released };
            released.add(self.room());
        }
        // SAFETY: valid until the store below.
        let state = unsafe { &(*self.guard.as_ptr()).state };
        // ORDER: Relaxed. It only says which way to go: `late` looks again, with Acquire.
        if state.load(Ordering::Relaxed) != LIVE {
            // SAFETY: the state is not `LIVE`, and this is the drop of the lease.
            return unsafe { Self::late(self.guard) };
        }
        // ORDER: Release pairs with the Acquire in `Ring::is_free`, `Ring::leave` and `settle`.
        if cfg!(loom) {
            // loom does not put a store behind an exchange that it races with, though the exchange did not see it.
            state.swap(FREE, RELEASE);
        } else {
            state.store(FREE, RELEASE);
        }
        // From here on the guard may be gone.
    }
}

impl GuardHandle {
    /// Releases the block after the allocator's end. Not by the handle: whose address is taken has to be in memory, on the fast path too.
    ///
    /// # Safety
    ///
    /// The guard is a handle's. Its state was seen to be other than `LIVE`, and the handle is not used again.
    #[cold]
    #[inline(never)]
    unsafe fn late(guard: At) {
        #[cfg(not(feature = "alloc"))]
        let _ = guard;
        #[cfg(feature = "alloc")]
        {
            // SAFETY: valid until the release is counted.
            let marked = unsafe { guard.as_ref() };
            // ORDER: Acquire pairs with the Release exchange in `Ring::leave`: `before` is as it was stored there.
            let state = marked.state.load(Ordering::Acquire);
            debug_assert_eq!(state, ORPHANED, "a block is released once");
            // SAFETY: so far in front of it stands the guard at the front, in one region, which is all in reach of the handle's
            // pointer.
            let front = unsafe { guard.byte_sub(marked.before.get() as usize * UNIT) };
            // SAFETY: the guard at the front, and the block was marked, once. The handle is not used again.
            unsafe { crate::ring::release_late(front) };
        }
    }
}
