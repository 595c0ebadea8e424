//! The allocator: where to take the next block.
//!
//! # Invariants
//!
//! - P1: `newest` is a guard of the ring: that of the newest block, as long as nothing was merged, or that where the last search
//!   ended.
//! - P2: every live block but those of open frames (`frame`, `lent`) belongs to one lease.
//! - P3: `frame` is closed, or the only record of a live block; `lent` likewise, but that an [`Extendable`] that is still in use
//!   has the newer record of it.

use core::fmt;
use core::ptr::NonNull;

use bufcore::strategy::{Counters, Served, Tracker};
use bufcore::{AcquireError, Buf, BufferPool, PoolStats, Region};

use crate::RingLease;
#[cfg(feature = "alloc")]
use crate::Builder;
use crate::frame::Frame;
use crate::guard::At;
use crate::ring::{Grid, Ring, SLACK_UNITS};

/// How many live blocks one request steps over. The next request goes on from there.
const MAX_PROBES: usize = 128;

/// How many free blocks one request goes back over.
const MAX_REWIND: usize = 64;

/// A ring allocator: buffers carved from one region in turn. See the [crate documentation](crate).
///
/// Threads: `Send`, not `Sync`; one thread at a time acquires, any thread releases.
pub struct RingAllocator {
    pub(crate) ring: Ring,
    pub(crate) grid: Grid,
    /// The largest request that can ever succeed, in bytes.
    pub(crate) capacity: usize,
    /// Where the next request looks first (P1).
    pub(crate) newest: At,
    /// The frame of the `FrameBuffer` that this is.
    pub(crate) frame: Frame,
    /// The frame that an [`Extendable`](crate::Extendable) has, or had when it was forgotten.
    pub(crate) lent: Frame,
    counters: Counters,
    tracker: Tracker,
}

// SAFETY: the ring is this allocator's alone, but for the atomics in it; see `ring`.
unsafe impl Send for RingAllocator {}

#[cfg(feature = "alloc")]
impl RingAllocator {
    /// A ring over `capacity` bytes of heap: the largest buffer that it can hand out. Each buffer takes 16 bytes of them beside
    /// its own, rounded up to 16; see [`Builder::buffers`].
    ///
    /// # Errors
    ///
    /// See [`Builder::build`].
    pub fn new(capacity: usize) -> Result<Self, bufcore::ConfigError> {
        Self::builder().capacity(capacity).build()
    }

    /// All settings.
    #[must_use]
    pub fn builder() -> Builder {
        Builder::default()
    }
}

impl RingAllocator {
    pub(crate) fn over(ring: Ring, grid: Grid) -> Self {
        let front = ring.front();
        let capacity = ring.room(ring.next(front));
        let closed = Frame::closed(&ring);
        Self {
            ring,
            grid,
            capacity,
            newest: front,
            frame: closed,
            lent: closed,
            counters: Counters::default(),
            tracker: Tracker::default(),
        }
    }

