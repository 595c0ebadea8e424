//! The ring of guards: the bookkeeping that stands between the buffers, and the unsafe code that
//! touches it.
//!
//! ```text
//!  region
//!  |<- pad ->|<- Control ->| front | guard | block | guard | block | … | end |
//!                            16 B    16 B    aligned
//! ```
//!
//! A block starts where its guard ends and reaches to the next guard. The guards at the two ends
//! are never free, so a walk in either direction stops there without looking for the region's
//! bounds. A guard's links are the allocator's alone; its state and its count of views are shared
//! with the lease.

mod control;
mod guard;
mod handle;
mod layout;
#[cfg(feature = "alloc")]
mod orphaned;

use core::mem::ManuallyDrop;
use core::ptr::NonNull;

use bufcore::strategy::Released;
#[cfg(feature = "alloc")]
use bufcore::strategy::orphans::{self, Orphan};
use bufcore::strategy::sync::Ordering;
use bufcore::{ConfigError, Region};

use self::control::{Control, take_region};
pub(crate) use self::guard::{At, GUARD, UNIT};
use self::guard::{FREE, Guard, LIVE, ORPHANED, SETTLED};
pub(crate) use self::handle::GuardHandle;
pub(crate) use self::layout::{Grid, Layout, MAX_BYTES, blocks_bytes, overhead_bytes};
#[cfg(feature = "alloc")]
use self::orphaned::METHODS;

/// Units of the smallest block: a guard and the least that there can be behind it. What is left of
/// a block is never too small to be one by more than that, so
/// [`Builder::buffers`](crate::Builder::buffers) keeps its word for buffers of a byte too.
const LEAST_UNITS: usize = GUARD / UNIT + 1;

/// An allocator's access to its ring of guards.
///
/// # Invariants
///
/// - R1: `control` points to an initialised `Control`, `front` to an initialised `Guard` behind it,
///   from which `size` leads from guard to guard to `end`, all initialised, all in
///   `control.region`, until [`Ring::leave`]; `before` leads back the same way. The bytes between
///   two guards are initialised.
/// - R2: every `At` that a method takes is such a guard; they come out of the ring only. A guard
///   that was merged into a block is none any more, and the allocator holds none of those.
/// - R3: one ring per control block; only it touches the guards' `Cell`s, but that the lease of a
///   live block may read its `size`, which nobody writes meanwhile.
/// - R4: `front` and `end` are live for ever. `end.size` and `front.before` are 0.
#[derive(Debug)]
pub(crate) struct Ring {
    control: NonNull<Control>,
    front: At,
    end: At,
    /// Whether [`Ring::leave`] was called: R1 holds no more.
    left: bool,
}

impl Ring {
    /// Builds a ring of one free block in `region`, which with its guard takes `bytes` bytes, or
    /// all that there is room for.
    ///
    /// # Errors
    ///
    /// Gives the region back when it is too small.
    pub(crate) fn build(
        region: Region,
        grid: Grid,
        bytes: Option<usize>,
        wipe: bool,
    ) -> Result<Self, (ConfigError, Region)> {
        let available = region.len();
        let too_small = |required| ConfigError::RegionTooSmall { required, available };
        let Some(layout) = Layout::new(region.as_ptr().addr().get(), grid) else {
            return Err((too_small(usize::MAX), region));
        };
        let left = available.saturating_sub(layout.overhead());
        // What a block has to be at the least, and what all together may be.
        let least = grid.units(1) * UNIT;
        let bytes = bytes.unwrap_or(left.min(MAX_BYTES) & grid.mask).max(least);
        if bytes > left {
            return Err((too_small(bytes.saturating_add(layout.overhead())), region));
        }
        // The casts to `u32` below rest on this. Building is a cold path, so the check stays in
        // every build.
        assert!(bytes <= MAX_BYTES && bytes.is_multiple_of(grid.step()), "{bytes} bytes of blocks");
        let base = region.as_ptr();
        // SAFETY: `layout.control` is less than `overhead + bytes`, which is at most the region's
        // length.
        let control = unsafe { base.add(layout.control) }.cast::<Control>();
        // SAFETY: likewise.
        let front = unsafe { base.add(layout.front) }.cast::<Guard>();
        // SAFETY: likewise: the overhead has room for two guards from `front` on.
        let first = unsafe { front.byte_add(GUARD) };
        // SAFETY: likewise, with `bytes` behind the first.
        let end = unsafe { first.byte_add(bytes) };
        let contents = Control {
            #[cfg(feature = "alloc")]
            orphan: Orphan::counted(&METHODS),
            region: ManuallyDrop::new(region),
            released: Released::default(),
            #[cfg(feature = "wipe")]
            wipe,
        };
        #[cfg(not(feature = "wipe"))]
        let _ = wipe;
        // SAFETY: `Layout` aligned it and left room for it within the region, which is ours.
        unsafe { control.write(contents) };
        let (guard, all) = ((GUARD / UNIT) as u32, (bytes / UNIT) as u32);
        let guards = [
            (front, Guard::new(LIVE, guard, 0)),
            (first, Guard::new(FREE, all, guard)),
            (end, Guard::new(LIVE, 0, all)),
        ];
        for (at, guard) in guards {
            // SAFETY: aligned, within the region, ours.
            unsafe { at.write(guard) };
        }
        Ok(Self { control, front, end, left: false })
    }

