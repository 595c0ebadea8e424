//! The pool: where to carve next.
//!
//! # Invariants
//!
//! - P1: `tail` is a slot in the list or the sentinel, and the gap being carved is the one behind
//!   it.
//! - P2: for every slot in the list, `start .. end` in the table holds its bytes, and these ranges
//!   come in the order of the list, without overlap. The sentinel ends where the memory starts. It
//!   starts at the end of what the pool uses: at most where the memory ends, and in front of no
//!   slot's end. The gap behind a slot is from its end to the start of the slot behind it. No live
//!   slot's bytes are in a gap, or behind the sentinel's start. (A free slot in the list
//!   keeps its range until another request takes it, and that range has at least one byte.)
//! - P3: `resume` and `run` are slots in the list or the sentinel; `clock` is any slot.
//! - P4: every slot is either in the list or on the stack `free`; a slot on the stack is free, and
//!   its `prev` is the slot itself.

mod traits;

use core::panic::{RefUnwindSafe, UnwindSafe};

use bufcore::author::{Counters, Served, Tracker};
use bufcore::{Buf, BufferPool, PoolStats};

#[cfg(feature = "alloc")]
use crate::Builder;
use crate::lease::SlotLease;
use crate::table::{NONE, Slots, Table};

#[cfg(feature = "alloc")]
type DefaultFallback = bufcore::HeapPool;
#[cfg(not(feature = "alloc"))]
type DefaultFallback = bufcore::NoFallback;

/// A slot pool: up to N buffers carved from one region. See the [crate documentation](crate).
///
/// `F` serves the requests that do not fit the region: the heap by default, another pool, or
/// [`NoFallback`](bufcore::NoFallback) for an error instead.
///
/// Threads: `Send`; one thread at a time acquires, any thread releases.
///
/// ```
/// # #[cfg(feature = "alloc")] {
/// use bufslot::SlotPool;
///
/// let mut pool = SlotPool::new(64 << 10, 8)?; // bytes, slots
/// let mut packet = pool.acquire(1500)?;
/// packet.extend_from_slice(b"packet")?;
/// std::thread::spawn(move || drop(packet)).join().unwrap(); // any thread releases
/// assert!(pool.is_idle());
/// # }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
// In this order: what each request reads is in the first cache lines, at the shortest offsets.
// Small processors have no such lines.
#[repr(C)]
#[cfg_attr(target_pointer_width = "64", repr(align(64)))]
pub struct SlotPool<F: BufferPool = DefaultFallback> {
    /// The slot in front of the gap being carved (P1).
    pub(crate) tail: u32,
    /// Top of the stack of slots that hold nothing (P4).
    pub(crate) free: u32,
    /// Where the search continues. A slot in the list, or the sentinel.
    pub(crate) resume: u32,
    /// Where the newest run of buffers began: the slot that [`rewind`](Self::rewind) went to. A
    /// slot in the list, or the sentinel.
    pub(crate) run: u32,
    /// Where the next look for a free slot starts, when the stack is empty (P3).
    pub(crate) clock: u32,
    /// How many slots have their releases listed, the listed ones included; see `crowd`.
    pub(crate) watched: u32,
    /// The start of every buffer is a multiple of this plus one.
    alignment_mask: usize,
    /// Buffers of at least this number of bytes are staggered.
    stagger_from: usize,
    pub(crate) fell_back: bool,
    pub(crate) table: Table,
    pub(crate) capacity: usize,
    /// How many slots the next sweep of a crowd may look at.
    pub(crate) credit: usize,
    pub(crate) fallback: F,
    pub(crate) counters: Counters,
    pub(crate) tracker: Tracker,
}

// SAFETY: the table is this pool's alone, except for the atomics in it; see `table`.
unsafe impl<F: BufferPool + Send> Send for SlotPool<F> {}
// SAFETY: through a shared pool the table is only read.
unsafe impl<F: BufferPool + Sync> Sync for SlotPool<F> {}
// As `bufcore::unwind_safe!` says of pools without a fallback.
impl<F: BufferPool + UnwindSafe> UnwindSafe for SlotPool<F> {}
impl<F: BufferPool + RefUnwindSafe> RefUnwindSafe for SlotPool<F> {}