    /// The largest buffer that can be handed out, in bytes, when nothing else is out.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Whether nothing of the region is out, at this moment.
    ///
    /// Cost: a look at every block.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.ring.all().all(|at| self.ring.is_free(at))
    }

    /// The buffers that are out, longest first: where and when each was acquired.
    #[cfg(feature = "track")]
    #[must_use]
    pub fn outstanding(&self) -> alloc::vec::Vec<bufcore::Outstanding> {
        self.tracker.outstanding()
    }

    /// Ends the allocator and gives its region back, if nothing of it is out; a region of static memory can be used again.
    ///
    /// Cost: zeroing the bookkeeping.
    ///
    /// # Errors
    ///
    /// Returns the allocator unchanged while buffers are out or a frame is open.
    #[allow(clippy::result_large_err, reason = "the error is the allocator, which the caller just owned")]
    pub fn into_region(mut self) -> Result<Region, Self> {
        if self.is_idle() { self.ring.leave_clean().ok_or(self) } else { Err(self) }
    }

    /// Takes a block for `bytes` bytes; none when there is none, and for no bytes.
    #[inline(always)]
    fn take(&mut self, bytes: usize) -> Option<At> {
        // One comparison for `1 <= bytes <= capacity`.
        if bytes.wrapping_sub(1) >= self.capacity {
            return None;
        }
        let units = self.grid.units(bytes);
        let at = self.at_hand();
        if !self.ring.is_free(at) {
            return self.take_elsewhere(units);
        }
        if self.ring.size(at).wrapping_sub(units) <= SLACK_UNITS {
            self.ring.occupy(at);
            self.newest = at;
            return Some(at);
        }
        self.take_resized(at, units)
    }

    /// Takes all of a block that has room for `bytes` bytes; none when there is none, and for no bytes.
    #[inline]
    pub(crate) fn take_whole(&mut self, bytes: usize) -> Option<At> {
        if bytes.wrapping_sub(1) >= self.capacity {
            return None;
        }
        let units = self.grid.units(bytes);
        let mut at = self.at_hand();
        if !self.ring.is_free(at) || self.ring.size(at) < units {
            at = self.search(units)?;
        }
        self.ring.occupy(at);
        self.newest = at;
        Some(at)
    }

    /// The block that is tried first: the newest, when it is back and its memory is still hot, or the one behind.
    #[inline(always)]
    fn at_hand(&self) -> At {
        let at = self.newest;
        if !self.ring.is_free(at) {
            return self.ring.next(at);
        }
        if self.ring.is_free(self.ring.before(at)) { self.rewind(at) } else { at }
    }

    /// Goes back from `at`, which is free, to the first of the free blocks in front of it.
    ///
    /// Each step back undoes a step forward of an earlier request, so this is constant time per request on the whole.
    #[inline(never)]
    fn rewind(&self, mut at: At) -> At {
        for _ in 0..MAX_REWIND {
            let before = self.ring.before(at);
            if !self.ring.is_free(before) {
                break;
            }
            at = before;
        }
        at
    }

    /// Takes `units` at `at`, which is free and of another size.
    #[inline(never)]
    fn take_resized(&mut self, at: At, units: usize) -> Option<At> {
        // Before what is merged, so that it stays a guard of the ring (P1).
        self.newest = at;
        if self.ring.widen(at, units) < units {
            return self.take_elsewhere(units);
        }
        self.ring.split(at, units);
        self.ring.occupy(at);
        Some(at)
    }

    /// Takes `units` wherever they can be had.
    #[cold]
    #[inline(never)]
    fn take_elsewhere(&mut self, units: usize) -> Option<At> {
        let at = self.search(units)?;
        self.ring.split(at, units);
        self.ring.occupy(at);
        Some(at)
    }

    /// Finds a free block of at least `units` in one turn of the ring, or until it has stepped over too many live ones. Merges
    /// the free ones that it passes; each was made by an earlier request. `newest` is there then.
    pub(crate) fn search(&mut self, units: usize) -> Option<At> {
        self.close_lent();
        self.return_gap();
        let start = self.newest;
        let (mut at, mut wrapped) = (start, false);
        let mut probes = MAX_PROBES;
        loop {
            self.newest = at;
            if self.ring.is_free(at) {
                if self.ring.widen(at, units) >= units {
                    return Some(at);
                }
            } else if at == self.ring.end() {
                if wrapped {
                    return None;
                }
                wrapped = true;
                at = self.ring.front();
            } else {
                if probes == 0 || (wrapped && at >= start) || cfg!(bufworks_broken = "jams") && at != start {
                    return None;
                }
                probes -= 1;
            }
            at = self.ring.next(at);
        }
    }

    /// The buffer of the first `bytes` bytes from `start` on in a block that was just occupied.
    #[inline(always)]
    #[cfg_attr(feature = "track", track_caller)]
    pub(crate) fn hand_out(&mut self, at: At, start: NonNull<u8>, bytes: usize) -> Buf<RingLease> {
        let lease = RingLease { handle: Some(self.ring.handle(at)) };
        // SAFETY: the bytes lie in the block, which is initialised (R1); the block is live until the lease is dropped, and a live
        // block is neither handed out nor merged, so nobody else gets them.
        let buf = unsafe { Buf::from_raw_parts(start, bytes, lease) };
        if cfg!(feature = "stats") {
            let taken = self.ring.room(at);
            self.counters.acquired(Served::Reused, taken, self.ring.released(), PoolStats::default);
        }
        self.tracker.attach(buf)
    }

    /// A buffer of no bytes, which holds nothing.
    #[cfg_attr(feature = "track", track_caller)]
    pub(crate) fn hand_out_nothing(&mut self) -> Buf<RingLease> {
        // SAFETY: no bytes are claimed.
        let buf = unsafe { Buf::from_raw_parts(NonNull::dangling(), 0, RingLease { handle: None }) };
        self.tracker.attach(buf)
    }

    /// A request that was not served, or one of no bytes.
    #[cold]
    #[inline(never)]
    #[cfg_attr(feature = "track", track_caller)]
    fn not_taken(&mut self, bytes: usize) -> Result<Buf<RingLease>, AcquireError> {
        if bytes == 0 { Ok(self.hand_out_nothing()) } else { Err(self.refuse(bytes, 0)) }
    }

    /// Why there are no `requested` bytes more, `held` of which an open frame has already.
    #[cold]
    pub(crate) fn refuse(&mut self, requested: usize, held: usize) -> AcquireError {
        let limit = self.capacity - held;
        if requested > limit {
            return AcquireError::TooLarge { requested, limit };
        }
        self.counters.exhausted();
        let free = |at| if self.ring.is_free(at) { self.ring.room(at) } else { 0 };
        let available = free(self.newest).max(free(self.ring.next(self.newest)));
        AcquireError::Exhausted { requested, available }
    }
}

