//! Calls the fallback, which is the user's code, and takes what comes from it.
//!
//! # Invariants
//!
//! - E1: whenever a function of the fallback is called, and whenever a buffer of its is dropped,
//!   the pool is whole. Then P1 to P4 of `pool` hold, and every live slot has a buffer. A panic
//!   that comes out of the call leaves all as it was.
//! - E2: [`SlotPool::ask_fallback`] is the one place where a buffer comes in. Those that it returns
//!   are empty and have room for what was asked.
//!
//! [`BufferPool`] is a safe trait: an implementor may return anything at all that safe code can
//! make.

use bufcore::author::Served;
use bufcore::{AcquireError, Buf, BufferPool, PoolStats};

use crate::lease::SlotLease;
use crate::pool::SlotPool;

impl<F: BufferPool> SlotPool<F> {
    /// Returns what is out of the fallback, for the statistics. The caller has changed nothing yet
    /// (E1).
    #[inline(always)]
    pub(crate) fn fallback_stats(&self) -> PoolStats {
        if cfg!(feature = "stats") { self.fallback.stats() } else { PoolStats::default() }
    }

    /// Serves a request that the bounded search found no room for, or one of no bytes.
    #[cold]
    #[inline(never)]
    #[cfg_attr(feature = "track", track_caller)]
    pub(crate) fn acquire_slow(&mut self, bytes: usize) -> Result<Buf<SlotLease<F::Lease>>, AcquireError> {
        if bytes == 0 {
            // SAFETY: no bytes are claimed.
            let buf = unsafe { Buf::from_raw_parts(self.table.memory(), 0, SlotLease::nowhere()) };
            return Ok(self.tracker.attach(buf));
        }
        let error = match self.ask_fallback(bytes) {
            Ok(mut buf) => {
                buf.shrink_to(bytes);
                let fallback_stats = self.fallback_stats();
                return Ok(self.hand_out_fallback(buf, fallback_stats));
            }
            Err(error) => error,
        };
        let fallback_stats = self.fallback_stats();
        match self.search_all(bytes) {
            Ok(carved) => Ok(self.hand_out(carved, bytes, bytes, fallback_stats)),
            Err(largest) => Err(self.refusal(error, bytes, 0, largest)),
        }
    }

    /// Hands out a buffer of the fallback's. `fallback_stats` is what is out of the fallback, with
    /// this one.
    #[cfg_attr(feature = "track", track_caller)]
    pub(crate) fn hand_out_fallback(
        &mut self,
        buf: Buf<F::Lease>,
        fallback_stats: PoolStats,
    ) -> Buf<SlotLease<F::Lease>> {
        self.counters.acquired(Served::Fallback, buf.capacity(), self.table.released(), || fallback_stats);
        // SAFETY: the new lease holds the old one, and drops it when it is dropped.
        let buf = unsafe { buf.map_lease(SlotLease::fallback) };
        self.tracker.attach(buf)
    }

    /// Asks the fallback for `bytes` bytes, and looks at what it returns (E2): what is not empty is
    /// cleared, and what is too short is given back and counts as a refusal.
    ///
    /// # Errors
    ///
    /// What the fallback said, with its own numbers. Nothing is counted: the caller may ask for
    /// less.
    #[cfg_attr(feature = "track", track_caller)]
    pub(crate) fn ask_fallback(&mut self, bytes: usize) -> Result<Buf<F::Lease>, AcquireError> {
        self.fell_back = true;
        let mut buf = self.fallback.acquire(bytes)?;
        buf.clear();
        if buf.capacity() >= bytes {
            return Ok(buf);
        }
        drop(buf);
        Err(AcquireError::Exhausted { requested: bytes, available: 0 })
    }

    /// Translates the fallback's error for a request of `bytes` bytes into this pool's own terms.
    /// A buffer that grows has `held` of them already: the numbers are those of the request without
    /// these. The numbers of `error` may be nonsense; `largest` is what the region could give.
    #[cold]
    pub(crate) fn refusal(
        &mut self,
        error: AcquireError,
        bytes: usize,
        held: usize,
        largest: usize,
    ) -> AcquireError {
        let requested = bytes - held;
        // Nobody can have what was just refused.
        let less = |number: usize| if number < bytes { number } else { 0 };
        let error = match error {
            AcquireError::TooLarge { limit, .. } if bytes > self.capacity => AcquireError::TooLarge {
                requested,
                limit: self.capacity.max(less(limit)).saturating_sub(held),
            },
            AcquireError::TooLarge { .. } => {
                AcquireError::Exhausted { requested, available: largest.saturating_sub(held) }
            }
            AcquireError::Exhausted { available, .. } => AcquireError::Exhausted {
                requested,
                available: largest.max(less(available)).saturating_sub(held),
            },
            AcquireError::OutOfMemory { .. } => AcquireError::OutOfMemory { requested },
            error => error,
        };
        if matches!(error, AcquireError::Exhausted { .. }) {
            self.counters.exhausted();
        }
        error
    }
}
