//! Pages of the region that go back to the system while they hold no buffers, and those that are
//! not touched before they are needed.
//!
//! A new pool has most of its memory parked. So requests stay in its first bytes, which are in the
//! processor's caches, and take more when these do not suffice.
//!
//! Requests leave no trace of when they were. So a look of `trim_idle` parks the gaps that have a
//! whole page in them: each gets a slot of the pool's own. No request passes such a slot on the
//! short way, as it passes no live one. A request that finds no room besides takes of what is
//! parked as much as it needs. Requests start over at the lowest address after each look, so it is
//! the same memory from look to look that they use. Memory that is still parked at the next look
//! was left over at every moment since, and its pages go.
//!
//! The invariants P1 to P8 of `pool` are kept here. Nothing here calls the user's code.

use core::ops::Range;
use core::time::Duration;

use bufcore::BufferPool;
use bufcore::strategy::Parking;

use crate::pool::{Carved, SlotPool};
use crate::table::NONE;

impl<F: BufferPool> SlotPool<F> {
    /// Gives the pages of the region that hold no buffers back to the system. The capacity stays as
    /// it is: a page comes back, as zeros, when it is next used.
    ///
    /// It does so on Linux with the feature `mmap`, where the region
    /// [may return pages](bufcore::Region::returns_pages), as those of the heap may. Otherwise it
    /// does nothing. The fallback is not trimmed.
    ///
    /// Cost: a look at every slot, and two system calls for each gap with a whole page.
    ///
    /// ```
    /// # #[cfg(feature = "alloc")] {
    /// use bufslot::SlotPool;
    ///
    /// let mut pool = SlotPool::new(8 << 20, 8)?;
    /// pool.acquire(6 << 20)?.resize(6 << 20, 1)?; // a large file, which was served
    /// pool.trim(); // 6 MiB less are resident
    /// assert!(pool.capacity() >= 8 << 20);
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn trim(&mut self) {
        if !self.returns_pages() {
            return;
        }
        self.unpark_all();
        self.each_gap(|pool, before, limit| {
            pool.return_pages(pool.table.slots().end(before), limit);
            before
        });
        let slot = self.free;
        if slot != NONE
            && let Some(rest) = self.rest()
        {
            self.free = self.table.slots().next(slot);
            self.park_in(slot, self.sentinel(), rest);
        }
    }

    /// Gives the pages of the region that were not used for `age` back to the system, and keeps
    /// what comes and goes. It does so where [`trim`](Self::trim) does.
    ///
    /// A program calls it from time to time, as often as it likes, for example in a tick of the
    /// loop that has the pool. A pool in a mutex is watched by a `Keeper` of `bufcore`, which calls
    /// it by itself (`TrimMut`). Buffers get no time stamps when they come and go; the calls
    /// themselves look at the pool:
    ///
    /// - The first call only notes what is free.
    /// - A call that comes `age` or more after the last one that looked gives back what was left
    ///   over at every moment since, and notes.
    /// - A call that comes earlier does nothing.
    ///
    /// A quarter of what was taken since stays beside it, for traffic that varies. Requests after a
    /// look go to the lowest addresses that are free, and do not touch the rest until they need it.
    ///
    /// Cost: nothing for most calls. A call that looks costs as much as [`trim`](Self::trim). Some
    /// requests after it take a search.
    ///
    /// ```
    /// # #[cfg(feature = "alloc")] {
    /// use core::time::Duration;
    /// use bufslot::SlotPool;
    ///
    /// let mut pool = SlotPool::new(64 << 20, 8)?;
    /// for tick in 0..3 {
    ///     let mut packet = pool.acquire(1500)?; // its pages stay
    ///     packet.extend_from_slice(b"packet")?;
    ///     drop(packet);
    ///     pool.trim_idle(Duration::ZERO); // or some seconds
    /// }
    /// # }
    /// # Ok::<(), bufslot::Error>(())
    /// ```
    pub fn trim_idle(&mut self, age: Duration) {
        if !self.returns_pages() || !self.parking.is_due(age) {
            return;
        }
        let slots = self.table.slots();
        let mut margin = self.parking.margin();
        let mut slot = slots.next(self.sentinel());
        while slot != self.sentinel() {
            if slots.is_parked(slot) {
                let (start, end) = (slots.start(slot), slots.end(slot));
                let kept = margin.min(end - start);
                margin -= kept;
                self.return_pages(start + kept, end);
            }
            slot = slots.next(slot);
        }
        self.park(|pool, start, limit| !pool.table.region().whole_pages(start..limit).is_empty());
    }

