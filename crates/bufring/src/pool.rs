//! The allocator: where to take the next block.
//!
//! # Invariants
//!
//! - P1: `newest`, `base` and `resume` are guards of the ring. `newest` is that of the newest
//!   block, or of where the last search ended; `head` is the one behind it. From `base` to `newest`
//!   is the way that the requests since have come, without stepping over a live block; after a
//!   buffer grew in place, `newest` is that of its block. `resume` is where to go on when the way
//!   from `base` is blocked; the guard at the front stands for nowhere. No proof rests on the way.
//! - P2: every live block belongs to one lease.

use core::fmt;

use bufcore::author::{Counters, Served, Tracker};
use bufcore::{AcquireError, Buf, BufferPool, PoolStats};

#[cfg(feature = "alloc")]
use crate::Builder;
use crate::RingLease;
use crate::ring::{Grid, GuardPtr, Ring, UNIT, room};

/// A ring allocator: buffers carved from one region in turn. See the [crate documentation](crate).
///
/// Threads: `Send`, not `Sync`; one thread at a time acquires, any thread releases.
///
/// ```
/// # #[cfg(feature = "alloc")] {
/// use bufring::RingPool;
///
/// let mut ring = RingPool::new(64 << 10)?; // bytes
/// let mut packet = ring.acquire(1500)?;
/// packet.extend_from_slice(b"packet")?;
/// std::thread::spawn(move || drop(packet)).join().unwrap(); // any thread releases
/// assert!(ring.is_idle());
/// # }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
// In this order: what each request reads is in one cache line, at the shortest offsets.
#[repr(C)]
pub struct RingPool {
    pub(crate) grid: Grid,
    /// The largest request that can ever succeed, in bytes.
    pub(crate) capacity: usize,
    /// The newest block (P1).
    pub(crate) newest: GuardPtr,
    /// The one behind it, where the next request looks while the newest block is live. Kept,
    /// because it is known sooner than it can be read from the ring.
    pub(crate) head: GuardPtr,
    /// Where the requests go back to when the newest block is free.
    pub(crate) base: GuardPtr,
    pub(crate) ring: Ring,
    /// Where requests continue after those at `base`, or the guard at the front.
    pub(crate) resume: GuardPtr,
    /// The largest free block that the last search passed, in units.
    pub(crate) largest: usize,
    /// So many searches are short.
    pub(crate) short: usize,
    pub(crate) counters: Counters,
    pub(crate) tracker: Tracker,
}

// SAFETY: the ring is this allocator's alone, except for the atomics in it; see `ring`.
unsafe impl Send for RingPool {}
bufcore::unwind_safe!(RingPool);

#[cfg(feature = "alloc")]
impl RingPool {
    /// Makes a ring over `capacity` bytes of heap, which is also its largest buffer. Each buffer
    /// takes 16 additional bytes, and is rounded up to 16; see [`Builder::buffers`].
    ///
    /// # Errors
    ///
    /// See [`Builder::build`].
    ///
    /// ```
    /// use bufring::{AcquireError, RingPool};
    ///
    /// let mut ring = RingPool::new(4096)?;
    /// let first = ring.acquire(2048)?;
    /// // Two halves leave no room for the guards of two buffers.
    /// let refused = ring.acquire(2048).unwrap_err();
    /// assert_eq!(refused, AcquireError::Exhausted { requested: 2048, available: 2032 });
    /// # drop(first);
    /// # Ok::<(), bufring::Error>(())
    /// ```
    pub fn new(capacity: usize) -> Result<Self, bufcore::ConfigError> {
        Self::builder().capacity(capacity).build()
    }

