//! The traits of a slot pool: how it is asked for a buffer, how it ends, how it prints.

use core::fmt;

use bufcore::{AcquireError, Buf, BufferPool, PoolStats};

use crate::lease::SlotLease;
use crate::pool::SlotPool;
use crate::table::Table;

impl<F: BufferPool> BufferPool for SlotPool<F> {
    type Lease = SlotLease<F::Lease>;

    /// Takes one empty buffer with room for `capacity` bytes.
    ///
    /// Cost: about thirty plain instructions. If the gap at the tail is full, a bounded search is
    /// added. If that finds nothing among more than 64 slots, an index of gaps is built, by a visit
    /// of each slot. After that, until most of these buffers are released, a request takes a number
    /// of steps logarithmic in the number of slots, and the release of those buffers takes a locked
    /// instruction. The fallback's cost is added if it is used. The pool itself allocates nothing.
    ///
    /// # Source
    ///
    /// The back and front modes are those of Stratum V2's `buffer_sv2`; the search between them is
    /// next fit (Knuth, *The Art of Computer Programming* 1, 2.5) over an address-ordered list.
    #[inline(always)]
    fn acquire(&mut self, capacity: usize) -> Result<Buf<Self::Lease>, AcquireError> {
        // Before anything changes: it is the user's code.
        let fallback_stats = self.fallback_stats();
        if let Some(carved) = self.carve(capacity) {
            return Ok(self.hand_out(carved, capacity, capacity, fallback_stats));
        }
        let carved = self.carve_slow(capacity);
        if carved.is_somewhere() {
            Ok(self.hand_out(carved, capacity, capacity, fallback_stats))
        } else {
            // Taken apart and put together, so that what comes back in memory does not force the
            // other case there too. That it is empty is said once more, where the compiler can see
            // it.
            let mut buf = self.acquire_slow(capacity)?;
            buf.clear();
            Ok(buf)
        }
    }

    #[inline]
    fn acquire_most(&mut self, capacity: usize) -> Result<Buf<Self::Lease>, AcquireError> {
        let mut buf = self.acquire(capacity)?;
        self.take_gap(&mut buf);
        Ok(buf)
    }

    /// Makes room in `buf` for at least `additional` bytes after the filled ones.
    ///
    /// Cost: one comparison when there is room. The buffer grows in place into the gap after it;
    /// otherwise it moves.
    #[inline(always)]
    fn grow(&mut self, buf: &mut Buf<Self::Lease>, additional: usize) -> Result<(), AcquireError> {
        if additional <= buf.spare_capacity() { Ok(()) } else { self.make_room(buf, additional, false) }
    }

    #[inline(always)]
    fn grow_most(&mut self, buf: &mut Buf<Self::Lease>, additional: usize) -> Result<(), AcquireError> {
        if additional <= buf.spare_capacity() { Ok(()) } else { self.make_room(buf, additional, true) }
    }

    #[inline]
    fn shrink(&mut self, buf: &mut Buf<Self::Lease>) {
        self.give_back(buf);
    }

    fn max_capacity(&self) -> usize {
        self.capacity.max(self.fallback.max_capacity())
    }

    /// Returns a snapshot of the pool's counters and memory.
    ///
    /// Cost: a visit of every slot.
    fn stats(&self) -> PoolStats {
        let stats = self.counters.snapshot(self.table.released(), &self.fallback.stats(), self.capacity);
        if cfg!(feature = "stats") {
            return stats;
        }
        let mut known = stats;
        known.in_use = self.slots() - self.table.free_slots();
        known
    }
}

impl<F: BufferPool> Drop for SlotPool<F> {
    fn drop(&mut self) {
        drop(self.table.leave());
    }
}

/// Shows the slots of the table: `#` taken, `-` free.
impl<F: BufferPool> fmt::Debug for SlotPool<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        struct Slots<'a>(&'a Table);
        impl fmt::Debug for Slots<'_> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.all().try_for_each(|slot| f.write_str(if self.0.is_taken(slot) { "#" } else { "-" }))
            }
        }
        f.debug_struct("SlotPool")
            .field("mode", &self.mode())
            .field("slots", &Slots(&self.table))
            .field("capacity", &self.capacity)
            .finish_non_exhaustive()
    }
}