    /// Parks the gaps that are worth it, each with all that is free in it.
    pub(crate) fn park(&mut self, is_worth: impl Fn(&Self, usize, usize) -> bool) {
        self.unpark_all();
        self.parking.begin();
        self.each_gap(|pool, before, limit| {
            let slots = pool.table.slots();
            let (slot, start) = (pool.free, slots.end(before));
            if slot == NONE || start >= limit || !is_worth(pool, start, limit) {
                return before;
            }
            pool.free = slots.next(slot);
            pool.park_in(slot, before, start..limit);
            slot
        });
    }

    /// Returns what the gap at the front has beyond its first bytes, if that is worth parking. So
    /// requests stay in memory that was used before, and take more of it when they need it.
    pub(crate) fn rest(&self) -> Option<Range<usize>> {
        let (slots, sentinel) = (self.table.slots(), self.sentinel());
        let start = slots.end(sentinel).saturating_add(Parking::FIRST_BYTES);
        let limit = slots.start(slots.next(sentinel));
        (limit.saturating_sub(start) >= Parking::FIRST_BYTES).then_some(start..limit)
    }

    /// Parks bytes of the gap behind `before`, in a slot that is in neither list.
    pub(crate) fn park_in(&mut self, slot: u32, before: u32, bytes: Range<usize>) {
        let slots = self.table.slots();
        slots.link(slot, before);
        slots.set_start(slot, bytes.start);
        slots.set_end(slot, bytes.end);
        slots.set_parked(slot, true);
        self.parking.park();
    }

    /// Calls `visit` for each gap, which has all that is free in it, with the slot in front and
    /// where the gap ends. It continues behind the slot that `visit` returns. The requests start
    /// over at the front.
    fn each_gap(&mut self, mut visit: impl FnMut(&mut Self, u32, usize) -> u32) {
        let mut before = self.sentinel();
        loop {
            let limit = self.widen(before);
            before = visit(self, before, limit);
            before = self.table.slots().next(before);
            if before == self.sentinel() {
                break;
            }
        }
        (self.tail, self.resume, self.run) = (before, before, before);
    }

    /// Gives back the whole pages of `start .. limit`, which is in a gap or parked.
    fn return_pages(&self, start: usize, limit: usize) {
        // SAFETY: the bytes of a gap, or of a slot that is parked, are in no live slot (P2), and so
        // in no buffer. The borrow of the pool, which is `mut` further up, keeps requests away.
        let _bytes = unsafe { self.table.region().return_pages(start..limit) };
    }

    /// Returns whether pages may go back. They never do without this crate's own feature, though
    /// another crate of the program may have switched on that of `bufcore`.
    fn returns_pages(&self) -> bool {
        cfg!(feature = "mmap") && self.table.region().returns_pages()
    }

    /// Returns whether anything is parked.
    #[inline]
    pub(crate) fn has_parked(&self) -> bool {
        self.parking.parts() != 0
    }

    /// Frees all that is parked.
    pub(crate) fn unpark_all(&mut self) {
        if !self.has_parked() {
            return;
        }
        let slots = self.table.slots();
        for slot in self.table.all() {
            if slots.is_parked(slot) {
                self.unpark(slot);
                if !self.has_parked() {
                    return;
                }
            }
        }
    }

    /// Frees one slot that is parked. It leaves the list: a free slot that stays there is where a
    /// buffer was, aligned as that has to be.
    fn unpark(&mut self, slot: u32) {
        self.table.slots().set_parked(slot, false);
        self.let_go(slot);
        self.parking.unpark();
    }

