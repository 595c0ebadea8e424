//! The slot table: the bookkeeping that stands at the start of the region, and all unsafe code that touches it.
//!
//! ```text
//!  region
//!  |<- pad ->|<- Block ->|<- Slot 0 .. Slot n-1, sentinel ->|<- memory: capacity bytes ->|
//!            aligned     32 bytes each                      aligned to the buffers' alignment
//! ```
//!
//! The slots that hold a buffer form one circular, doubly linked list in the order of their addresses, closed by the
//! sentinel; the others form a stack. A slot's links and bounds are the pool's alone; its state and its count of views are
//! shared with the lease.

use core::cell::Cell;
use core::mem::ManuallyDrop;
use core::ptr::NonNull;

#[cfg(feature = "alloc")]
use bufcore::strategy::orphans::{self, Orphan};
use bufcore::strategy::sync::{AtomicU32, Ordering, RELEASE};
use bufcore::strategy::{Released, Views};
use bufcore::{ConfigError, Region, size};

/// The slot is free: its memory may be carved again.
const FREE: u32 = 0;
/// A buffer or the open frame owns the slot.
const LIVE: u32 = 1;
/// A buffer owned the slot when its pool ended: its release is counted in the block, and leaves the state as it is.
const ORPHANED: u32 = 2;

/// The sentinel, which holds no buffer and is never free.
const SENTINEL: u32 = 3;

/// The slot was free when its pool ended, or its release was found afterwards.
const SETTLED: u32 = 4;

/// No slot.
pub(crate) const NONE: u32 = u32::MAX;

/// The most slots that a pool can have: the sentinel's place, in bytes, has to fit in a `u32` below `NONE`.
pub(crate) const MAX_SLOTS: usize = (u32::MAX as usize - 1) / size_of::<Slot>() - 1;

/// The distance from one slot to the next, in bytes. Slots are named by where they stand in the table, in bytes, because
/// that saves the multiplication on each of the dependent loads of an acquire.
pub(crate) const STEP: u32 = size_of::<Slot>() as u32;

/// One buffer's place.
#[repr(C, align(32))]
pub(crate) struct Slot {
    /// `FREE`, `LIVE`, `SENTINEL`, and after the pool's end `ORPHANED` or `SETTLED`. Set to `LIVE` by the pool, to `FREE` by the
    /// lease.
    state: AtomicU32,
    /// How many frozen views share the buffer. Used by `bufcore` only.
    views: Views,
    /// Address of the buffer's first byte, in the memory; for the sentinel, that of the memory's end.
    start: Cell<usize>,
    /// Address behind its last byte; for the sentinel, that of the memory's start.
    end: Cell<usize>,
    /// Neighbours in the list, or `next` in the stack. After the pool's end `prev` is where this very slot stands.
    prev: Cell<u32>,
    next: Cell<u32>,
    #[cfg(any(feature = "wipe", feature = "stats"))]
    extra: Extra,
}

/// What a lease has to know for the optional features; written while the slot is free, read while it is live.
#[cfg(any(feature = "wipe", feature = "stats"))]
pub(crate) struct Extra {
    block: Cell<*const Block>,
    capacity: Cell<usize>,
}

/// The head of the bookkeeping.
#[repr(C)]
pub(crate) struct Block {
    #[cfg(feature = "alloc")]
    orphan: Orphan,
    /// The region that this very block stands in; moved out before it is dropped.
    region: ManuallyDrop<Region>,
    released: Released,
    /// Number of slots, without the sentinel.
    slots: u32,
    #[cfg(feature = "wipe")]
    wipe: bool,
}

/// Where the parts of the bookkeeping stand, in bytes from the region's start.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Places {
    block: usize,
    slots: usize,
    memory: usize,
    /// Of the buffers.
    alignment: usize,
}

