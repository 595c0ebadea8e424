//! The ring of guards: the bookkeeping between the buffers, and the unsafe code that touches it.
//!
//! ```text
//!  region
//!  |<- pad ->|<- Control ->| front | guard | block | guard | block | … | end | unused ..... |
//!                            16 B    16 B    aligned
//! ```
//!
//! A block starts where its guard ends and reaches to the next guard. The guards at the two ends
//! are never free, so a walk in either direction stops there without looking for the region's
//! bounds. The end moves: up when the ring needs more of its region, and down when it is trimmed. A
//! guard's links are the allocator's alone; its state and its count of views are shared with the
//! lease.

mod guard;
mod layout;
mod lease;
mod nesting;
mod orphaned;

use core::ops::Range;
use core::ptr::NonNull;

use bufcore::author::Released;
use bufcore::{BuildInError, ConfigError, Region};
use bufkit::{ControlBlock, SlotState};

use self::guard::Guard;
pub(crate) use self::guard::{GUARD, GuardPtr, UNIT};
use self::layout::Layout;
pub(crate) use self::layout::{
    FIRST_BYTES, Grid, MAX_BYTES, blocks_bytes, most_buffers, most_capacity, overhead_bytes, room,
};
pub use self::lease::{RingBuf, RingLease, RingView};
pub(crate) use self::nesting::{may_nest, note_region};

/// Units of the smallest block: a guard without a byte behind it. Whatever a cut leaves is a block
/// of its own, which later requests merge with its neighbours. So a buffer keeps no unit that it
/// did not ask for, and [`Builder::buffers`](crate::Builder::buffers) equal buffers fit.
const LEAST_UNITS: usize = GUARD / UNIT;

/// Returns `units`, or all that are `left` where the others would be too few for a block.
fn least_left(units: usize, left: usize) -> usize {
    if left.saturating_sub(units) < LEAST_UNITS { left } else { units }
}

/// An allocator's access to its ring of guards.
///
/// # Invariants
///
/// - R1: `control` points to an initialised [`ControlBlock`], `front` to an initialised `Guard`
///   behind it, from which `size` leads from guard to guard to `end`, all initialised, all in
///   `control.region`, until [`Ring::leave`]; `before` leads back the same way. The bytes of all
///   blocks, and those behind `end`, are initialised.
/// - R2: every `GuardPtr` that a method takes is such a guard; they come out of the ring only. A
///   guard that was merged into a block is none any more, and the allocator holds none of those.
/// - R3: one ring per control block; only it touches the guards' `Cell`s, but that the lease of a
///   live block may read its `size`. Meanwhile only `grow` writes it, for a buffer that it has
///   alone.
/// - R4: `front` and `end` are live. `end.size` and `front.before` are 0.
/// - R5: guards stand at multiples of a unit, and a block is what is between its guard and the next
///   one. `last` is at or behind `end`, by no unit or by [`LEAST_UNITS`] and more. A guard has room
///   there, in the region. What is behind `end` and its guard is nobody's.
#[derive(Debug)]
pub(crate) struct Ring {
    control: NonNull<ControlBlock>,
    front: GuardPtr,
    end: GuardPtr,
    /// Where the end can be at most (R5).
    last: GuardPtr,
    /// Whether [`Ring::leave`] was called: R1 holds no more.
    left: bool,
}

impl Ring {
    /// Builds a ring in `region`, whose blocks can take `bytes` bytes with their guards, or all
    /// that there is room for. It begins with one free block, of the first of these bytes.
    ///
    /// # Errors
    ///
    /// Gives the region back when it is too small.
    pub(crate) fn build(
        region: Region,
        grid: Grid,
        bytes: Option<usize>,
        wipe: bool,
    ) -> Result<Self, BuildInError> {
        let (address, available) = (region.as_ptr().addr().get(), region.len());
        let (layout, bytes) = match Layout::within(address, available, grid, bytes) {
            Ok(found) => found,
            Err(required) => {
                let error = ConfigError::RegionTooSmall { required, available };
                return Err(BuildInError { error, region, fallback: () });
            }
        };
        // The casts to `u32` below rest on this. Building is a cold path, so the check stays in
        // every build.
        assert!(bytes <= MAX_BYTES && bytes.is_multiple_of(grid.step()), "{bytes} bytes of blocks");
        let base = region.as_ptr();
        // SAFETY: `layout.control` is less than `layout.memory + bytes`, which is at most the
        // region's length.
        let control = unsafe { base.add(layout.control) }.cast::<ControlBlock>();
        // SAFETY: likewise.
        let front = unsafe { base.add(layout.front) }.cast::<Guard>();
        // SAFETY: likewise: there is room for two guards from `front` on.
        let first = unsafe { front.byte_add(GUARD) };
        let units = least_left(grid.units(FIRST_BYTES), bytes / UNIT);
        // SAFETY: likewise: with the bytes of all blocks in between, there is room for a guard.
        let last = unsafe { first.byte_add(bytes) };
        // SAFETY: likewise; `units` are at most those of all blocks.
        let end = unsafe { first.byte_add(units * UNIT) };
        // SAFETY: `Layout` aligned it and left room for it within the region, which is ours.
        unsafe { control.write(ControlBlock::new::<Self>(region, wipe)) };
        let (guard, units) = ((GUARD / UNIT) as u32, units as u32);
        let guards = [
            (front, Guard::new(SlotState::held(), guard, 0)),
            (first, Guard::new(SlotState::free(), units, guard)),
            (end, Guard::new(SlotState::held(), 0, units)),
        ];
        for (at, guard) in guards {
            // SAFETY: aligned, within the region, ours.
            unsafe { at.write(guard) };
        }
        Ok(Self { control, front, end, last, left: false })
    }