    #[inline(always)]
    fn guard(&self, at: At) -> &Guard {
        // SAFETY: an initialised guard (R1, R2); it is only ever shared, all its fields allow that.
        unsafe { at.as_ref() }
    }

    fn control(&self) -> &Control {
        // SAFETY: initialised (R1), and never written while the ring exists but through its
        // atomics.
        unsafe { self.control.as_ref() }
    }

    /// The guard at the front, which has no block and is never free.
    #[inline(always)]
    pub(crate) fn front(&self) -> At {
        self.front
    }

    /// The guard at the end, which has no block and is never free.
    #[inline(always)]
    pub(crate) fn end(&self) -> At {
        self.end
    }

    pub(crate) fn released(&self) -> &Released {
        &self.control().released
    }

    /// The guards that have a block, from the front on.
    pub(crate) fn all(&self) -> impl Iterator<Item = At> {
        let first = self.next(self.front);
        core::iter::successors(Some(first), |&at| Some(self.next(at))).take_while(|&at| at != self.end)
    }

    /// Whether the block is free. Never true for the guards at the ends.
    #[inline(always)]
    pub(crate) fn is_free(&self, at: At) -> bool {
        // ORDER: Acquire pairs with the Release store in `GuardHandle::drop`: all that the last
        // owner did with the memory happened before what its next owner does.
        self.guard(at).state.load(Ordering::Acquire) == FREE
    }

    /// Units from the guard to the next one.
    #[inline(always)]
    pub(crate) fn size(&self, at: At) -> usize {
        self.guard(at).size.get() as usize
    }

    /// Bytes of the block behind its guard.
    #[inline]
    pub(crate) fn room(&self, at: At) -> usize {
        self.size(at) * UNIT - GUARD
    }

    /// The next guard; the one at the end leads to itself.
    #[inline(always)]
    pub(crate) fn next(&self, at: At) -> At {
        self.behind(at, self.size(at) * UNIT)
    }

    /// The guard behind the block of `at`, whose size is `bytes`.
    #[inline(always)]
    pub(crate) fn behind(&self, at: At, bytes: usize) -> At {
        debug_assert_eq!(bytes, self.size(at) * UNIT);
        // SAFETY: the size leads to the next guard (R1).
        unsafe { at.byte_add(bytes) }
    }

    /// The guard in front; the one at the front leads to itself.
    #[inline(always)]
    pub(crate) fn before(&self, at: At) -> At {
        // SAFETY: `before` leads to the guard in front (R1).
        unsafe { at.byte_sub(self.guard(at).before.get() as usize * UNIT) }
    }

    /// The first byte of the block.
    #[inline(always)]
    pub(crate) fn data(&self, at: At) -> NonNull<u8> {
        // SAFETY: a block starts where its guard ends (R1); that of the end guard is within the
        // region, or one past its end.
        unsafe { at.byte_add(GUARD) }.cast()
    }

    /// Marks a free block as owned.
    #[inline(always)]
    pub(crate) fn occupy(&self, at: At) {
        // ORDER: Relaxed. Only this thread reads the state until the lease is handed over, and that
        // publishes it.
        self.guard(at).state.store(LIVE, Ordering::Relaxed);
    }

    /// Frees a live block of the allocator's own, whose bytes up to `used` were written.
    pub(crate) fn abandon(&self, at: At, used: NonNull<u8>) {
        self.wipe(self.data(at), used);
        // ORDER: Relaxed: it was this thread that used the memory, and no other reads the state.
        self.guard(at).state.store(FREE, Ordering::Relaxed);
    }

    /// Cuts a block of the allocator's own down to `units`, a multiple of the grid, and puts a free
    /// block behind it, if what is left is worth one.
    #[inline]
    pub(crate) fn split(&self, at: At, units: usize) {
        let size = self.size(at);
        debug_assert!(units <= size && units * UNIT > GUARD, "{units} of {size} units");
        if size - units < LEAST_UNITS {
            return;
        }
        let behind = self.next(at);
        self.guard(at).size.set(units as u32);
        let rest = self.next(at);
        // SAFETY: `rest` is inside the block, whose bytes are ours, at a multiple of a unit, with
        // room for a guard.
        unsafe { rest.write(Guard::new(FREE, (size - units) as u32, units as u32)) };
        self.guard(behind).before.set((size - units) as u32);
    }