impl Places {
    /// Places for `slots` slots in a region that starts at `address`; `None` when they cannot be counted in a `usize`.
    pub(crate) fn new(address: usize, slots: usize, alignment: usize) -> Option<Self> {
        let block = size::align_up(address, align_of::<Slot>().max(align_of::<Block>()))?;
        let table = size::align_up(block.checked_add(size_of::<Block>())?, align_of::<Slot>())?;
        let bytes = slots.checked_add(1)?.checked_mul(size_of::<Slot>())?;
        let memory = size::align_up(table.checked_add(bytes)?, alignment)?;
        Some(Self { block: block - address, slots: table - address, memory: memory - address, alignment })
    }

    /// Bytes in front of the memory that is handed out.
    pub(crate) fn overhead(&self) -> usize {
        self.memory
    }
}

/// Bytes of bookkeeping for `slots` slots wherever the region starts; `None` when there is no such number.
pub(crate) fn overhead_bytes(slots: usize, alignment: usize) -> Option<usize> {
    // The worst start is one byte behind an aligned address.
    let alignment = alignment.max(align_of::<Slot>());
    Places::new(0, slots, alignment)?.overhead().checked_add(alignment)
}

/// A pool's access to its slot table.
///
/// # Invariants
///
/// - T1: `block` points to an initialised `Block`, `slots` to `block.slots + 1` initialised slots behind it, and `memory` to
///   `capacity` initialised bytes behind those, all in `block.region`, until [`Table::leave`].
/// - T2: every `at` that a method takes is a multiple of `STEP`, at most `sentinel`; they come out of the table only.
/// - T3: one table per block; only it touches the slots' `Cell`s, but that the lease of a live slot may read its `start` and
///   `extra`, which nobody writes meanwhile.
#[derive(Debug)]
pub(crate) struct Table {
    block: NonNull<Block>,
    slots: Slots,
    memory: NonNull<u8>,
    /// Where the last slot stands, which holds no buffer but closes the list. Never free.
    sentinel: u32,
    /// Whether [`Table::leave`] was called: T1 holds no more.
    left: bool,
}

impl Table {
    /// Builds the bookkeeping for `slots` free slots in `region`, with `capacity` bytes to hand out behind it.
    ///
    /// # Errors
    ///
    /// Gives the region back when it is too small.
    pub(crate) fn build(
        region: Region,
        places: Places,
        slots: usize,
        capacity: usize,
        wipe: bool,
    ) -> Result<Self, (ConfigError, Region)> {
        let required = places.memory.saturating_add(capacity.max(1));
        if required > region.len() {
            let available = region.len();
            return Err((ConfigError::RegionTooSmall { required, available }, region));
        }
        debug_assert!((1..=MAX_SLOTS).contains(&slots), "{slots} slots");
        let base = region.as_ptr();
        // SAFETY: `places.block <= places.memory < region.len()`.
        let block = unsafe { base.add(places.block) }.cast::<Block>();
        // SAFETY: likewise.
        let table = unsafe { base.add(places.slots) }.cast::<Slot>();
        // SAFETY: likewise.
        let memory = unsafe { base.add(places.memory) };
        let start = memory.addr().get();
        // Addresses are rounded up to the alignment, and to cache lines: none of the memory may be so near to the last of all that this
        // starts again at the first.
        let slack = places.alignment.saturating_add(2 * size::CACHE_LINE_BYTES);
        if start.checked_add(capacity).and_then(|end| end.checked_add(slack)).is_none() {
            let available = region.len();
            return Err((ConfigError::RegionTooSmall { required: usize::MAX, available }, region));
        }
        let contents = Block {
            #[cfg(feature = "alloc")]
            orphan: Orphan::counted(&METHODS),
            region: ManuallyDrop::new(region),
            released: Released::default(),
            slots: slots as u32,
            #[cfg(feature = "wipe")]
            wipe,
        };
        #[cfg(not(feature = "wipe"))]
        let _ = wipe;
        // SAFETY: `Places` aligned the block and left room for it within the region, which is ours.
        unsafe { block.write(contents) };
        let sentinel = slots as u32 * STEP;
        for at in (0..=sentinel).step_by(STEP as usize) {
            let slot = Slot {
                state: AtomicU32::new(if at == sentinel { SENTINEL } else { FREE }),
                views: Views::new(),
                start: Cell::new(start + capacity),
                end: Cell::new(start),
                prev: Cell::new(sentinel),
                next: Cell::new(match at {
                    _ if at == sentinel => sentinel,
                    _ if at + STEP == sentinel => NONE,
                    _ => at + STEP,
                }),
                #[cfg(any(feature = "wipe", feature = "stats"))]
                extra: Extra { block: Cell::new(block.as_ptr()), capacity: Cell::new(0) },
            };
            // SAFETY: `Places` left room for `slots + 1` slots.
            let place = unsafe { table.byte_add(at as usize) };
            // SAFETY: aligned, within the region, ours.
            unsafe { place.write(slot) };
        }
        Ok(Self { block, slots: Slots { first: table }, memory, sentinel: slots as u32 * STEP, left: false })
    }