    #[inline(always)]
    fn guard(&self, at: GuardPtr) -> &Guard {
        // SAFETY: an initialised guard (R1, R2); it is only ever shared, all its fields allow that.
        unsafe { at.as_ref() }
    }

    fn control(&self) -> &ControlBlock {
        // SAFETY: initialised (R1), and never written while the ring exists but through its
        // atomics.
        unsafe { self.control.as_ref() }
    }

    /// Returns the guard at the front, which has no block and is never free.
    #[inline(always)]
    pub(crate) fn front(&self) -> GuardPtr {
        self.front
    }

    /// Returns the guard at the end, which has no block and is never free.
    #[inline(always)]
    pub(crate) fn end(&self) -> GuardPtr {
        self.end
    }

    pub(crate) fn released(&self) -> &Released {
        &self.control().released
    }

    /// Returns the region that all of this is in.
    pub(crate) fn region(&self) -> &Region {
        &self.control().region
    }

    /// Iterates over the guards that have a block, from the front on.
    pub(crate) fn all(&self) -> impl Iterator<Item = GuardPtr> {
        let first = self.next(self.front);
        core::iter::successors(Some(first), |&at| Some(self.next(at))).take_while(|&at| at != self.end)
    }

    /// Returns whether the block is free. It is never true for the guards at the ends.
    #[inline(always)]
    pub(crate) fn is_free(&self, at: GuardPtr) -> bool {
        self.guard(at).state.is_free()
    }

    /// Returns the units from the guard to the next one.
    #[inline(always)]
    pub(crate) fn size(&self, at: GuardPtr) -> usize {
        self.guard(at).size.get() as usize
    }

    /// Returns the bytes of the block.
    #[inline]
    pub(crate) fn room(&self, at: GuardPtr) -> usize {
        room(self.size(at))
    }

    /// Returns the bytes of the one block that the ring is when nothing is out and it has all of
    /// its region.
    pub(crate) fn capacity(&self) -> usize {
        self.last.addr().get() - self.data(self.next(self.front)).addr().get()
    }

    /// Returns the units from the front to the end.
    pub(crate) fn used(&self) -> usize {
        (self.end.addr().get() - self.front.addr().get()) / UNIT
    }

    /// Returns the units by which the end can move up.
    #[inline]
    pub(crate) fn unused(&self) -> usize {
        (self.last.addr().get() - self.end.addr().get()) / UNIT
    }

    /// Returns the addresses of the bytes behind the guard at the end.
    pub(crate) fn unused_bytes(&self) -> Range<usize> {
        self.end.addr().get() + GUARD..self.last.addr().get() + GUARD
    }

    /// Returns the next guard; the one at the end leads to itself.
    #[inline(always)]
    pub(crate) fn next(&self, at: GuardPtr) -> GuardPtr {
        self.behind(at, self.size(at) * UNIT)
    }

    /// Returns the guard behind the block of `at`, whose size is `bytes`.
    #[inline(always)]
    pub(crate) fn behind(&self, at: GuardPtr, bytes: usize) -> GuardPtr {
        debug_assert_eq!(bytes, self.size(at) * UNIT);
        // SAFETY: the size leads to the next guard (R1).
        unsafe { at.byte_add(bytes) }
    }

    /// Returns the guard in front; the one at the front leads to itself.
    #[inline(always)]
    pub(crate) fn before(&self, at: GuardPtr) -> GuardPtr {
        // SAFETY: `before` leads to the guard in front (R1).
        unsafe { at.byte_sub(self.guard(at).before.get() as usize * UNIT) }
    }

    /// Returns the first byte behind a guard, which is that of its block. The guards at the ends
    /// have none.
    #[inline(always)]
    pub(crate) fn data(&self, at: GuardPtr) -> NonNull<u8> {
        // SAFETY: a guard of this ring (R2).
        unsafe { guard::data(at) }
    }

    /// Returns the end of the block, behind its last byte.
    pub(crate) fn block_end(&self, at: GuardPtr) -> NonNull<u8> {
        self.next(at).cast()
    }

    /// Marks a free block as owned.
    #[inline(always)]
    pub(crate) fn occupy(&self, at: GuardPtr) {
        self.guard(at).state.mark_live();
    }

