//! The keeper: its settings, its pools, and its looks.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::task::Waker;
use core::time::Duration;
use std::time::Instant;

use super::calls::{Calls, KeeperHandle};
use super::trim::Watch;
use super::watched::{PAUSES, Pass, Watched, later};
use crate::PressureSource;

/// The age of idle memory at which it goes, unless set. It goes after one to two of them, and so
/// within mimalloc 3's `purge_delay`, a second.
const AGE: Duration = Duration::from_millis(400);
/// The smallest that can be set. What a look costs would matter below.
const SMALLEST_AGE: Duration = Duration::from_millis(10);
/// The most that can be set.
const LARGEST_AGE: Duration = Duration::from_secs(24 * 60 * 60);
/// The pause between looks at an empty pool, unless set.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// Returns the idle memory of pools to the system automatically, while the program runs.
///
/// One line starts it, where `pool` is a pool of a strategy with idle memory:
///
/// ```
/// use bufkeeper::Keeper;
/// # struct Pool;
/// # impl bufkeeper::Trim for &Pool {
/// #     fn trim(&mut self) {}
/// #     fn stats(&self) -> Option<bufcore::PoolStats> {
/// #         None
/// #     }
/// # }
/// # let pool = std::sync::Arc::new(Pool);
///
/// let _keeper = Keeper::new().watch(&pool).spawn()?; // a thread, until this is dropped
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// It runs in one of three forms:
///
/// - [`spawn`](Self::spawn) starts a thread of its own.
/// - [`run`](Self::run) is a task for any executor: `tokio::spawn(keeper.run(tokio::time::sleep))`.
/// - [`tick`](Self::tick) makes one pass, for a program with an event loop.
///
/// A keeper does not keep a pool alive. It removes pools that were dropped.
///
/// # Rules
///
/// - Each [`purge_delay`](Self::purge_delay) it visits each pool and calls
///   [`Trim::trim_idle`](crate::Trim). Memory that was not used between two passes is freed. Idle
///   memory is therefore freed after one to two purge delays; memory that is reused sooner is kept.
/// - Under memory [pressure](crate::Pressure) less is kept. At
///   [`Medium`](crate::PressureLevel::Medium) the purge delay is halved. At
///   [`High`](crate::PressureLevel::High) each pass frees all idle memory.
/// - If nothing changed since the last pass, the pause until the next is doubled, up to eight purge
///   delays. A pool that allocates memory wakes the keeper from such a pause, if it supports that.
///   An empty pool that supports it is not visited for up to [`max_sleep`](Self::max_sleep).
///
/// In an idle program whose pools are empty and wake it, the keeper therefore soon sleeps for
/// minutes. A pool with memory, or one that does not wake the keeper, is visited every eight purge
/// delays, and the pressure is read then.
///
/// Cost: nothing on the fast paths of the pools. A pass costs [`trim_idle`](crate::Trim::trim_idle)
/// of the pool. Reading the pressure takes about a dozen system calls for each pass.
///
/// # Source
///
/// - Passes instead of time stamps, half the delay at medium pressure, all memory at high pressure:
///   `SharedArrayPool` of .NET, which trims after each garbage collection.
/// - The default delay: mimalloc frees memory that was unused for 10 ms in version 2, and for 1 s
///   in version 3 (`purge_delay`).
pub struct Keeper {
    purge_delay: Duration,
    max_sleep: Duration,
    source: PressureSource,
    watched: Vec<Watched>,
    pub(super) calls: Arc<Calls>,
    waker: Waker,
}

impl Default for Keeper {
    #[inline]
    fn default() -> Self {
        Self::new()
    }
}

impl Keeper {
    /// Makes a keeper without pools, with the default settings and the pressure that the
    /// [system](PressureSource::system) reports.
    #[inline]
    #[must_use]
    pub fn new() -> Self {
        let calls = Calls::new();
        Self {
            purge_delay: AGE,
            max_sleep: LONGEST_PAUSE,
            source: PressureSource::system(),
            watched: Vec::new(),
            waker: Waker::from(Arc::clone(&calls)),
            calls,
        }
    }

    /// Sets how long memory must be unused before it is freed: 400 ms by default.
    ///
    /// The keeper makes one pass in that time, so memory is freed after one to two times as long.
    /// The value is limited to between 10 ms and a day.
    ///
    /// ```
    /// use std::time::Duration;
    /// use bufkeeper::Keeper;
    ///
    /// // Buffers of a burst are kept for the next one, which comes in less than 10 s.
    /// let keeper = Keeper::new().purge_delay(Duration::from_secs(10));
    /// # drop(keeper);
    /// ```
    #[inline]
    #[must_use]
    pub fn purge_delay(mut self, purge_delay: Duration) -> Self {
        self.purge_delay = purge_delay.clamp(SMALLEST_AGE, LARGEST_AGE);
        self
    }

