//! Reports the state of a pool, and gives its region back.

use bufcore::{Buf, BufferPool, Region};

use crate::Mode;
use crate::lease::SlotLease;
use crate::pool::SlotPool;
use crate::table::STEP;

impl<F: BufferPool> SlotPool<F> {
    /// Returns how the last request was served, or where the next one is tried first.
    ///
    /// Cost: a check of the free slots after the newest buffer.
    ///
    /// ```
    /// # #[cfg(feature = "alloc")] {
    /// use bufslot::{Mode, SlotPool};
    ///
    /// let mut pool = SlotPool::builder().capacity(1000).slots(8).stagger(false).build()?;
    /// let (old, held) = (pool.acquire(600)?, pool.acquire(300)?);
    /// assert_eq!(pool.mode(), Mode::Back);
    /// drop(old);
    /// let front = pool.acquire(500)?; // does not fit behind `held`, but where `old` was
    /// assert_eq!(pool.mode(), Mode::Front);
    /// # drop((held, front));
    /// # }
    /// # Ok::<(), bufslot::Error>(())
    /// ```
    #[must_use]
    pub fn mode(&self) -> Mode {
        if self.fell_back {
            return Mode::Fallback;
        }
        if self.is_tail_last() { Mode::Back } else { Mode::Front }
    }

    /// Returns the number of slots.
    #[must_use]
    pub fn slots(&self) -> usize {
        (self.table.sentinel() / STEP) as usize
    }

    /// Returns the usable bytes of the region, including gaps between buffers.
    ///
    /// ```
    /// use bufslot::Builder;
    /// use bufslot::bufcore::{Region, NoFallback};
    ///
    /// # fn memory() -> &'static mut [u8] { Box::leak(vec![0; 4096].into()) }
    /// // Without a capacity it is what the bookkeeping leaves of the region.
    /// let region = Region::from_static(memory());
    /// let pool = Builder::new().slots(4).build_in(region, NoFallback)?;
    /// assert!((3500..4096).contains(&pool.capacity()));
    /// # Ok::<(), bufslot::Error>(())
    /// ```
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Returns whether a buffer uses slot `index`, at this moment.
    ///
    /// # Panics
    ///
    /// Panics if there is no such slot.
    ///
    /// ```
    /// # #[cfg(feature = "alloc")] {
    /// use bufslot::SlotPool;
    ///
    /// let mut pool = SlotPool::new(4096, 8)?;
    /// let buf = pool.acquire(100)?;
    /// let slot = pool.slot_of(&buf).expect("from the region");
    /// assert!(pool.is_taken(slot));
    /// drop(buf);
    /// assert!(!pool.is_taken(slot));
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn is_taken(&self, index: usize) -> bool {
        assert!(index < self.slots(), "slot {index} of {}", self.slots());
        self.table.is_taken(index as u32 * STEP)
    }

    /// Restarts the high-water marks of the statistics from the current use. The other counters are
    /// never reset: [`PoolStats::since`](bufcore::PoolStats::since) returns their difference.
    ///
    /// Without the `stats` feature it does nothing.
    ///
    /// ```
    /// # #[cfg(all(feature = "alloc", feature = "stats"))] {
    /// use bufslot::SlotPool;
    ///
    /// let mut pool = SlotPool::new(64 << 10, 8)?;
    /// drop([pool.acquire(100)?, pool.acquire(100)?, pool.acquire(100)?]);
    /// assert_eq!(pool.stats().high_water, 3);
    /// pool.reset_high_water(); // say, at the start of each minute
    /// assert_eq!((pool.stats().high_water, pool.stats().acquired), (0, 3));
    /// # }
    /// # Ok::<(), bufslot::Error>(())
    /// ```
    pub fn reset_high_water(&mut self) {
        // First: it is the user's code.
        let fallback_stats = self.fallback.stats();
        self.counters.reset_high_water(self.table.released(), &fallback_stats);
    }

