//! How much of its region the ring uses, and pages that go back to the system.
//!
//! A new ring ends behind the first bytes of its region. So requests go round in memory that stays
//! in the processor's caches, and pages that no buffer needs are not touched. A request that finds
//! no room before the end moves the end up. [`RingPool::trim`] moves it down again.
//!
//! The invariants P1 and P2 of `pool` are kept here.

use core::ops::Range;

use crate::RingPool;
use crate::ring::{FIRST_BYTES, GuardPtr, UNIT};

/// When the ring needs more it has at least a fraction more, one over this number, of what it uses.
const GROWTH: usize = 8;

/// How many live blocks at the front a request looks behind before the end moves up for it.
const PROBES_AT_FRONT: usize = 8;

impl RingPool {
    /// Returns the pages without live buffers to the system. The capacity is unchanged: a page is
    /// allocated again, as zeros, at its next use.
    ///
    /// This works on Linux with the feature `mmap`, if the region [may return
    /// pages](bufcore::Region::returns_pages), as those of the heap may. Otherwise it does nothing.
    ///
    /// A program calls it after a burst, or periodically in the loop that owns the ring. Each
    /// thread does so with its [`LocalRing`](crate::LocalAcquire::with_ring). A ring in a mutex can
    /// be watched by a `Keeper` of `bufkeeper`, which calls it.
    ///
    /// Cost: a visit of every block, and two system calls for each run of free ones with a whole
    /// page. Each page that is reused costs a page fault.
    ///
    /// ```
    /// # #[cfg(feature = "alloc")] {
    /// use bufring::RingPool;
    ///
    /// let mut ring = RingPool::new(8 << 20)?;
    /// ring.acquire(6 << 20)?.resize(6 << 20, 1)?; // a large file, which was served
    /// ring.trim(); // 6 MiB less are resident
    /// assert_eq!(ring.capacity(), 8 << 20);
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn trim(&mut self) {
        // Pages never go back without this crate's own feature, though another crate of the program
        // may have switched on that of `bufcore`.
        if cfg!(feature = "mmap") && self.ring.region().returns_pages() {
            self.merge_all();
            self.return_pages();
        }
    }

    /// Makes one block of each run of free ones, and moves the end down. The requests start over at
    /// the front.
    pub(crate) fn merge_all(&mut self) {
        let mut at = self.ring.next(self.ring.front());
        while at != self.ring.end() {
            if self.ring.is_free(at) {
                self.ring.merge_free(at);
            }
            at = self.ring.next(at);
        }
        let (front, last) = (self.ring.front(), self.ring.before(self.ring.end()));
        if self.ring.is_free(last) {
            self.ring.retract(last, self.grid.units(FIRST_BYTES));
        }
        (self.base, self.resume) = (front, front);
        self.move_to(front);
    }

    /// Gives back the whole pages of the free blocks, and those behind the end.
    fn return_pages(&self) {
        let free = self.ring.all().filter(|&at| self.ring.is_free(at)).map(|at| self.addresses(at));
        for addresses in free.chain([self.ring.unused_bytes()]) {
            // SAFETY: the bytes of a free block are in no buffer (P2), and no guard is among
            // them; what is behind the guard at the end is nobody's (R5). The borrow of the
            // ring, which is `mut` further up, keeps requests away.
            let _bytes = unsafe { self.ring.region().return_pages(addresses) };
        }
    }

    /// Returns the addresses of the block.
    fn addresses(&self, at: GuardPtr) -> Range<usize> {
        self.ring.data(at).addr().get()..self.ring.block_end(at).addr().get()
    }

    /// Moves the end up for a free block of `units` in front of it; none when the region has too
    /// little for that.
    #[cold]
    #[inline(never)]
    pub(crate) fn extend(&mut self, units: usize) -> Option<GuardPtr> {
        let mut at = self.ring.end();
        while self.ring.is_free(self.ring.before(at)) {
            at = self.ring.before(at);
        }
        self.extend_from(at, units).then_some(at)
    }

    /// Moves the end up for a block of `units` at `at`, behind which all blocks are free. `at`
    /// itself is free, the end, or the allocator's own. Returns whether there is room; if not,
    /// nothing has changed.
    pub(crate) fn extend_from(&mut self, at: GuardPtr, units: usize) -> bool {
        let has = (self.ring.end().addr().get() - at.addr().get()) / UNIT;
        let (missing, unused) = (units.saturating_sub(has), self.ring.unused());
        if missing > unused {
            return false;
        }
        if missing > 0 {
            let step = FIRST_BYTES.max(self.ring.used() * UNIT / GROWTH);
            self.ring.extend(missing.max(self.grid.units(step)).min(unused));
        }
        self.widen(at, units) >= units
    }

    /// Returns whether a few steps from the front lead to a run of free blocks of `units`.
    pub(crate) fn is_room_near_front(&self, units: usize) -> bool {
        let (mut run, mut probes) = (0, PROBES_AT_FRONT);
        for at in self.ring.all() {
            if self.ring.is_free(at) {
                run += self.ring.size(at);
                if run >= units {
                    return true;
                }
            } else if probes == 0 {
                return false;
            } else {
                (run, probes) = (0, probes - 1);
            }
        }
        false
    }
}

impl bufkit::Trim for RingPool {
    fn trim(&mut self) {
        Self::trim(self);
    }

    fn stats(&self) -> Option<bufcore::PoolStats> {
        Some(Self::stats(self))
    }
}