    /// Returns the builder, which has all settings.
    ///
    /// ```
    /// use bufring::RingPool;
    ///
    /// let mut ring = RingPool::builder().capacity(4096).buffers(2).build()?;
    /// let halves = (ring.acquire(2048)?, ring.acquire(2048)?); // and room for two guards
    /// assert_eq!(halves.0.capacity() + halves.1.capacity(), 4096);
    /// # Ok::<(), bufring::Error>(())
    /// ```
    #[must_use]
    pub fn builder() -> Builder {
        Builder::default()
    }
}

bufcore::pool_methods!(impl[] RingPool => RingLease);

impl RingPool {
    pub(crate) fn over(ring: Ring, grid: Grid) -> Self {
        let front = ring.front();
        let first = ring.next(front);
        Self {
            capacity: ring.capacity(),
            ring,
            grid,
            newest: front,
            head: first,
            base: first,
            resume: front,
            largest: 0,
            short: 0,
            counters: Counters::default(),
            tracker: Tracker::default(),
        }
    }

    /// Takes a block for `bytes` bytes; none when there is none, and for no bytes.
    #[inline(always)]
    pub(crate) fn take(&mut self, bytes: usize) -> Option<GuardPtr> {
        // One comparison for `1 <= bytes <= capacity`.
        if bytes.wrapping_sub(1) >= self.capacity {
            return None;
        }
        let wanted = self.grid.block_bytes(bytes);
        let newest = self.newest;
        let at = if self.ring.is_free(newest) {
            let Some(before) = self.free_before(newest) else {
                // It was released, and is alone: its memory is still hot. Nothing but its state
                // changes.
                if self.ring.size(newest) == wanted / UNIT {
                    self.ring.occupy(newest);
                    return Some(newest);
                }
                return self.take_resized(newest, wanted / UNIT);
            };
            self.go_back(before)
        } else {
            if !self.ring.is_free(self.head) {
                return self.take_slow(wanted / UNIT);
            }
            self.head
        };
        if self.ring.size(at) == wanted / UNIT {
            self.ring.occupy(at);
            self.newest = at;
            // By what was asked for: that is known sooner than what was read.
            self.head = self.ring.behind(at, wanted);
            return Some(at);
        }
        self.take_resized(at, wanted / UNIT)
    }

    /// Takes all of a block that has room for `bytes` bytes; none when there is none, and for no
    /// bytes.
    #[inline(always)]
    fn take_whole(&mut self, bytes: usize) -> Option<GuardPtr> {
        if bytes.wrapping_sub(1) >= self.capacity {
            return None;
        }
        let units = self.grid.units(bytes);
        let at = match self.at_hand() {
            Some(at) if self.ring.size(at) >= units => at,
            _ => self.find(units)?,
        };
        self.ring.occupy(at);
        self.move_to(at);
        Some(at)
    }

    /// Returns a free block to go back to from the newest one: `base`, or the one in front.
    #[inline(always)]
    pub(crate) fn free_before(&self, newest: GuardPtr) -> Option<GuardPtr> {
        if self.base != newest && self.ring.is_free(self.base) {
            return Some(self.base);
        }
        self.ring.is_free(self.ring.before(newest)).then(|| self.ring.before(newest))
    }

    /// Returns the free block that is tried first: one that was released already and is still hot,
    /// or the one behind the newest.
    #[inline(always)]
    fn at_hand(&mut self) -> Option<GuardPtr> {
        let at = if !self.ring.is_free(self.newest) {
            self.head
        } else if let Some(before) = self.free_before(self.newest) {
            self.go_back(before)
        } else {
            self.newest
        };
        self.ring.is_free(at).then_some(at)
    }

    /// Goes back from the newest block to `at`, which [`free_before`](Self::free_before) returned,
    /// and from there to the first of the free blocks in front, which is the new base. So an idle
    /// ring starts over at its first block.
    ///
    /// A step back undoes a step forward of an earlier request, so this is constant time per
    /// request on the whole.
    #[inline(never)]
    fn go_back(&mut self, mut at: GuardPtr) -> GuardPtr {
        if at == self.base {
            self.resume = self.newest;
        }
        while self.ring.is_free(self.ring.before(at)) {
            at = self.ring.before(at);
            self.base = at;
        }
        at
    }