    /// The slots.
    #[inline(always)]
    pub(crate) fn slots(&self) -> Slots {
        self.slots
    }

    fn block(&self) -> &Block {
        // SAFETY: initialised (T1), and never written while the table exists but through its atomics.
        unsafe { self.block.as_ref() }
    }

    /// Where the slot stands that closes the list.
    #[inline]
    pub(crate) fn sentinel(&self) -> u32 {
        self.sentinel
    }

    /// Where the slots stand that can hold a buffer.
    pub(crate) fn all(&self) -> impl Iterator<Item = u32> + use<> {
        (0..self.sentinel).step_by(STEP as usize)
    }

    pub(crate) fn released(&self) -> &Released {
        &self.block().released
    }

    /// The start of the memory.
    #[inline]
    pub(crate) fn memory(&self) -> NonNull<u8> {
        self.memory
    }

    /// The address behind the memory.
    pub(crate) fn end(&self) -> usize {
        self.slots.start(self.sentinel)
    }

    /// The byte at `address`, which is in the memory or behind its end.
    #[inline]
    pub(crate) fn byte(&self, address: usize) -> NonNull<u8> {
        debug_assert!(address >= self.memory.addr().get(), "{address:#x} is in front of the memory");
        in_memory(self.memory, address)
    }

    /// Notes how many bytes the buffer of a live slot of this pool's own (the open frame) has by now.
    pub(crate) fn set_capacity(&self, at: u32, capacity: usize) {
        #[cfg(any(feature = "wipe", feature = "stats"))]
        self.slots.slot(at).extra.capacity.set(capacity);
        #[cfg(not(any(feature = "wipe", feature = "stats")))]
        let _ = (at, capacity);
    }

    /// Frees a slot of the pool's own, the open frame's, whose bytes end at `end`.
    pub(crate) fn abandon(&self, at: u32, end: usize) {
        self.wipe(self.slots.start(at), end);
        // ORDER: Relaxed: it was this thread that used the memory, and no other reads the state.
        self.slots.slot(at).state.store(FREE, Ordering::Relaxed);
    }

    /// Whether the pool wipes.
    #[cfg(feature = "wipe")]
    pub(crate) fn wipes(&self) -> bool {
        self.block().wipe
    }

    /// Zeroes the bytes `start .. end`, which are the pool's own, if the pool wipes and there are any.
    pub(crate) fn wipe(&self, start: usize, end: usize) {
        #[cfg(feature = "wipe")]
        if self.block().wipe && start < end {
            let bytes = NonNull::slice_from_raw_parts(self.byte(start), end - start);
            // SAFETY: the range is in the region and in no live slot but the pool's own, so nobody else has these bytes.
            unsafe { bufcore::strategy::wipe(bytes) };
        }
        #[cfg(not(feature = "wipe"))]
        let _ = (start, end);
    }

    /// Which slot of this table a lease holds.
    pub(crate) fn index_of(&self, handle: &SlotHandle) -> Option<usize> {
        let first = self.slots.first.addr().get();
        let index = handle.slot.addr().get().checked_sub(first)? / size_of::<Slot>();
        (index < self.block().slots as usize).then_some(index)
    }

