//! How much of its region the pool uses, and pages that go back to the system.
//!
//! A new pool ends behind the first bytes of its region: the sentinel starts there. So requests
//! stay in memory that is in the processor's caches, and pages that no buffer needs are not
//! touched. A request that finds no room before the end moves the end up. [`SlotPool::trim`] moves
//! it down again.
//!
//! The invariants P1 to P4 of `pool` are kept here. Nothing here calls the user's code.

use bufcore::BufferPool;

use crate::pool::{Carved, SlotPool};
use crate::table::NONE;

/// The bytes that a pool uses first. It has at least as many more when it needs more.
const FIRST_BYTES: usize = 16 << 10;

/// When the pool needs more it has at least a fraction more, one over this number, of what it uses.
const GROWTH: usize = 8;

/// How many live slots at the front a request looks behind before the end moves up for it.
const PROBES_AT_FRONT: usize = 8;

impl<F: BufferPool> SlotPool<F> {
    /// Returns the pages of the region without live buffers to the system. The capacity is
    /// unchanged: a page is allocated again, as zeros, at its next use.
    ///
    /// This works on Linux with the feature `mmap`, if the region [may return
    /// pages](bufcore::Region::returns_pages), as those of the heap may. Otherwise it does nothing.
    /// The fallback is not trimmed.
    ///
    /// A program calls it after a burst, or periodically in the loop that owns the pool. A pool in
    /// a mutex can be watched by a `Keeper` of `bufkeeper`, which calls it.
    ///
    /// Cost: a visit of every slot, and two system calls for each gap with a whole page. Each page
    /// that is reused costs a page fault.
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
        // Pages never go back without this crate's own feature, though another crate of the program
        // may have switched on that of `bufcore`.
        if cfg!(feature = "mmap") && self.table.region().returns_pages() {
            self.take_freed();
            self.widen_all();
            self.return_pages();
        }
    }

    /// Lets go of all free slots, and moves the end down. The requests start over at the front.
    pub(crate) fn widen_all(&mut self) {
        let (slots, sentinel) = (self.table.slots(), self.sentinel());
        let mut before = sentinel;
        loop {
            self.widen(before);
            before = slots.next(before);
            if before == sentinel {
                break;
            }
        }
        let end = self.last_end().saturating_add(FIRST_BYTES);
        slots.set_start(sentinel, end.min(slots.start(sentinel)));
        (self.tail, self.resume, self.run) = (sentinel, sentinel, sentinel);
        if self.is_crowded() {
            self.watch_all();
        }
    }

    /// Gives back the whole pages of the gaps, the last of which has all that is behind it.
    fn return_pages(&self) {
        let mut before = self.sentinel();
        loop {
            let gap = self.table.slots().end(before)..self.gap_limit(before);
            // SAFETY: the bytes of a gap, and those behind the end, are in no live slot (P2), and
            // so in no buffer. The borrow of the pool, which is `mut` further up, keeps requests
            // away.
            let _bytes = unsafe { self.table.region().return_pages(gap) };
            before = self.table.slots().next(before);
            if before == self.sentinel() {
                break;
            }
        }
    }

    /// Returns where the gap behind `before` ends. The last one has all that the end can move over.
    pub(crate) fn gap_limit(&self, before: u32) -> usize {
        let next = self.table.slots().next(before);
        if next == self.sentinel() { self.limit() } else { self.table.slots().start(next) }
    }

    /// Returns the address behind all that the pool can use of its region.
    fn limit(&self) -> usize {
        self.table.memory().addr().get() + self.capacity
    }

    /// Returns where the last slot in the list ends.
    fn last_end(&self) -> usize {
        self.table.slots().end(self.table.slots().prev(self.sentinel()))
    }

    /// Returns whether the end can move up.
    pub(crate) fn has_unused(&self) -> bool {
        self.table.end() < self.limit()
    }

    /// Moves the end up to `until` at least, if it is not there. Returns whether it can be.
    pub(crate) fn extend_to(&mut self, until: usize) -> bool {
        let (end, limit) = (self.table.end(), self.limit());
        if until > end && until <= limit {
            let used = end - self.table.memory().addr().get();
            let step = FIRST_BYTES.max(used / GROWTH);
            self.table.slots().set_start(self.sentinel(), until.max(end.saturating_add(step)).min(limit));
        }
        until <= limit
    }

    /// Takes `bytes`, which are not none, behind the last live slot, and moves the end up for them.
    pub(crate) fn carve_at_end(&mut self, bytes: usize) -> Carved {
        let last = self.clear_end();
        let slots = self.table.slots();
        let start = self.gap_start(slots, last, bytes);
        if self.free == NONE || !self.extend_to(start.saturating_add(bytes)) {
            return Carved::NONE;
        }
        self.carve_new(slots, last, start, bytes)
    }

    /// Returns whether no live slot is behind the tail.
    pub(crate) fn is_tail_last(&self) -> bool {
        let slots = self.table.slots();
        let mut next = slots.next(self.tail);
        while slots.is_free(next) {
            next = slots.next(next);
        }
        next == self.sentinel()
    }

    /// Returns whether one of the first gaps has room for `bytes` bytes, and lets go of the free
    /// slots in those.
    pub(crate) fn is_room_near_front(&mut self, bytes: usize) -> bool {
        let slots = self.table.slots();
        let mut before = self.sentinel();
        for _ in 0..=PROBES_AT_FRONT {
            let limit = self.widen(before);
            if bytes <= limit.saturating_sub(self.gap_start(slots, before, bytes)) {
                return true;
            }
            before = slots.next(before);
            if before == self.sentinel() {
                break;
            }
        }
        false
    }
}

impl<F: BufferPool> bufkit::Trim for SlotPool<F> {
    fn trim(&mut self) {
        Self::trim(self);
    }

    fn stats(&self) -> Option<bufcore::PoolStats> {
        Some(Self::stats(self))
    }
}