    /// Makes `at` the newest block.
    pub(crate) fn move_to(&mut self, at: GuardPtr) {
        self.newest = at;
        self.head = self.ring.next(at);
    }

    /// Takes `units` at `at`, which is free and of another size.
    #[inline(never)]
    fn take_resized(&mut self, at: GuardPtr, units: usize) -> Option<GuardPtr> {
        if self.widen(at, units) < units {
            self.move_to(at);
            return self.take_slow(units);
        }
        Some(self.commit(at, units))
    }

    /// Takes `units` wherever they can be had.
    #[cold]
    #[inline(never)]
    fn take_slow(&mut self, units: usize) -> Option<GuardPtr> {
        let at = self.find(units)?;
        Some(self.commit(at, units))
    }

    /// Takes the first `units` of a free block.
    #[inline(always)]
    fn commit(&mut self, at: GuardPtr, units: usize) -> GuardPtr {
        let rest = self.ring.split(at, units);
        self.ring.occupy(at);
        self.newest = at;
        self.head = rest.unwrap_or_else(|| self.ring.next(at));
        at
    }

    /// Merges the free blocks behind `at` into its block, which is free or the allocator's own, if
    /// it has less than `units`; returns what it has then.
    ///
    /// All of them, not only as many as it takes: so the next requests have one to split, and
    /// nothing to merge.
    #[inline]
    pub(crate) fn widen(&mut self, at: GuardPtr, units: usize) -> usize {
        let size = self.ring.size(at);
        if size >= units {
            return size;
        }
        let end = self.ring.merge_free(at);
        self.forget_merged(at, end);
        self.ring.size(at)
    }

    /// Keeps `newest`, `base` and `resume` guards of the ring (P1), when those between `at` and
    /// `end` are none any more.
    #[inline]
    pub(crate) fn forget_merged(&mut self, at: GuardPtr, end: GuardPtr) {
        for place in [&mut self.newest, &mut self.base, &mut self.resume] {
            if at < *place && *place < end {
                *place = at;
            }
        }
    }

    /// Makes the buffer of the first `bytes` bytes of a block that was just occupied.
    #[inline(always)]
    #[cfg_attr(feature = "track", track_caller)]
    pub(crate) fn hand_out(&mut self, at: GuardPtr, bytes: usize) -> Buf<RingLease> {
        let lease = self.ring.lease(at);
        // SAFETY: the bytes lie in the block, which is initialised (R1); the block is live until
        // the lease is dropped, and a live block is neither handed out nor merged, so nobody else
        // gets them.
        let buf = unsafe { Buf::from_raw_parts(self.ring.data(at), bytes, lease) };
        if cfg!(feature = "stats") {
            let taken = self.ring.room(at);
            self.counters.acquired(Served::Reused, taken, self.ring.released(), PoolStats::default);
        }
        self.tracker.attach(buf)
    }

    /// Serves a request of no bytes, and refuses others.
    #[cold]
    #[inline(never)]
    #[cfg_attr(feature = "track", track_caller)]
    fn acquire_slow(&mut self, bytes: usize) -> Result<Buf<RingLease>, AcquireError> {
        if bytes == 0 {
            return Ok(self.tracker.attach(bufkit::empty_buf(self.grid.alignment())));
        }
        Err(self.refuse(bytes, 0, 0))
    }

    /// Returns why there are no `requested` bytes more, and counts the refusal. A buffer that grows
    /// has `held` bytes already, and can grow by `reach` where it is.
    #[cold]
    pub(crate) fn refuse(&mut self, requested: usize, held: usize, reach: usize) -> AcquireError {
        let limit = self.capacity.saturating_sub(held);
        if requested > limit {
            return AcquireError::TooLarge { requested, limit };
        }
        self.counters.exhausted();
        // Less than what was requested, also when another thread has released something since the
        // search passed.
        let available = room(self.largest).saturating_sub(held).max(reach).min(requested.saturating_sub(1));
        AcquireError::Exhausted { requested, available }
    }
}

