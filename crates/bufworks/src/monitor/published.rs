//! The numbers of a pool that its thread has to itself, where a monitor finds them.

use alloc::sync::Arc;
use core::fmt;
use std::sync::{Mutex, PoisonError};

use bufcore::PoolStats;
use bufkeeper::Trim;

/// A slot for the numbers of a pool that one thread owns, as
/// [`Monitor::publish`](super::Monitor::publish) returns it.
///
/// Dropping it counts as dropping the pool.
///
/// ```
/// # #[cfg(feature = "slot")] {
/// use bufworks::monitor::Monitor;
/// use bufworks::slot::SlotPool;
///
/// let monitor = Monitor::new(); // for the thread that answers the scrapes
///
/// let mut pool = SlotPool::new(64 * 1024, 8)?; // of this thread alone
/// let published = monitor.publish("frames");
/// for _event in 0..3 {
///     drop(pool.acquire(1500)?);
///     published.set(pool.stats()); // in the tick of an event loop, rather than at each event
/// }
/// assert_eq!(monitor.read()[0].stats, pool.stats());
/// drop(published);
/// assert!(monitor.read().is_empty());
/// # }
/// # Ok::<(), bufworks::Error>(())
/// ```
pub struct Published {
    shared: Arc<Shared>,
}

/// The numbers. Nothing is allocated, freed or called while they are locked.
pub(super) struct Shared(Mutex<PoolStats>);

impl Published {
    pub(super) fn new() -> Self {
        Self { shared: Arc::new(Shared(Mutex::new(PoolStats::default()))) }
    }

    pub(super) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// Sets the numbers, which are valid until the next call.
    ///
    /// Cost: a lock that is held only for a copy.
    pub fn set(&self, stats: PoolStats) {
        *self.shared.0.lock().unwrap_or_else(PoisonError::into_inner) = stats;
    }
}

impl Shared {
    fn get(&self) -> PoolStats {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Its idle memory is out of reach from here.
impl Trim for &Shared {
    fn trim(&mut self) {}

    fn stats(&self) -> Option<PoolStats> {
        Some(self.get())
    }
}

impl fmt::Debug for Published {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Published").field(&self.shared.get()).finish()
    }
}