    /// Sets the longest pause between two passes over an empty pool that wakes the keeper: a minute
    /// by default. It is at most a day, and not less than the purge delay.
    ///
    /// ```
    /// use std::time::Duration;
    /// use bufkeeper::Keeper;
    ///
    /// let keeper = Keeper::new().max_sleep(Duration::from_secs(600)); // on a telephone
    /// # drop(keeper);
    /// ```
    #[inline]
    #[must_use]
    pub fn max_sleep(mut self, pause: Duration) -> Self {
        self.max_sleep = pause.min(LARGEST_AGE);
        self
    }

    /// Sets the source of the memory pressure.
    ///
    /// ```
    /// use bufkeeper::{Keeper, PressureSource};
    ///
    /// let keeper = Keeper::new().pressure(PressureSource::none()); // ages alone decide
    /// # drop(keeper);
    /// ```
    #[inline]
    #[must_use]
    pub fn pressure(mut self, source: PressureSource) -> Self {
        self.source = source;
        self
    }

    /// Adds a pool to watch. The keeper does not keep the pool alive. A pool that is already
    /// watched is not added again, nor is a clone of such a pool.
    ///
    /// Cost: a comparison with each watched pool.
    #[must_use]
    pub fn watch<P: Watch + ?Sized>(mut self, pool: &P) -> Self {
        let pool = Watched::new(pool.downgrade());
        if !pool.is_among(&self.watched) {
            self.watched.push(pool);
        }
        self
    }

    /// Returns a handle through which other threads add pools later.
    #[inline]
    #[must_use]
    pub fn handle(&self) -> KeeperHandle {
        KeeperHandle { calls: Arc::clone(&self.calls) }
    }

    /// Returns the number of watched pools. Pools that were dropped count until the next pass over
    /// them.
    #[inline]
    #[must_use]
    pub fn watched(&self) -> usize {
        self.watched.len()
    }

    /// Trims the pools that are due, and returns when to call it again. An earlier call does
    /// nothing, except for new pools.
    ///
    /// Nothing wakes a program's own loop. Pools are therefore checked at least every eight purge
    /// delays, even while there are none: one may be added through a [handle](Self::handle).
    ///
    /// A pool whose code panics during a pass is not visited again. The panic does not propagate to
    /// the caller.
    ///
    /// ```
    /// use std::time::{Duration, Instant};
    /// use bufkeeper::Keeper;
    ///
    /// let mut keeper = Keeper::new();
    /// let mut trim_at = Instant::now();
    /// for _event in 0..3 {
    ///     let now = Instant::now();
    ///     if now >= trim_at {
    ///         trim_at = keeper.tick(now);
    ///     }
    ///     let timeout = trim_at - now; // of `poll`, `epoll_wait`, ...
    ///     # let _ = timeout;
    /// }
    /// ```
    #[inline]
    pub fn tick(&mut self, now: Instant) -> Instant {
        self.pass(now, false)
    }

    /// Looks at the pools as a keeper that calls wake, or as one that they do not wake.
    #[inline]
    pub(super) fn pass(&mut self, now: Instant, wakes: bool) -> Instant {
        let is_called = self.calls.take_call();
        self.calls.take_new(&mut self.watched);
        if is_called {
            self.watched.iter_mut().for_each(|watched| watched.hurry(self.purge_delay));
        }
        if self.watched.iter().any(|watched| watched.next(now) <= now) {
            self.look_at_due(now, wakes);
        }
        let max_sleep = self.max_sleep.max(self.purge_delay);
        // A call that does not wake it is answered as late as a pool is looked at that cannot wake.
        let pause = if wakes { max_sleep } else { max_sleep.min(self.purge_delay.saturating_mul(PAUSES)) };
        let last = later(now, pause);
        self.watched.iter().map(|watched| watched.next(now)).fold(last, Instant::min)
    }

    #[inline]
    fn look_at_due(&mut self, now: Instant, wakes: bool) {
        let look = Pass {
            now,
            level: self.source.read().level(),
            purge_delay: self.purge_delay,
            max_sleep: self.max_sleep,
            waker: wakes.then_some(&self.waker),
        };
        Watched::forget_unless(&mut self.watched, |watched| {
            self.calls.is_stopped() || watched.next(now) > now || watched.pass(&look)
        });
    }
}

impl Drop for Keeper {
    #[inline]
    fn drop(&mut self) {
        self.calls.end();
        // Users' code, which may panic, perhaps while this thread unwinds.
        Watched::forget_unless(&mut self.watched, |_| false);
    }
}

impl fmt::Debug for Keeper {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keeper")
            .field("age", &self.purge_delay)
            .field("max_sleep", &self.max_sleep)
            .field("watched", &self.watched.len())
            .finish_non_exhaustive()
    }
}