impl BufferPool for RingAllocator {
    type Lease = RingLease;

    /// Cost: some fifteen plain instructions when the block at hand fits, as it does where sizes recur; splitting and merging
    /// otherwise, and a bounded search past blocks that are held. Allocates nothing.
    ///
    /// # Source
    ///
    /// A ring of guards after `ringal`; going back to the newest block, and next fit past held ones (Knuth, *The Art of Computer
    /// Programming* 1, 2.5), are this crate's.
    #[inline(always)]
    fn acquire(&mut self, capacity: usize) -> Result<Buf<RingLease>, AcquireError> {
        if let Some(at) = self.take(capacity) {
            Ok(self.hand_out(at, self.ring.data(at), capacity))
        } else {
            // Taken apart and put together, so that what comes back in memory does not force the other case there too.
            #[allow(clippy::needless_question_mark, reason = "see above")]
            Ok(self.not_taken(capacity)?)
        }
    }

    fn max_capacity(&self) -> usize {
        self.capacity
    }

    /// Cost: a look at every block, unless the `stats` feature is on.
    fn stats(&self) -> PoolStats {
        let mut stats = self.counters.snapshot(self.ring.released(), &PoolStats::default(), self.capacity);
        if !cfg!(feature = "stats") {
            stats.in_use = self.ring.all().filter(|&at| !self.ring.is_free(at)).count();
        }
        stats
    }
}

impl Drop for RingAllocator {
    fn drop(&mut self) {
        self.close_lent();
        self.close_frame();
        drop(self.ring.leave());
    }
}

/// Shows how many blocks are out and how many bytes they take.
impl fmt::Debug for RingAllocator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let taken = self.ring.all().filter(|&at| !self.ring.is_free(at));
        let (blocks, bytes) = taken.fold((0, 0), |(n, sum), at| (n + 1, sum + self.ring.room(at)));
        f.debug_struct("RingAllocator")
            .field("capacity", &self.capacity)
            .field("blocks_out", &blocks)
            .field("bytes_out", &bytes)
            .finish_non_exhaustive()
    }
}