    /// Returns whether the region has no live buffers, at this moment.
    ///
    /// ```
    /// # #[cfg(feature = "alloc")] {
    /// use bufslot::SlotPool;
    ///
    /// let mut pool = SlotPool::new(4096, 8)?;
    /// let view = pool.acquire_zeroed(100)?.freeze();
    /// let copy = view.clone();
    /// drop(view);
    /// assert!(!pool.is_idle()); // the last view releases the slot
    /// drop(copy);
    /// assert!(pool.is_idle());
    /// # }
    /// # Ok::<(), bufslot::Error>(())
    /// ```
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.table.free_slots() == self.slots()
    }

    /// Returns the slot of `buf` in this pool; `None` if it is not from this pool's region, or has
    /// no bytes.
    ///
    /// ```
    /// # #[cfg(feature = "alloc")] {
    /// use bufslot::SlotPool;
    ///
    /// let (mut pool, mut other) = (SlotPool::new(4096, 8)?, SlotPool::new(4096, 8)?);
    /// let (here, elsewhere) = (pool.acquire(100)?, other.acquire(100)?);
    /// let large = pool.acquire(5000)?;
    /// assert_eq!(pool.slot_of(&here), Some(0));
    /// assert_eq!(pool.slot_of(&elsewhere), None);
    /// assert_eq!(pool.slot_of(&large), None); // from the heap
    /// # }
    /// # Ok::<(), bufslot::Error>(())
    /// ```
    #[must_use]
    pub fn slot_of(&self, buf: &Buf<SlotLease<F::Lease>>) -> Option<usize> {
        buf.lease().slot().and_then(|handle| self.table.index_of(handle))
    }

    /// Returns the pool that serves the requests that do not fit the region.
    ///
    /// ```
    /// # #[cfg(feature = "alloc")] {
    /// use bufslot::SlotPool;
    ///
    /// // A second pool, of fewer and larger buffers, behind the first.
    /// let large = SlotPool::builder().capacity(1 << 20).slots(4).build()?;
    /// let mut pool = SlotPool::builder().capacity(16 << 10).slots(16).build_with(large)?;
    /// let body = pool.acquire(100 << 10)?;
    /// assert!(body.lease().is_fallback() && !pool.fallback().is_idle());
    /// # }
    /// # Ok::<(), bufslot::Error>(())
    /// ```
    #[must_use]
    pub fn fallback(&self) -> &F {
        &self.fallback
    }

    /// Lists the buffers in use, longest first: where and when each was acquired.
    ///
    /// ```
    /// use bufslot::SlotPool;
    ///
    /// let mut pool = SlotPool::new(4096, 8)?;
    /// let leaked = pool.acquire(100)?;
    /// let outstanding = pool.outstanding();
    /// assert_eq!(outstanding.len(), 1);
    /// assert_eq!(outstanding[0].location.file(), file!()); // the line of `acquire`
    /// # drop(leaked);
    /// # Ok::<(), bufslot::Error>(())
    /// ```
    #[cfg(feature = "track")]
    #[must_use]
    pub fn outstanding(&self) -> alloc::vec::Vec<bufcore::Outstanding> {
        self.tracker.outstanding()
    }

    /// Ends the pool and returns its region, if it has no live buffers; a region of static memory
    /// can be used again.
    ///
    /// Cost: zeroing the bookkeeping.
    ///
    /// # Errors
    ///
    /// Returns the pool unchanged while buffers are in use.
    ///
    /// ```
    /// # #[cfg(feature = "alloc")] {
    /// use bufslot::SlotPool;
    ///
    /// let mut pool = SlotPool::new(4096, 8)?;
    /// let buf = pool.acquire(100)?;
    /// let pool = pool.into_region().unwrap_err(); // a buffer is in use
    /// drop(buf);
    /// assert!(pool.into_region().is_ok());
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[allow(clippy::result_large_err, reason = "the error is the pool, which the caller just owned")]
    pub fn into_region(mut self) -> Result<Region, Self> {
        if !self.is_idle() {
            return Err(self);
        }
        self.table.leave_clean().ok_or(self)
    }
}