    /// As [`leave`](Self::leave), for a region that will be used again: its bytes are all initialised, as those of any region.
    ///
    /// The table's values are not: they have padding, and what was padding may be handed out by the region's next pool.
    pub(crate) fn leave_clean(&mut self) -> Option<Region> {
        let region = self.leave()?;
        let start = region.as_ptr();
        let overhead = self.memory.addr().get() - start.addr().get();
        // SAFETY: these are the first bytes of the region (`build`), which nobody uses any more.
        unsafe { start.write_bytes(0, overhead) };
        Some(region)
    }

    /// Ends the pool's use of the region: gives it back if nothing is out, or else leaves it to the last release.
    ///
    /// Nothing but this may be called on the table afterwards; a second call does nothing.
    pub(crate) fn leave(&mut self) -> Option<Region> {
        if core::mem::replace(&mut self.left, true) {
            return None;
        }
        let mut out = 0_usize;
        for at in self.all() {
            let slot = self.slots.slot(at);
            // For `SlotHandle::late`, to which the exchange publishes it.
            slot.prev.set(at);
            // ORDER: AcqRel on success: Release pairs with the Acquire in `SlotHandle::late`; Acquire as in `is_free`. Acquire on
            // failure pairs with the Release store in `SlotHandle::drop`.
            match slot.state.compare_exchange(LIVE, ORPHANED, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => out += 1,
                // ORDER: Relaxed: nobody else uses a slot that is free.
                Err(_) => slot.state.store(SETTLED, Ordering::Relaxed),
            }
        }
        if out == 0 {
            #[cfg(all(test, loom))]
            crate::tests::memory_goes();
            // SAFETY: all slots are free, and the caller does not use the table again.
            return Some(unsafe { take_region(self.block) });
        }
        #[cfg(feature = "alloc")]
        if !self.block().region.is_static() {
            // SAFETY:
            // - the head: `orphan` is the first field of the block (`repr(C)`), and `METHODS` are for such blocks.
            // - counted once: of the marked slots' leases each saw its mark, and then counts itself, or stores `FREE` over it,
            //   which one `settle` finds.
            // - nobody else: the caller does not use the table again.
            unsafe { orphans::adopt_counted(self.block.cast(), out, self.block().slots as usize) };
        }
        None
    }
}

/// Access to the slots by where they stand. A copy of one pointer, so that a request can keep it in a register: what it reads
/// through the pool is read anew after each look at a state, which is an atomic load that orders others.
///
/// T1 to T3 of [`Table`] hold for it. It is used up to [`Table::leave`] only.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Slots {
    first: NonNull<Slot>,
}

impl Slots {
    #[inline]
    fn slot<'a>(self, at: u32) -> &'a Slot {
        debug_assert!(at.is_multiple_of(STEP), "slot at {at}");
        // SAFETY: `at <= sentinel` (T2), so this stays in the table (T1).
        let slot = unsafe { self.first.byte_add(at as usize) };
        // SAFETY: an initialised slot (T1, T2); it is only ever shared, all its fields allow that.
        unsafe { slot.as_ref() }
    }

    /// Whether the buffer of this slot is back. Never true for the sentinel.
    #[inline]
    pub(crate) fn is_free(self, at: u32) -> bool {
        // ORDER: Acquire pairs with the Release store in `SlotHandle::drop`: all that the last owner did with the memory happened
        // before what its next owner does.
        self.slot(at).state.load(Ordering::Acquire) == FREE
    }

    /// Marks the slot as owned, by a buffer of `capacity` bytes.
    #[inline]
    pub(crate) fn occupy(self, at: u32, capacity: usize) {
        let slot = self.slot(at);
        #[cfg(any(feature = "wipe", feature = "stats"))]
        slot.extra.capacity.set(capacity);
        #[cfg(not(any(feature = "wipe", feature = "stats")))]
        let _ = capacity;
        // ORDER: Relaxed. Only this thread reads the state until the lease is handed over, and that publishes it.
        slot.state.store(LIVE, Ordering::Relaxed);
    }