impl BufferPool for RingPool {
    type Lease = RingLease;

    /// Takes one empty buffer with room for `capacity` bytes.
    ///
    /// Cost: a few dozen plain instructions if the current block fits, as it does if sizes recur.
    /// Otherwise it splits and merges blocks, and searches past blocks in use: at most 128 in
    /// general, and all of up to 256 before a request fails. It allocates nothing.
    ///
    /// # Source
    ///
    /// A ring of guards after `ringal`; the return to the newest block, and next fit past blocks in
    /// use (Knuth, *The Art of Computer Programming* 1, 2.5), are this crate's.
    #[inline(always)]
    fn acquire(&mut self, capacity: usize) -> Result<Buf<RingLease>, AcquireError> {
        if let Some(at) = self.take(capacity) {
            Ok(self.hand_out(at, capacity))
        } else {
            // Taken apart and put together, so that what comes back in memory does not force the
            // other case there too. That it is empty is said once more, where the compiler can see
            // it.
            let mut buf = self.acquire_slow(capacity)?;
            buf.clear();
            Ok(buf)
        }
    }

    #[inline(always)]
    fn acquire_most(&mut self, capacity: usize) -> Result<Buf<RingLease>, AcquireError> {
        if let Some(at) = self.take_whole(capacity) {
            Ok(self.hand_out(at, self.ring.room(at)))
        } else {
            // As in `acquire`.
            let mut buf = self.acquire_slow(capacity)?;
            buf.clear();
            Ok(buf)
        }
    }

    /// Makes room in `buf` for at least `additional` bytes after the filled ones.
    ///
    /// Cost: one comparison when there is room. The buffer grows in place into the free blocks
    /// after it; otherwise it moves. If the program built the ring in a region of its own, growing
    /// and shrinking a buffer other than the newest one starts with a walk over the blocks between
    /// the two.
    #[inline(always)]
    fn grow(&mut self, buf: &mut Buf<RingLease>, additional: usize) -> Result<(), AcquireError> {
        if additional <= buf.spare_capacity() { Ok(()) } else { self.make_room(buf, additional, false) }
    }

    #[inline(always)]
    fn grow_most(&mut self, buf: &mut Buf<RingLease>, additional: usize) -> Result<(), AcquireError> {
        if additional <= buf.spare_capacity() { Ok(()) } else { self.make_room(buf, additional, true) }
    }

    #[inline]
    fn shrink(&mut self, buf: &mut Buf<RingLease>) {
        self.give_back(buf);
    }

    fn max_capacity(&self) -> usize {
        self.capacity
    }

    /// Returns a snapshot of the pool's counters and memory.
    ///
    /// Cost: a visit of every block, unless the `stats` feature is on.
    fn stats(&self) -> PoolStats {
        let mut stats = self.counters.snapshot(self.ring.released(), &PoolStats::default(), self.capacity);
        if !cfg!(feature = "stats") {
            stats.in_use = self.ring.all().filter(|&at| !self.ring.is_free(at)).count();
        }
        stats
    }
}

impl Drop for RingPool {
    fn drop(&mut self) {
        drop(self.ring.leave());
    }
}

/// Shows how many blocks are in use and their bytes.
impl fmt::Debug for RingPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let taken = self.ring.all().filter(|&at| !self.ring.is_free(at));
        let (blocks, bytes) = taken.fold((0, 0), |(n, sum), at| (n + 1, sum + self.ring.room(at)));
        f.debug_struct("RingPool")
            .field("capacity", &self.capacity)
            .field("blocks_out", &blocks)
            .field("bytes_out", &bytes)
            .finish_non_exhaustive()
    }
}