    /// Cuts a block of the allocator's own down to `units`, a multiple of the grid, and returns the
    /// free block that it puts behind it. Returns `None` when nothing is left.
    #[inline]
    pub(crate) fn split(&self, at: GuardPtr, units: usize) -> Option<GuardPtr> {
        let size = self.size(at);
        debug_assert!(units <= size && units * UNIT > GUARD, "{units} of {size} units");
        let left = (size - units) as u32;
        if left < LEAST_UNITS as u32 {
            return None;
        }
        let behind = self.next(at);
        self.guard(at).size.set(units as u32);
        let rest = self.next(at);
        // SAFETY: `rest` is inside the block, whose bytes are ours, at a multiple of a unit, with
        // room for a guard.
        unsafe { rest.write(Guard::new(SlotState::free(), left, units as u32)) };
        self.guard(behind).before.set(left);
        Some(rest)
    }

    /// Merges the free blocks behind `at` into its block, which is free or the allocator's own;
    /// returns the guard behind.
    #[inline]
    pub(crate) fn merge_free(&self, at: GuardPtr) -> GuardPtr {
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
    pub(crate) fn merge_to(&self, at: GuardPtr, end: GuardPtr) {
        let size = (end.addr().get() - at.addr().get()) / UNIT;
        self.guard(at).size.set(size as u32);
        self.guard(end).before.set(size as u32);
    }

    /// Moves the end up by `units`, or by a little more, where there are as many unused. They are a
    /// free block then, with the guard where the end was.
    pub(crate) fn extend(&mut self, units: usize) {
        let (at, unused) = (self.end, self.unused());
        assert!(units > 0 && units <= unused, "{units} of {unused} units");
        let units = least_left(units, unused);
        // SAFETY: at most `last`, where a guard has room in the region (R5).
        let end = unsafe { at.byte_add(units * UNIT) };
        // SAFETY: likewise; what is behind the end is nobody's, and this is aligned as all guards.
        unsafe { end.write(Guard::new(SlotState::held(), 0, units as u32)) };
        self.guard(at).size.set(units as u32);
        self.guard(at).state.mark_free();
        self.end = end;
    }

    /// Moves the end down, so that the last block, which is free, has `units` or a little more. If
    /// it has fewer, it stays as it is.
    pub(crate) fn retract(&mut self, at: GuardPtr, units: usize) {
        debug_assert!(self.is_free(at) && self.next(at) == self.end);
        if units >= self.size(at) {
            return;
        }
        let old = self.end;
        if let Some(end) = self.split(at, units) {
            self.wipe_guard(old);
            self.guard(end).size.set(0);
            self.guard(end).state.mark_live();
            self.end = end;
        }
    }

    /// Zeroes a guard that is merged into a block, if the allocator wipes: what it hands out is
    /// zero then.
    #[inline]
    pub(crate) fn wipe_guard(&self, at: GuardPtr) {
        if cfg!(feature = "wipe") {
            self.wipe(at.cast(), self.data(at));
        }
    }

    /// Zeroes the bytes `from .. to`, which nobody else has, if the allocator wipes and there are
    /// any.
    pub(crate) fn wipe(&self, from: NonNull<u8>, to: NonNull<u8>) {
        #[cfg(feature = "wipe")]
        if self.control().wipe && from < to {
            let bytes = NonNull::slice_from_raw_parts(from, to.addr().get() - from.addr().get());
            // SAFETY: the range is in blocks of the allocator's own, or of a buffer that the caller
            // has alone, so nobody else has these bytes, and they are initialised.
            unsafe { bufcore::author::wipe(bytes) };
        }
        #[cfg(not(feature = "wipe"))]
        let _ = (from, to);
    }

    /// Makes the lease of a block that was just occupied.
    #[inline(always)]
    pub(crate) fn lease(&self, at: GuardPtr) -> RingLease {
        RingLease::new(at, self.control)
    }

    /// Returns the units from the guard at the front to one that has a block. They are fewer than
    /// those of all blocks, which are counted in a `u32`: a block has more units than that guard.
    fn distance(&self, at: GuardPtr) -> u32 {
        ((at.addr().get() - self.front.addr().get()) / UNIT) as u32
    }

    /// Leaves the region as [`leave`](Self::leave) does, and clears it so that it can be used
    /// again: its bytes are all initialised, as those of any region.
    ///
    /// The control block is not: it has padding, and what was padding may be handed out by the
    /// region's next user. The guards go with it, so that a region that was zero is zero again
    /// where nobody wrote.
    pub(crate) fn leave_clean(&mut self) -> Option<Region> {
        let mut region = self.leave()?;
        region.mark_used();
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
        unsafe { self.control.cast::<u8>().write_bytes(0, size_of::<ControlBlock>()) };
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
        for at in self.all() {
            let guard = self.guard(at);
            places += 1;
            // For `RingLease::late`, to which the mark publishes it.
            guard.before.set(self.distance(at));
            out += usize::from(guard.state.orphan());
        }
        // SAFETY:
        // - left once: by the flag above; the caller does not use the ring again.
        // - counted once: of the marked blocks' leases each saw its mark, and then counts itself,
        //   or stores `FREE` over it, which one `count_missed` finds.
        unsafe { ControlBlock::leave(self.control, out, places) }
    }
}
