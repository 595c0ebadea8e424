//! Reports the state of a ring, and gives its region back.

use bufcore::{PoolStats, Region};

use crate::RingPool;

impl RingPool {
    /// Returns the largest buffer that an idle ring can serve, in bytes.
    ///
    /// ```
    /// use bufring::{Builder, Region};
    ///
    /// # fn memory() -> &'static mut [u8] { Box::leak(vec![0; 4096].into()) }
    /// // Without a capacity it is what the bookkeeping leaves of the region.
    /// let mut ring = Builder::new().build_in(Region::from_static(memory()))?;
    /// assert!((3500..4096).contains(&ring.capacity()));
    /// assert!(ring.acquire(ring.capacity()).is_ok());
    /// assert!(ring.acquire(ring.capacity() + 1).is_err());
    /// # Ok::<(), bufring::Error>(())
    /// ```
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Restarts the high-water marks of the statistics from the current use. The other counters are
    /// never reset: [`PoolStats::since`] returns their difference.
    ///
    /// Without the `stats` feature it does nothing.
    ///
    /// ```
    /// # #[cfg(all(feature = "alloc", feature = "stats"))] {
    /// use bufring::RingPool;
    ///
    /// let mut ring = RingPool::new(64 << 10)?;
    /// drop([ring.acquire(100)?, ring.acquire(100)?]);
    /// assert_eq!(ring.stats().high_water, 2);
    /// ring.reset_high_water();
    /// let held = ring.acquire(100)?;
    /// assert_eq!(ring.stats().high_water, 1); // since the reset
    /// # drop(held);
    /// # }
    /// # Ok::<(), bufring::Error>(())
    /// ```
    pub fn reset_high_water(&mut self) {
        self.counters.reset_high_water(self.ring.released(), &PoolStats::default());
    }

    /// Returns whether the region has no live buffers, at this moment.
    ///
    /// Cost: a visit of every block.
    ///
    /// ```
    /// # #[cfg(feature = "alloc")] {
    /// use bufring::RingPool;
    ///
    /// let mut ring = RingPool::new(4096)?;
    /// let values = ring.acquire_vec::<u64>(8)?;
    /// assert!(!ring.is_idle());
    /// drop(values);
    /// assert!(ring.is_idle());
    /// # }
    /// # Ok::<(), bufring::Error>(())
    /// ```
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.ring.all().all(|at| self.ring.is_free(at))
    }

    /// Lists the buffers in use, longest first: where and when each was acquired.
    ///
    /// ```
    /// use bufring::RingPool;
    ///
    /// let mut ring = RingPool::new(4096)?;
    /// let (kept, done) = (ring.acquire(1000)?, ring.acquire(100)?);
    /// drop(done);
    /// for buffer in ring.outstanding() {
    ///     println!("{buffer}"); // the line of `acquire`, and for how long
    /// }
    /// assert_eq!(ring.outstanding().len(), 1);
    /// # drop(kept);
    /// # Ok::<(), bufring::Error>(())
    /// ```
    #[cfg(feature = "track")]
    #[must_use]
    pub fn outstanding(&self) -> alloc::vec::Vec<bufcore::Outstanding> {
        self.tracker.outstanding()
    }

    /// Ends the ring and returns its region, if it has no live buffers; a region of static memory
    /// can be used again.
    ///
    /// Cost: zeroing the bookkeeping.
    ///
    /// # Errors
    ///
    /// Returns the ring unchanged while buffers are in use.
    ///
    /// ```
    /// use bufring::{Builder, Region};
    ///
    /// # fn memory() -> &'static mut [u8] { Box::leak(vec![0; 4096].into()) }
    /// let mut ring = Builder::new().build_in(Region::from_static(memory()))?;
    /// let buf = ring.acquire(100)?;
    /// let ring = ring.into_region().unwrap_err(); // a buffer is in use
    /// drop(buf);
    /// let region = ring.into_region().expect("all buffers were dropped");
    /// assert!(Builder::new().alignment(64).build_in(region).is_ok()); // another ring, same memory
    /// # Ok::<(), bufring::Error>(())
    /// ```
    #[allow(clippy::result_large_err, reason = "the error is the allocator, which the caller just owned")]
    pub fn into_region(mut self) -> Result<Region, Self> {
        if !self.is_idle() {
            return Err(self);
        }
        self.ring.leave_clean().ok_or(self)
    }
}