/// A place in the region that was just taken, or none. Two plain words, so that it is returned in
/// registers, as an `Option` of it would not be.
#[derive(Clone, Copy)]
pub(crate) struct Carved {
    /// The slot, or `NONE`.
    pub(crate) slot: u32,
    /// Address of its first byte.
    pub(crate) start: usize,
}

impl Carved {
    pub(crate) const NONE: Self = Self { slot: NONE, start: 0 };

    #[inline(always)]
    pub(crate) fn is_somewhere(self) -> bool {
        self.slot != NONE
    }

    #[inline(always)]
    pub(crate) fn found(self) -> Option<Self> {
        self.is_somewhere().then_some(self)
    }
}

#[cfg(feature = "alloc")]
impl SlotPool {
    /// Makes a pool of `slots` slots over `capacity` bytes of heap, with the heap as fallback.
    ///
    /// # Errors
    ///
    /// See [`Builder::build`].
    ///
    /// ```
    /// use bufslot::SlotPool;
    ///
    /// let mut pool = SlotPool::new(64 << 10, 8)?; // bytes, slots
    /// let mut reply = pool.acquire(512)?;
    /// reply.extend_from_slice(b"HTTP/1.1 204 No Content\r\n\r\n")?;
    /// assert_eq!((pool.slots(), pool.slot_of(&reply)), (8, Some(0)));
    /// # Ok::<(), bufslot::Error>(())
    /// ```
    #[inline]
    pub fn new(capacity: usize, slots: usize) -> Result<Self, bufcore::ConfigError> {
        Self::builder().capacity(capacity).slots(slots).build()
    }

    /// Returns the builder, which has all settings.
    ///
    /// ```
    /// use bufslot::SlotPool;
    ///
    /// let mut pool = SlotPool::builder().capacity(1 << 20).slots(64).alignment(64).build()?;
    /// assert_eq!(pool.acquire(1500)?.as_ptr().addr() % 64, 0);
    /// # Ok::<(), bufslot::Error>(())
    /// ```
    #[inline]
    #[must_use]
    pub fn builder() -> Builder {
        Builder::default()
    }
}

bufcore::pool_methods!(impl[F: BufferPool] SlotPool<F> => SlotLease<F::Lease>);

impl<F: BufferPool> SlotPool<F> {
    pub(crate) fn over(table: Table, capacity: usize, alignment: usize, stagger: bool, fallback: F) -> Self {
        let sentinel = table.sentinel();
        let mut pool = Self {
            table,
            capacity,
            tail: sentinel,
            free: 0,
            resume: sentinel,
            run: sentinel,
            clock: 0,
            watched: 0,
            credit: 0,
            alignment_mask: alignment - 1,
            stagger_from: if stagger { bufkit::STAGGER_FROM_BYTES } else { usize::MAX },
            fell_back: false,
            fallback,
            counters: Counters::default(),
            tracker: Tracker::default(),
        };
        pool.widen_all();
        pool
    }

    #[inline]
    pub(crate) fn sentinel(&self) -> u32 {
        self.table.sentinel()
    }

    #[inline]
    pub(crate) fn align(&self, address: usize) -> usize {
        // No overflow: the memory does not reach so near to the end of the address space
        // (`Table::build`).
        (address + self.alignment_mask) & !self.alignment_mask
    }

    /// Returns where a buffer of `bytes` bytes starts in the gap behind the slot `before`.
    #[inline]
    pub(crate) fn gap_start(&self, slots: Slots, before: u32, bytes: usize) -> usize {
        let end = slots.end(before);
        if bytes < self.stagger_from {
            return self.align(end);
        }
        // Nothing for the sentinel, which starts behind its end.
        let length = end.saturating_sub(slots.start(before));
        self.align(end + (bufkit::staggered(length) - length))
    }

