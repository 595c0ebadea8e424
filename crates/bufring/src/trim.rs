//! Pages of the region that go back to the system while they hold no buffers, and those that are
//! not touched before they are needed.
//!
//! A new ring has most of its memory parked. So requests go round in its first bytes, which stay in
//! the processor's caches, and take more when these do not suffice.
//!
//! Requests leave no trace of when they were. So a look of `trim_idle` parks the free blocks that
//! have a whole page in them: each gets a state of its own. No request takes such a block on the
//! short way, as it takes no live one. A request that finds no room besides takes of what is parked
//! as much as it needs. Requests start over at the front of the ring after each look, so it is the
//! same memory from look to look that they use. Memory that is still parked at the next look was
//! left over at every moment since, and its pages go.
//!
//! The invariants P1 to P5 of `pool` are kept here.

use core::time::Duration;

use bufcore::strategy::Parking;

use crate::RingPool;
use crate::ring::At;

/// How many live blocks a request steps over before it takes what is parked.
const MAX_PROBES: usize = 64;

impl RingPool {
    /// Gives the pages of the region that hold no buffers back to the system. The capacity stays as
    /// it is: a page comes back, as zeros, when it is next used.
    ///
    /// It does so on Linux with the feature `mmap`, where the region
    /// [may return pages](bufcore::Region::returns_pages), as those of the heap may. Otherwise it
    /// does nothing.
    ///
    /// Cost: a look at every block, and two system calls for each run of free ones with a whole
    /// page.
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
        if !self.returns_pages() {
            return;
        }
        self.merge_all();
        for at in self.ring.all().filter(|&at| self.ring.is_free(at)) {
            self.return_pages(at, 0);
        }
        let first = self.ring.next(self.ring.front());
        if self.ring.is_free(first) {
            self.park_rest(first);
        }
    }

    /// Gives the pages of the region that were not used for `age` back to the system, and keeps
    /// what comes and goes. It does so where [`trim`](Self::trim) does.
    ///
    /// A program calls it from time to time, as often as it likes, for example in a tick of the
    /// loop that has the ring. Each thread does so with its
    /// [`LocalRing`](crate::LocalAcquire::with_ring). A ring in a mutex is watched by a `Keeper` of
    /// `bufcore`, which calls it by itself (`TrimMut`). Buffers get no time stamps when they come
    /// and go; the calls themselves look at the ring:
    ///
    /// - The first call only notes what is free.
    /// - A call that comes `age` or more after the last one that looked gives back what was left
    ///   over at every moment since, and notes.
    /// - A call that comes earlier does nothing.
    ///
    /// A quarter of what was taken since stays beside it, for traffic that varies. Requests after a
    /// look go to the front of the ring, and do not touch the rest until they need it. So the ring
    /// goes round in about as much memory as its buffers take.
    ///
    /// Cost: nothing for most calls. A call that looks costs as much as [`trim`](Self::trim). Some
    /// requests after it take a search.
    ///
    /// ```
    /// # #[cfg(feature = "alloc")] {
    /// use core::time::Duration;
    /// use bufring::RingPool;
    ///
    /// let mut ring = RingPool::new(64 << 20)?;
    /// for tick in 0..3 {
    ///     let mut packet = ring.acquire(1500)?; // its pages stay
    ///     packet.extend_from_slice(b"packet")?;
    ///     drop(packet);
    ///     ring.trim_idle(Duration::ZERO); // or some seconds
    /// }
    /// # }
    /// # Ok::<(), bufring::Error>(())
    /// ```
    pub fn trim_idle(&mut self, age: Duration) {
        if !self.returns_pages() || !self.parking.is_due(age) {
            return;
        }
        let mut margin = self.parking.margin();
        for at in self.ring.all().filter(|&at| self.ring.is_parked(at)) {
            let kept = margin.min(self.ring.room(at));
            margin -= kept;
            self.return_pages(at, kept);
        }
        self.park(|ring, at| !ring.ring.region().whole_pages(ring.addresses(at)).is_empty());
    }

    /// Parks the free blocks that are worth it, each with all that is free around it.
    pub(crate) fn park(&mut self, is_worth: impl Fn(&Self, At) -> bool) {
        self.merge_all();
        self.parking.begin();
        for at in self.ring.all() {
            if self.ring.is_free(at) && is_worth(self, at) {
                self.ring.set_parked(at, true);
                self.parking.park();
            }
        }
    }

    /// Parks what a free block has beyond its first bytes. So requests go round in memory that was
    /// used before, and take more of it when they need it.
    pub(crate) fn park_rest(&mut self, at: At) {
        let units = self.grid.units(Parking::FIRST_BYTES);
        if units < self.ring.size(at)
            && let Some(rest) = self.ring.cut(at, units)
        {
            self.ring.set_parked(rest, true);
            self.parking.park();
        }
    }

    /// Makes one block of each run of free ones. The requests start over at the front.
    fn merge_all(&mut self) {
        self.unpark_all();
        let mut at = self.ring.next(self.ring.front());
        while at != self.ring.end() {
            if self.ring.is_free(at) {
                self.ring.merge_free(at);
            }
            at = self.ring.next(at);
        }
        let front = self.ring.front();
        (self.base, self.resume) = (front, front);
        self.move_to(front);
    }

    /// Returns the addresses of the block.
    fn addresses(&self, at: At) -> core::ops::Range<usize> {
        self.ring.data(at).addr().get()..self.ring.block_end(at).addr().get()
    }

    /// Gives back the whole pages of a block that is free or parked, except for the first bytes of
    /// it, of which it has as many as are `kept`.
    fn return_pages(&self, at: At, kept: usize) {
        assert!(self.ring.is_vacant(at), "pages of a live block stay");
        let addresses = self.addresses(at);
        // SAFETY: the block is in no buffer (P2), and its guard is not among its
        // bytes. The borrow of the ring, which is `mut` further up, keeps requests away.
        let _bytes = unsafe { self.ring.region().return_pages(addresses.start + kept..addresses.end) };
    }

    /// Returns whether pages may go back. They never do without this crate's own feature, though
    /// another crate of the program may have switched on that of `bufcore`.
    fn returns_pages(&self) -> bool {
        cfg!(feature = "mmap") && self.ring.region().returns_pages()
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
        for at in self.ring.all().filter(|&at| self.ring.is_parked(at)) {
            self.ring.set_parked(at, false);
            self.parking.unpark();
        }
    }

    /// Frees parked memory from `at` on, as much as is needed for a free block of `units` there
    /// once free blocks are merged. It stops at the next live block. The block of `at` itself is
    /// vacant.
    pub(crate) fn unpark_from(&mut self, at: At, units: usize) {
        let (mut here, mut found) = (at, 0);
        while found < units {
            if self.ring.is_parked(here) {
                self.unpark(here, units - found);
            } else if here != at && !self.ring.is_free(here) {
                break;
            }
            found += self.ring.size(here);
            here = self.ring.next(here);
        }
    }

    /// Frees at least `units` of a block that is parked, or all of it.
    fn unpark(&mut self, at: At, units: usize) {
        self.parking.unpark();
        let more = self.grid.units(self.parking.step().min(self.capacity));
        let wanted = units.max(more);
        if wanted < self.ring.size(at)
            && let Some(rest) = self.ring.cut(at, wanted)
        {
            self.ring.set_parked(rest, true);
            self.parking.park();
        }
        self.ring.set_parked(at, false);
        self.parking.note_taken(self.ring.room(at));
    }

    /// Makes a free block of at least `units` of the parked block that the requests have come to,
    /// if there is no room near the front of the ring. So a burst goes on in a row, and the
    /// requests after it can go back to where it began.
    #[cold]
    #[inline(never)]
    pub(crate) fn extend(&mut self, units: usize) -> Option<At> {
        if !self.ring.is_parked(self.head) || self.is_room_near_front(units) {
            return None;
        }
        // What was too little in front of it becomes a part of the block.
        let at = if self.ring.is_free(self.newest) { self.newest } else { self.head };
        self.unpark_from(at, units);
        (self.widen(at, units) >= units).then_some(at)
    }

    /// Returns whether a few steps from the front lead to a run of free blocks of `units`.
    pub(crate) fn is_room_near_front(&self, units: usize) -> bool {
        let (mut run, mut probes) = (0, Parking::PROBES_AT_FRONT);
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

    /// Finds a free block of at least `units` when blocks are parked; none only when there is none.
    ///
    /// What a short search finds without them comes first, and what is parked at the front before
    /// the rest: so it is the same memory from look to look that is used.
    #[cold]
    #[inline(never)]
    pub(crate) fn find_with_parked(&mut self, units: usize) -> Option<At> {
        if let Some(at) = self.search(units, Some(MAX_PROBES)) {
            return Some(at);
        }
        let skips = self.parking.skips(units);
        let parked = if skips { None } else { self.first_parked(units) };
        if parked.is_some() {
            return parked;
        }
        let found = self.search(units, None);
        if found.is_some() || !skips { found } else { self.first_parked(units) }
    }

    /// Makes a free block of at least `units` of the first run of vacant ones that has as many, and
    /// parked ones among them. `newest` is there then.
    fn first_parked(&mut self, units: usize) -> Option<At> {
        let mut at = self.ring.next(self.ring.front());
        while at != self.ring.end() {
            let (mut end, mut size, mut has_parked) = (at, 0, false);
            while self.ring.is_vacant(end) {
                has_parked |= self.ring.is_parked(end);
                size += self.ring.size(end);
                end = self.ring.next(end);
            }
            if has_parked && size >= units {
                self.unpark_from(at, units);
                self.newest = at;
                let widened = self.widen(at, units);
                assert!(widened >= units, "{widened} of {units} units");
                return Some(at);
            }
            // The guard at the end leads to itself.
            at = self.ring.next(end);
        }
        self.parking.refuse(units);
        None
    }
}

#[cfg(feature = "std")]
impl bufcore::TrimMut for RingPool {
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
