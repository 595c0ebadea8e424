//! The slot table: the bookkeeping at the start of the region, and all unsafe code that touches it.
//!
//! ```text
//!  region
//!  |<- pad ->|<- Head ->|<- Slot 0 .. Slot n-1, sentinel ->|<- Gaps ->|<- memory: capacity bytes ->|
//!            aligned    32 bytes each                      8 each     aligned to the buffers' alignment
//! ```
//!
//! The slots that hold a buffer form one circular, doubly linked list in the order of their
//! addresses, closed by the sentinel; the others form a stack. A slot's links and bounds are the
//! pool's alone; its state and its count of views are shared with the lease.

mod gaps;
mod handle;
mod layout;
mod orphaned;
mod slot;
mod slots;

use core::ptr::NonNull;

use bufcore::author::Released;
use bufcore::{ConfigError, Region, size};
use bufkit::{ControlBlock, FreedList};

pub(crate) use self::gaps::{FEW_SLOTS, Gaps};
pub(crate) use self::handle::SlotHandle;
use self::handle::in_memory;
use self::layout::Head;
pub(crate) use self::layout::{Layout, overhead_bytes};
use self::slot::Slot;
pub(crate) use self::slot::{MAX_SLOTS, NONE, STEP};
pub(crate) use self::slots::Slots;

/// A pool's access to its slot table.
///
/// # Invariants
///
/// - T1: `head` points to an initialised [`Head`], `slots` to initialised slots behind
///   it, up to the sentinel, and `memory` to `capacity` initialised bytes behind those, all in
///   `head.control.region`, until [`Table::leave`].
/// - T2: every `at` that a method takes is a multiple of `STEP`, at most `sentinel`; they come out
///   of the table only.
/// - T3: one table per control block; only it touches the slots' `Cell`s, but that the lease of a
///   live slot may read its `start`, its `end` and its `control`. Meanwhile only `resize` in `grow`
///   writes `end`, for a buffer that it has alone.
// In this order: what each request reads comes first.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Table {
    head: NonNull<Head>,
    slots: Slots,
    memory: NonNull<u8>,
    /// Where the last slot stands, which holds no buffer but closes the list. Never free.
    sentinel: u32,
    /// Whether [`Table::leave`] was called: T1 holds no more.
    left: bool,
    pub(crate) gaps: Gaps,
}

impl Table {
    /// Builds the bookkeeping for `slots` free slots in `region`, with `capacity` bytes to hand out
    /// behind it.
    ///
    /// # Errors
    ///
    /// Gives the region back when it is too small.
    pub(crate) fn build(
        region: Region,
        layout: Layout,
        slots: usize,
        capacity: usize,
        wipe: bool,
    ) -> Result<Self, (ConfigError, Region)> {
        let required = layout.memory.saturating_add(capacity.max(1));
        if required > region.len() {
            let available = region.len();
            return Err((ConfigError::RegionTooSmall { required, available }, region));
        }
        assert!((1..=MAX_SLOTS).contains(&slots), "{slots} slots");
        let base = region.as_ptr();
        // SAFETY: `layout.control <= layout.memory < region.len()`.
        let head = unsafe { base.add(layout.control) }.cast::<Head>();
        // SAFETY: likewise.
        let table = unsafe { base.add(layout.slots) }.cast::<Slot>();
        // SAFETY: likewise.
        let index = unsafe { base.add(layout.gaps) };
        // SAFETY: likewise.
        let memory = unsafe { base.add(layout.memory) };
        let start = memory.addr().get();
        // Addresses are rounded up to the alignment, and to cache lines: none of the memory may be
        // so near to the last of all that this starts again at the first.
        let slack = layout.alignment.saturating_add(2 * size::CACHE_LINE_BYTES);
        if start.checked_add(capacity).and_then(|end| end.checked_add(slack)).is_none() {
            let available = region.len();
            return Err((ConfigError::RegionTooSmall { required: usize::MAX, available }, region));
        }
        let (control, freed) = (ControlBlock::new::<Self>(region, wipe), FreedList::new());
        // SAFETY: `Layout` aligned the head and left room for it within the region, which is ours.
        unsafe { head.write(Head { control, freed }) };
        // SAFETY: `Layout` aligned the index behind the slots, and left room for it.
        let gaps = unsafe { Gaps::new(index, slots) };
        let sentinel = slots as u32 * STEP;
        for at in (0..=sentinel).step_by(STEP as usize) {
            let slot = Slot::new(at, sentinel, start..start + capacity, head.cast().as_ptr());
            // SAFETY: `Layout` left room for `slots + 1` slots.
            let place = unsafe { table.byte_add(at as usize) };
            // SAFETY: aligned, within the region, ours.
            unsafe { place.write(slot) };
        }
        Ok(Self { head, slots: Slots { first: table }, gaps, memory, sentinel, left: false })
    }

    /// Returns the slots.
    #[inline(always)]
    pub(crate) fn slots(&self) -> Slots {
        self.slots
    }