    #[inline]
    pub(crate) fn start(self, at: u32) -> usize {
        self.slot(at).start.get()
    }

    #[inline]
    pub(crate) fn set_start(self, at: u32, start: usize) {
        self.slot(at).start.set(start);
    }

    #[inline]
    pub(crate) fn end(self, at: u32) -> usize {
        self.slot(at).end.get()
    }

    #[inline]
    pub(crate) fn set_end(self, at: u32, end: usize) {
        self.slot(at).end.set(end);
    }

    #[inline]
    pub(crate) fn prev(self, at: u32) -> u32 {
        self.slot(at).prev.get()
    }

    #[inline]
    pub(crate) fn next(self, at: u32) -> u32 {
        self.slot(at).next.get()
    }

    /// Puts a slot that is in neither list behind `after`.
    #[inline]
    pub(crate) fn link(self, at: u32, after: u32) {
        let after_slot = self.slot(after);
        let before = after_slot.next.get();
        let slot = self.slot(at);
        slot.prev.set(after);
        slot.next.set(before);
        after_slot.next.set(at);
        self.slot(before).prev.set(at);
    }

    /// Takes a slot out of the list and puts it on the stack whose top is `stack`; returns the new top.
    #[inline]
    pub(crate) fn unlink(self, at: u32, stack: u32) -> u32 {
        let slot = self.slot(at);
        let (prev, next) = (slot.prev.get(), slot.next.get());
        self.slot(prev).next.set(next);
        self.slot(next).prev.set(prev);
        slot.next.set(stack);
        at
    }

    /// The lease of a slot that was just occupied.
    #[inline]
    pub(crate) fn handle(self, at: u32) -> SlotHandle {
        debug_assert!(at.is_multiple_of(STEP), "slot at {at}");
        // From the region's own pointer, so that a late release may go from here to the block.
        // SAFETY: `at <= sentinel` (T2), so this stays in the table (T1).
        SlotHandle { slot: unsafe { self.first.byte_add(at as usize) } }
    }
}

/// The byte at `address` in the region that `reaching` reaches.
#[inline(always)]
fn in_memory(reaching: NonNull<u8>, address: usize) -> NonNull<u8> {
    let byte = reaching.as_ptr().with_addr(address);
    // SAFETY: no byte of a region is at address zero, nor is the end of one.
    unsafe { NonNull::new_unchecked(byte) }
}

/// Moves the region out of the block that stands in it.
///
/// # Safety
///
/// `block` is valid, and is not used again.
unsafe fn take_region(block: NonNull<Block>) -> Region {
    // SAFETY: the block is valid; the copy in it is never dropped (`ManuallyDrop`), so the region has one owner.
    let block = unsafe { block.read() };
    ManuallyDrop::into_inner(block.region)
}

/// What the list of orphans asks of a block.
#[cfg(feature = "alloc")]
static METHODS: orphans::Methods = orphans::Methods { settle, free };

/// Bytes from a block to its first slot: `Places` put the table right behind it, at the next multiple of a slot's alignment.
#[cfg(feature = "alloc")]
const TABLE_OFFSET: usize = size_of::<Block>().next_multiple_of(align_of::<Slot>());

/// Finds the slots that were marked, and whose leases stored `FREE` over the mark, and marks them as settled.
///
/// # Safety
///
/// As `Methods::settle` says: `orphan` is the first field of a valid `Block` whose pool has ended.
#[cfg(feature = "alloc")]
unsafe fn settle(orphan: NonNull<Orphan>) -> usize {
    let block = orphan.cast::<Block>();
    // SAFETY: the block is valid, and this field is never written.
    let slots = unsafe { (*block.as_ptr()).slots };
    let mut found = 0;
    for index in 0..slots as usize {
        // SAFETY: within the table.
        let slot = unsafe { block.cast::<u8>().add(TABLE_OFFSET + index * size_of::<Slot>()) }.cast::<Slot>();
        // SAFETY: an initialised slot, of which only the state is used here and may change.
        let state = unsafe { &(*slot.as_ptr()).state };
        // A model's load may miss the newest store; its exchange does not.
        // ORDER: Relaxed: only compared. What it misses is left to a later look.
        if !cfg!(loom) && state.load(Ordering::Relaxed) != FREE {
            continue;
        }
        // ORDER: Acquire pairs with the Release store in `SlotHandle::drop`: the last owner is done before the memory goes. Of
        // several looks at once one finds it. A failure reads nothing that is used.
        let seen = state.compare_exchange(FREE, SETTLED, Ordering::Acquire, Ordering::Relaxed);
        found += usize::from(seen.is_ok());
    }
    found
}