    /// Takes `bytes` from the gap at the tail, or from where the tail or the slot behind it was;
    /// nothing when that does not do, or for no bytes.
    ///
    /// What this reads and writes of the pool itself is the tail: a processor makes one store per
    /// cycle, and those of a request and of the buffer that it returns are what it costs.
    #[inline(always)]
    fn carve(&mut self, bytes: usize) -> Option<Carved> {
        let (slots, tail) = (self.table.slots(), self.tail);
        if slots.is_free(tail) {
            return self.reuse_tail(slots, tail, bytes);
        }
        let next = slots.next(tail);
        let (end, limit) = (slots.end(tail), slots.start(next));
        // Whether the gap may do. A request so large that this overflows comes to nothing further
        // down.
        if end.wrapping_add(bytes) <= limit {
            let start = self.gap_start(slots, tail, bytes);
            // One comparison for `1 <= bytes <= room`.
            if bytes.wrapping_sub(1) < limit.saturating_sub(start) {
                if self.free != NONE {
                    return Some(self.carve_new(slots, tail, start, bytes));
                }
                if slots.is_free(next) {
                    return Some(self.commit_at(slots, next, start, bytes));
                }
                return None;
            }
            return self.carve_next(bytes).found();
        }
        // Otherwise the place of the slot behind it, when that is free: the step of a queue, whose
        // oldest buffer goes when the newest comes, and of a burst of buffers where the last one
        // was. The slot is in the right place of the list already.
        if !slots.is_free(next) {
            return None;
        }
        // Where its last buffer was, if that had as many bytes. A slot in the list has some (P2).
        let start = limit;
        if bytes == slots.end(next) - start {
            self.tail = next;
            return Some(self.commit(slots, next, start, bytes));
        }
        self.carve_next(bytes).found()
    }

    /// Takes `bytes` right behind the tail with the slot behind it, if that is free, in the gap,
    /// its place and the gap behind. When these have too little room, it takes in all the free
    /// slots that come next.
    ///
    /// Right behind the tail, though the slot's old place may do as it is: so the room that a queue
    /// has left stays in one piece, in front of its oldest buffer.
    #[inline(never)]
    fn carve_next(&mut self, bytes: usize) -> Carved {
        let (slots, tail) = (self.table.slots(), self.tail);
        let next = slots.next(tail);
        if !slots.is_free(next) {
            return Carved::NONE;
        }
        let start = self.gap_start(slots, tail, bytes);
        let room = slots.start(slots.next(next)).saturating_sub(start);
        // One comparison for `1 <= bytes <= room`.
        if bytes.wrapping_sub(1) >= room && bytes.wrapping_sub(1) >= self.widen(next).saturating_sub(start) {
            return Carved::NONE;
        }
        self.commit_at(slots, next, start, bytes)
    }

    /// Takes `bytes` from `start` on with `slot`, which is free, and the one behind the tail.
    #[inline(always)]
    fn commit_at(&mut self, slots: Slots, slot: u32, start: usize, bytes: usize) -> Carved {
        slots.set_start(slot, start);
        self.tail = slot;
        self.commit(slots, slot, start, bytes)
    }

    /// Takes `bytes` from `start` on in the gap behind `tail`, with a slot from the stack, which
    /// must not be empty.
    #[inline(always)]
    pub(crate) fn carve_new(&mut self, slots: Slots, tail: u32, start: usize, bytes: usize) -> Carved {
        let slot = self.free;
        self.free = slots.next(slot);
        slots.link(slot, tail);
        slots.set_start(slot, start);
        self.tail = slot;
        self.commit(slots, slot, start, bytes)
    }

    /// Takes `bytes` wherever they can be had, when neither the gap at the tail nor the places
    /// around it do.
    #[inline(never)]
    fn carve_slow(&mut self, bytes: usize) -> Carved {
        self.search(bytes)
    }