    fn head(&self) -> &Head {
        // SAFETY: initialised (T1), and never written while the table exists but through its
        // atomics.
        unsafe { self.head.as_ref() }
    }

    fn control(&self) -> &ControlBlock {
        &self.head().control
    }

    /// Returns the list of released slots that were watched.
    pub(crate) fn freed(&self) -> &FreedList {
        &self.head().freed
    }

    /// Returns the number of slots that no buffer holds, at this moment.
    pub(crate) fn free_slots(&self) -> usize {
        let listed = self.slots.freed_from(self.freed().first()).count();
        listed + self.all().filter(|&at| self.slots.is_free(at)).count()
    }

    /// Returns whether a buffer holds the slot at `at`, at this moment.
    pub(crate) fn is_taken(&self, at: u32) -> bool {
        !self.slots.is_free(at) && !self.slots.slot(at).state.is_listed()
    }

    /// Returns the position of the slot that closes the list.
    #[inline]
    pub(crate) fn sentinel(&self) -> u32 {
        self.sentinel
    }

    /// Iterates over the positions of the slots that can hold a buffer.
    pub(crate) fn all(&self) -> impl Iterator<Item = u32> + use<> {
        (0..self.sentinel).step_by(STEP as usize)
    }

    pub(crate) fn released(&self) -> &Released {
        &self.control().released
    }

    /// Returns the region that all of this is in.
    pub(crate) fn region(&self) -> &Region {
        &self.control().region
    }

    /// Returns the start of the memory.
    #[inline]
    pub(crate) fn memory(&self) -> NonNull<u8> {
        self.memory
    }

    /// Returns the address behind all that the pool uses of the memory.
    pub(crate) fn end(&self) -> usize {
        self.slots.start(self.sentinel)
    }

    /// Returns the byte at `address`, which is in the memory or behind its end.
    #[inline]
    pub(crate) fn byte(&self, address: usize) -> NonNull<u8> {
        debug_assert!(address >= self.memory.addr().get(), "{address:#x} is in front of the memory");
        in_memory(self.memory, address)
    }

    /// Zeroes the bytes `start .. end`, which nobody else has, if the pool wipes and there are any.
    pub(crate) fn wipe(&self, start: usize, end: usize) {
        #[cfg(feature = "wipe")]
        if self.control().wipe && start < end {
            let bytes = NonNull::slice_from_raw_parts(self.byte(start), end - start);
            // SAFETY: the range is in the region, and in no live slot but one whose buffer the
            // caller has alone, so nobody else has these bytes.
            unsafe { bufcore::author::wipe(bytes) };
        }
        #[cfg(not(feature = "wipe"))]
        let _ = (start, end);
    }

    /// Returns the position of the slot that a lease holds, if it is of this table.
    #[inline]
    pub(crate) fn position_of(&self, handle: &SlotHandle) -> Option<u32> {
        let position = handle.slot.addr().get().checked_sub(self.slots.first.addr().get())?;
        // No live slot of another table is in this one's region.
        u32::try_from(position).ok().filter(|&position| position < self.sentinel)
    }

    /// Returns the index of the slot that a lease holds, if it is of this table.
    pub(crate) fn index_of(&self, handle: &SlotHandle) -> Option<usize> {
        self.position_of(handle).map(|position| (position / STEP) as usize)
    }

    /// Leaves the region as [`leave`](Self::leave) does, and clears it so that it can be used
    /// again: its bytes are all initialised, as those of any region.
    ///
    /// The table's values are not: they have padding, and what was padding may be handed out by the
    /// region's next pool.
    pub(crate) fn leave_clean(&mut self) -> Option<Region> {
        let mut region = self.leave()?;
        region.mark_used();
        let start = region.as_ptr();
        let overhead = self.memory.addr().get() - start.addr().get();
        // SAFETY: these are the first bytes of the region (`build`), which nobody uses any more.
        unsafe { start.write_bytes(0, overhead) };
        Some(region)
    }

    /// Ends the pool's use of the region: gives it back if nothing is out, or else leaves it to the
    /// last release.
    ///
    /// Nothing but this may be called on the table afterwards; a second call does nothing.
    pub(crate) fn leave(&mut self) -> Option<Region> {
        if core::mem::replace(&mut self.left, true) {
            return None;
        }
        for freed in self.slots.freed_from(self.freed().close()) {
            self.slots.mark_free(freed);
        }
        let mut out = 0_usize;
        for at in self.all() {
            let slot = self.slots.slot(at);
            // For `SlotHandle::late`, to which the mark publishes it.
            slot.prev.set(at);
            out += usize::from(slot.state.orphan());
        }
        // SAFETY:
        // - left once: by the flag above; the caller does not use the table again.
        // - counted once: of the marked slots' leases each saw its mark, and then counts itself, or
        //   stores `FREE` over it, which one `count_missed` finds; or found the list closed, and
        //   counts itself.
        unsafe { ControlBlock::leave(self.head.cast(), out, (self.sentinel / STEP) as usize) }
    }
}