    /// Takes parked memory behind `before`, as much as the gap there needs to reach to `until`, if
    /// it can. If a slot is `wanted`, it takes as much as puts one on the stack.
    pub(crate) fn unpark_behind(&mut self, before: u32, until: usize, wanted: bool) {
        let slots = self.table.slots();
        loop {
            let limit = self.widen(before);
            let next = slots.next(before);
            let is_short_of_slots = wanted && self.free == NONE;
            if (limit >= until && !is_short_of_slots) || !slots.is_parked(next) {
                return;
            }
            let reached = until.max(limit.saturating_add(self.parking.step()));
            let end = slots.end(next);
            if is_short_of_slots || reached >= end {
                self.parking.note_taken(end - limit);
                self.unpark(next);
            } else {
                self.parking.note_taken(reached - limit);
                slots.set_start(next, reached);
            }
        }
    }

    /// Takes `bytes`, which are not none, behind the newest buffer with what is parked there, if
    /// there is no room near the front of the region. So a burst goes on in a row.
    pub(crate) fn extend(&mut self, bytes: usize) -> Option<Carved> {
        let slots = self.table.slots();
        let mut next = slots.next(self.tail);
        while slots.is_free(next) {
            next = slots.next(next);
        }
        let room = slots.end(next).saturating_sub(self.behind(slots, self.tail, bytes));
        if !slots.is_parked(next) || bytes > room || self.is_room_near_front(bytes) {
            return None;
        }
        // If the buffer at the tail was released meanwhile, the tail is the one before it by now.
        let tail = self.tail;
        let start = self.behind(slots, tail, bytes);
        self.unpark_behind(tail, start + bytes, true);
        let limit = slots.start(slots.next(tail));
        let is_room = self.free != NONE && bytes <= limit.saturating_sub(start);
        is_room.then(|| self.carve_new(slots, tail, start, bytes))
    }

    /// Returns whether one of the first gaps has room for `bytes` bytes, and lets go of the free
    /// slots in those.
    pub(crate) fn is_room_near_front(&mut self, bytes: usize) -> bool {
        let slots = self.table.slots();
        let mut before = self.sentinel();
        for _ in 0..=Parking::PROBES_AT_FRONT {
            let limit = self.widen(before);
            if bytes <= limit.saturating_sub(self.behind(slots, before, bytes)) {
                return true;
            }
            before = slots.next(before);
            if before == self.sentinel() {
                break;
            }
        }
        false
    }

    /// Takes `bytes`, which are not none, from the first gap that has them with what is parked
    /// there: so it is the same memory from look to look that is used.
    ///
    /// Cost: a look at the slots up to there. After a look at all in vain, the next ones are left
    /// out.
    pub(crate) fn carve_parked(&mut self, bytes: usize) -> Carved {
        if self.parking.skips(bytes) {
            return Carved::NOWHERE;
        }
        let (slots, sentinel) = (self.table.slots(), self.sentinel());
        let mut before = sentinel;
        loop {
            let mut next = slots.next(before);
            while slots.is_vacant(next) {
                next = slots.next(next);
            }
            let start = self.behind(slots, before, bytes);
            if bytes <= slots.start(next).saturating_sub(start) {
                self.unpark_behind(before, start + bytes, true);
                if self.free != NONE {
                    let limit = slots.start(slots.next(before));
                    assert!(start + bytes <= limit, "{start} + {bytes} in {limit}");
                    return self.carve_new(slots, before, start, bytes);
                }
            }
            before = next;
            if before == sentinel {
                break;
            }
        }
        self.parking.refuse(bytes);
        Carved::NOWHERE
    }
}

#[cfg(feature = "std")]
impl<F: BufferPool> bufcore::TrimMut for SlotPool<F> {
    fn trim(&mut self) {
        Self::trim(self);
    }

    fn trim_idle(&mut self, age: Duration) {
        Self::trim_idle(self, age);
    }

    fn reserved_bytes(&self) -> usize {
        self.stats().reserved_bytes
    }

    fn idle_bytes(&self) -> usize {
        self.stats().idle_bytes
    }

    fn snapshot(&self) -> bufcore::PoolStats {
        self.stats()
    }
}