    /// Finds a place for a buffer that grows, as [`carve`](Self::carve) and
    /// [`carve_slow`](Self::carve_slow) do for buffers.
    #[inline(never)]
    pub(crate) fn find(&mut self, bytes: usize) -> Carved {
        match self.carve(bytes) {
            Some(carved) => carved,
            None => self.carve_slow(bytes),
        }
    }

    /// Takes `bytes` where the newest buffers were, which were released: the memory is still hot.
    #[inline(always)]
    fn reuse_tail(&mut self, slots: Slots, mut tail: u32, bytes: usize) -> Option<Carved> {
        if slots.is_free(slots.prev(tail)) {
            tail = self.rewind();
        }
        let start = slots.start(tail);
        if bytes.wrapping_sub(1) < slots.end(tail) - start {
            return Some(self.commit(slots, tail, start, bytes));
        }
        self.reuse_tail_resized(bytes).found()
    }

    /// Takes over the tail's place with the gap behind it and what is free around, when the place
    /// itself does not do.
    #[inline(never)]
    fn reuse_tail_resized(&mut self, bytes: usize) -> Carved {
        let (slots, tail) = (self.table.slots(), self.tail);
        let mut start = slots.start(tail);
        if bytes.wrapping_sub(1) >= slots.start(slots.next(tail)) - start {
            let limit = self.widen(tail);
            let before = slots.prev(tail);
            start = self.gap_start(slots, before, bytes);
            if bytes.wrapping_sub(1) >= limit.saturating_sub(start) {
                self.unlist(tail);
                return Carved::NONE;
            }
            slots.set_start(tail, start);
        }
        self.commit(slots, tail, start, bytes)
    }

    /// Moves the tail, which is free and has a free slot in front of it, down to the first slot of
    /// the newest run, or of those that are free around it. The slots behind stay in the list, for
    /// [`carve`](Self::carve) to take one by one.
    ///
    /// Each slot that the loop passes was taken by an earlier request, so this is constant time per
    /// request on the whole.
    #[inline(never)]
    fn rewind(&mut self) -> u32 {
        let slots = self.table.slots();
        let mut first = if slots.is_free(self.run) { self.run } else { self.tail };
        while slots.is_free(slots.prev(first)) {
            first = slots.prev(first);
        }
        self.run = first;
        self.tail = first;
        first
    }

    /// Gives `bytes` bytes from `start` on to `slot`, which starts there and is the tail. There is
    /// room for them.
    #[inline(always)]
    fn commit(&mut self, slots: Slots, slot: u32, start: usize, bytes: usize) -> Carved {
        debug_assert!((self.tail, slots.start(slot)) == (slot, start));
        debug_assert!(start + bytes <= slots.start(slots.next(slot)), "{start} + {bytes}");
        slots.set_end(slot, start + bytes);
        // Without a look at it first: a store costs less here than a load and a branch.
        self.fell_back = false;
        slots.occupy(slot);
        Carved { slot, start }
    }

    /// Makes the buffer over `bytes` bytes of a place that was just taken. `taken` is what its
    /// release will count as back, `fallback_stats` what is out of the fallback.
    #[inline(always)]
    #[cfg_attr(feature = "track", track_caller)]
    pub(crate) fn hand_out(
        &mut self,
        carved: Carved,
        bytes: usize,
        taken: usize,
        fallback_stats: PoolStats,
    ) -> Buf<SlotLease<F::Lease>> {
        let lease = SlotLease::of(self.table.slots().handle(carved.slot));
        // SAFETY: the bytes `start .. start + bytes` lie in the region (P2), which was initialised
        // when it was made; the slot is live until the lease is dropped, and a live slot's bytes
        // are in no gap (P2), so nobody else gets them.
        let buf = unsafe { Buf::from_raw_parts(self.table.byte(carved.start), bytes, lease) };
        self.counters.acquired(Served::Reused, taken, self.table.released(), || fallback_stats);
        self.tracker.attach(buf)
    }
}