    /// Merges the free blocks behind `at` into its block, which is free or the allocator's own;
    /// returns the guard behind.
    #[inline]
    pub(crate) fn merge_free(&self, at: At) -> At {
        let mut end = self.next(at);
        while self.is_free(end) {
            let next = self.next(end);
            self.wipe_guard(end);
            end = next;
        }
        self.merge_to(at, end);
        end
    }

    /// Makes one block, of the guard `at`, of all up to `end`. They are free or the allocator's
    /// own.
    #[inline]
    pub(crate) fn merge_to(&self, at: At, end: At) {
        let size = (end.addr().get() - at.addr().get()) / UNIT;
        self.guard(at).size.set(size as u32);
        self.guard(end).before.set(size as u32);
    }

    /// Zeroes a guard that is merged into a block, if the allocator wipes: what it hands out is
    /// zero then.
    #[inline]
    pub(crate) fn wipe_guard(&self, at: At) {
        self.wipe(at.cast(), self.data(at));
    }

    /// Zeroes the bytes `from .. to`, which are the allocator's own, if it wipes and there are any.
    pub(crate) fn wipe(&self, from: NonNull<u8>, to: NonNull<u8>) {
        #[cfg(feature = "wipe")]
        if self.control().wipe && from < to {
            let bytes = NonNull::slice_from_raw_parts(from, to.addr().get() - from.addr().get());
            // SAFETY: the range is in blocks of the allocator's own, so nobody else has these
            // bytes, and they are initialised.
            unsafe { bufcore::strategy::wipe(bytes) };
        }
        #[cfg(not(feature = "wipe"))]
        let _ = (from, to);
    }

    /// The lease's part of a block that was just occupied.
    #[inline(always)]
    pub(crate) fn handle(&self, at: At) -> GuardHandle {
        GuardHandle::new(
            at,
            #[cfg(any(feature = "wipe", feature = "stats"))]
            self.control,
        )
    }

    /// As [`leave`](Self::leave), for a region that will be used again: its bytes are all
    /// initialised, as those of any region.
    ///
    /// The control block is not: it has padding, and what was padding may be handed out by the
    /// region's next user. The guards go with it, so that a region that was zero is zero again
    /// where nobody wrote.
    pub(crate) fn leave_clean(&mut self) -> Option<Region> {
        let region = self.leave()?;
        let mut at = self.front;
        loop {
            let next = self.next(at);
            // SAFETY: a guard of the region, which has come back: nobody else uses it.
            unsafe { at.cast::<u8>().write_bytes(0, GUARD) };
            if at == next {
                break;
            }
            at = next;
        }
        // SAFETY: likewise for the control block.
        unsafe { self.control.cast::<u8>().write_bytes(0, size_of::<Control>()) };
        Some(region)
    }

    /// Ends the allocator's use of the region: gives it back if nothing is out, or else leaves it
    /// to the last release.
    ///
    /// Nothing but this may be called on the ring afterwards; a second call does nothing.
    pub(crate) fn leave(&mut self) -> Option<Region> {
        if core::mem::replace(&mut self.left, true) {
            return None;
        }
        let (mut out, mut places) = (0_usize, 0_usize);
        let front = self.front.addr().get();
        for at in self.all() {
            let guard = self.guard(at);
            places += 1;
            // For `GuardHandle::late`, to which the exchange publishes it. No more than all blocks
            // and the guard at the front, which are counted in a `u32`.
            guard.before.set(((at.addr().get() - front) / UNIT) as u32);
            // ORDER: AcqRel on success: Release pairs with the Acquire in `GuardHandle::late`;
            // Acquire as in `is_free`. Acquire on failure pairs with the Release store in
            // `GuardHandle::drop`.
            match guard.state.compare_exchange(LIVE, ORPHANED, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => out += 1,
                // ORDER: Relaxed: nobody else uses a guard that is free.
                Err(_) => guard.state.store(SETTLED, Ordering::Relaxed),
            }
        }
        if out == 0 {
            #[cfg(all(test, loom))]
            crate::tests::memory_goes();
            // SAFETY: all blocks are free, and the caller does not use the ring again.
            return Some(unsafe { take_region(self.control) });
        }
        let _ = places;
        #[cfg(feature = "alloc")]
        if !self.control().region.is_static() {
            // SAFETY:
            // - the head: `orphan` is the first field of the control block (`repr(C)`), and
            //   `METHODS` are for such blocks.
            // - counted once: of the marked blocks' leases each saw its mark, and then counts
            //   itself, or stores `FREE` over it, which one `settle` finds.
            // - nobody else: the caller does not use the ring again.
            unsafe { orphans::adopt_counted(self.control.cast(), out, places) };
        }
        None
    }
}