/// Frees an adopted block.
///
/// # Safety
///
/// As `Methods::free` says: `orphan` is the first field of an adopted `Block` that nobody uses any more.
#[cfg(feature = "alloc")]
unsafe fn free(orphan: NonNull<Orphan>) {
    #[cfg(all(test, loom))]
    crate::tests::memory_goes();
    // SAFETY: the caller's promise.
    drop(unsafe { take_region(orphan.cast()) });
}

/// The release of one slot.
#[derive(Debug)]
pub(crate) struct SlotHandle {
    /// Valid until this handle's drop has stored `FREE`, and not one instruction longer.
    slot: NonNull<Slot>,
}

// SAFETY: through the handle only the slot's atomics, its `start` and its `extra` are used; the last two nobody writes while the
// handle lives (T3).
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
        // SAFETY: the slot is valid while the handle lives, and nobody writes its `start` meanwhile (T3).
        let start = unsafe { &(*self.slot.as_ptr()).start }.get();
        // From the region's own pointer.
        in_memory(self.slot.cast(), start)
    }

    /// The buffer's memory, if the pool wipes.
    #[cfg(feature = "wipe")]
    pub(crate) fn wipe_range(&self) -> Option<NonNull<[u8]>> {
        // SAFETY: the slot is valid while the handle lives, and nobody writes `extra` until it is free again.
        let slot = unsafe { self.slot.as_ref() };
        let block = slot.extra.block.get();
        // SAFETY: the block lives as long as any of its slots is live, and nobody writes this field after `build`. It is read
        // through the pointer: a reference to the block would cover its link, which a sweeper may be writing.
        let wipe = unsafe { (*block).wipe };
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
            // SAFETY: as in `wipe_range`: of the block, only the counters are borrowed, which are atomic.
            let released = unsafe { &(*slot.extra.block.get()).released };
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
            // loom does not put a store behind an exchange that it races with, though the exchange did not see it.
            state.swap(FREE, RELEASE);
        } else {
            state.store(FREE, RELEASE);
        }
        // From here on the slot may be gone.
    }
}

impl SlotHandle {
    /// Releases the slot after the pool's end. Not by the handle: whose address is taken has to be in memory, on the fast path too.
    ///
    /// # Safety
    ///
    /// The slot is a handle's. Its state was seen to be other than `LIVE`, and the handle is not used again.
    #[cold]
    #[inline(never)]
    unsafe fn late(slot: NonNull<Slot>) {
        #[cfg(not(feature = "alloc"))]
        let _ = slot;
        #[cfg(feature = "alloc")]
        {
            // SAFETY: valid until the release is counted.
            let marked = unsafe { slot.as_ref() };
            // ORDER: Acquire pairs with the Release exchange in `Table::leave`: `prev` is as it was stored there.
            let state = marked.state.load(Ordering::Acquire);
            debug_assert_eq!(state, ORPHANED, "a slot is released once");
            let back = marked.prev.get() as usize + TABLE_OFFSET;
            // SAFETY: so far behind its block stands the slot, in one region, which is all in reach of the handle's pointer.
            let block = unsafe { slot.cast::<u8>().sub(back) };
            // SAFETY: `orphan` is the first field of the block, and the slot was marked, once. The handle is not used again.
            unsafe { orphans::release_late(block.cast()) };
        }
    }
}
