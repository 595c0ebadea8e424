//! The trait of a pool with idle memory.

use core::task::Waker;
use core::time::Duration;
// Programs' own: also in models, which have locks of their own.
#[cfg(feature = "std")]
use std::sync::{Mutex, TryLockError};

use bufcore::PoolStats;

/// A pool that keeps idle memory, and can free it.
///
/// A keeper (`bufkeeper`) calls these methods periodically, on its own thread:
///
/// - A shared pool implements the trait for its handle. A strategy does so with
///   `bufkeeper::trimmed_pool`.
/// - A pool for one thread at a time is watched in an `Arc<Mutex<_>>`. The keeper does not wait for
///   the lock. While another thread holds it, the keeper skips the pool.
/// - A pool with internal locks implements the trait for a reference to it, and is watched in an
///   `Arc`.
///
/// ```
/// use std::time::{Duration, Instant};
///
/// use bufcore::PoolStats;
/// use bufkit::Trim;
///
/// /// A program's own free list: vectors, each with the time at which it was released.
/// #[derive(Default)]
/// struct Vectors(Vec<(Instant, Vec<u8>)>);
///
/// impl Trim for Vectors {
///     fn trim(&mut self) {
///         self.0.clear();
///     }
///
///     fn stats(&self) -> Option<PoolStats> {
///         let mut stats = PoolStats::default();
///         stats.idle_bytes = self.0.iter().map(|(_, vector)| vector.capacity()).sum();
///         stats.reserved_bytes = stats.idle_bytes; // it does not know what is in use
///         Some(stats)
///     }
/// }
///
/// let mut vectors = Vectors(vec![(Instant::now(), Vec::with_capacity(1500))]);
/// assert!(vectors.stats().is_some_and(|stats| stats.idle_bytes >= 1500));
/// vectors.trim_idle(Duration::from_secs(1)); // all, unless it is overridden
/// assert!(vectors.stats().is_some_and(|stats| stats.idle_bytes == 0));
/// ```
pub trait Trim {
    /// Frees the memory without live buffers.
    fn trim(&mut self);

    /// Frees the memory that was idle for `age`. A pool that does not track ages frees all idle
    /// memory, which is the default.
    ///
    /// A pool without time stamps compares its state with the state at the call before. It then
    /// frees memory at the second call, and a call earlier than `age` after the last one may do
    /// nothing.
    fn trim_idle(&mut self, age: Duration) {
        let _ = age;
        self.trim();
    }

    /// Returns the statistics of the pool: a keeper reads the reserved and idle bytes, programs
    /// show or export all of it. It returns `None` while another thread holds the pool.
    ///
    /// ```
    /// use bufkit::Trim;
    ///
    /// fn print(pool: &dyn Trim) {
    ///     if let Some(stats) = pool.stats() {
    ///         println!("{} bytes, of which {} are idle", stats.reserved_bytes, stats.idle_bytes);
    ///     }
    /// }
    /// ```
    fn stats(&self) -> Option<PoolStats>;

    /// Returns a number that changes when the pool is used, if the pool counts its uses cheaply.
    ///
    /// A keeper visits a pool rarely while neither this number nor the bytes change. A pool that
    /// counts no uses returns 0, the default.
    fn uses(&self) -> usize {
        0
    }

    /// Keeps a clone of `waker`, and wakes it once when the pool next allocates memory. It returns
    /// whether the pool does that; the default is that it does not.
    ///
    /// A keeper calls it before a long sleep, and then checks the bytes once more. A pool that
    /// allocates memory therefore either wakes the waker, or shows the new memory to that check.
    /// `GrowthSignal` implements it. For a pool in a mutex, the thread that holds the lock wakes
    /// the waker.
    fn wake_when_grown(&self, waker: &Waker) -> bool {
        let _ = waker;
        false
    }

    /// Returns how long the first waiting request of the pool has been waiting, or `None` if no
    /// request waits. The default is `None`.
    fn stalled(&self) -> Option<Duration> {
        None
    }
}

/// No method here waits for the lock. While another thread holds it, nothing is trimmed or
/// registered, and there are no statistics. A pool whose lock is poisoned is trimmed like any
/// other.
#[cfg(feature = "std")]
impl<P: Trim> Trim for &Mutex<P> {
    fn trim(&mut self) {
        at_hand(self, (), P::trim);
    }

    fn trim_idle(&mut self, age: Duration) {
        at_hand(self, (), |pool| pool.trim_idle(age));
    }

    fn stats(&self) -> Option<PoolStats> {
        at_hand(self, None, |pool| pool.stats())
    }

    fn uses(&self) -> usize {
        at_hand(self, 0, |pool| pool.uses())
    }

    fn wake_when_grown(&self, waker: &Waker) -> bool {
        at_hand(self, false, |pool| pool.wake_when_grown(waker))
    }

    fn stalled(&self) -> Option<Duration> {
        at_hand(self, None, |pool| pool.stalled())
    }
}

/// Returns what `look` says of the pool, or `busy` while another thread has it.
#[cfg(feature = "std")]
fn at_hand<P, R>(pool: &Mutex<P>, busy: R, look: impl FnOnce(&mut P) -> R) -> R {
    match pool.try_lock() {
        Ok(mut pool) => look(&mut pool),
        Err(TryLockError::Poisoned(poisoned)) => look(&mut poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => busy,
    }
}

/// It keeps no idle memory.
#[cfg(feature = "alloc")]
impl Trim for bufcore::HeapPool {
    fn trim(&mut self) {}

    fn stats(&self) -> Option<PoolStats> {
        Some(Self::stats(self))
    }
}
