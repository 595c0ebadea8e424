//! The trait of a pool with idle memory.

use core::task::Waker;
use core::time::Duration;
// Programs' own: also in models, which have locks of their own.
#[cfg(feature = "std")]
use std::sync::{Mutex, TryLockError};

use bufcore::PoolStats;

/// A pool that keeps memory which holds no buffers, and can give it back.
///
/// A keeper (`bufkeeper`) calls these methods from time to time, on its own thread:
///
/// - A pool that threads share implements the trait for its handle. A strategy does so with
///   `bufkeeper::trimmed_pool`.
/// - A pool that one thread at a time uses is watched in an `Arc<Mutex<_>>`. The keeper does not
///   wait for the lock. While another thread has it, the keeper leaves the pool alone.
/// - A pool that has its locks inside implements the trait for a reference to it, and is watched in
///   an `Arc`.
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
    /// Frees the memory that holds no buffers.
    fn trim(&mut self);

    /// Frees the memory that was not used for `age`. A pool that does not know what that is frees
    /// all that holds no buffers, as the method does where it is not overridden.
    ///
    /// A pool without time stamps compares what it sees with what it saw in the call before. Then
    /// memory goes at the second call, and a call that comes sooner than `age` after the last one
    /// may do nothing.
    fn trim_idle(&mut self, age: Duration) {
        let _ = age;
        self.trim();
    }

    /// Returns what the pool says of itself: a keeper reads the reserved and the idle bytes,
    /// programs show or export all of it. It returns `None` while the pool cannot tell, because
    /// another thread has it.
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
    /// A keeper looks rarely at a pool in which nothing changes: neither this number nor the bytes.
    /// A pool that counts no uses returns 0, as the method does where it is not overridden.
    fn uses(&self) -> usize {
        0
    }

    /// Keeps a clone of `waker`, and wakes it once when the pool next takes memory. It returns
    /// whether the pool does that; by default it does not.
    ///
    /// A keeper asks for it before it sleeps for long, and then looks at the bytes once more. So a
    /// pool that takes memory either wakes the waker, or shows that look what it has taken.
    /// `GrowthSignal` implements it. The waker of a pool in a mutex is
    /// woken by whoever has the lock.
    fn wake_when_grown(&self, waker: &Waker) -> bool {
        let _ = waker;
        false
    }

    /// Returns how long the first request that waits for memory of the pool has been waiting, or
    /// `None` while no request waits. By default none does.
    fn stalled(&self) -> Option<Duration> {
        None
    }
}

/// Nothing here waits for the lock. While another thread has it, nothing is trimmed or kept, and
/// there are no numbers. A pool whose lock is poisoned is trimmed like any other.
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

/// It keeps no memory that holds no buffers.
#[cfg(feature = "alloc")]
impl Trim for bufcore::HeapPool {
    fn trim(&mut self) {}

    fn stats(&self) -> Option<PoolStats> {
        Some(Self::stats(self))
    }
}
