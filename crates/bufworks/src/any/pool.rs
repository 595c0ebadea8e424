//! The pool whose strategy was chosen at run time.

use core::cell::Cell;
use core::marker::PhantomData;
use core::task::Waker;
use core::time::Duration;

use bufcore::{AcquireError, Buf, BufferPool, Lease, PoolStats};
use bufkit::Trim;

use super::lease::AnyLease;
use super::variants::{Of, Pool};

/// A pool whose strategy was chosen at run time. Build it with an
/// [`AnyBuilder`](super::AnyBuilder).
///
/// Threads: it is `Send`, not `Sync`. One thread at a time acquires, through `&mut self`, whatever
/// the strategy; any thread releases. For other threads use [`share`](Self::share).
///
/// Cost: in addition to the strategy's, a match for each acquire and each release. A buffer grows
/// by moving, and `shrink` does not return the excess memory.
///
/// ```
/// use bufworks::any::AnyBuilder;
///
/// let mut pool = "heap".parse::<AnyBuilder>()?.build()?;
/// let mut buf = pool.acquire(1500)?;
/// buf.extend_from_slice(b"packet")?;
/// assert_eq!(&buf.freeze()[..], b"packet");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct AnyPool {
    pool: Pool,
    /// Not `Sync`, whichever strategies there are: so a feature that is turned on elsewhere takes
    /// nothing away.
    _unshared: PhantomData<Cell<()>>,
}

/// Calls `$method`, and wraps the lease of the buffer that it gives.
macro_rules! handed_out {
    ($self:ident.$method:ident($argument:expr)) => {
        each!(&mut $self.pool, Pool(pool), Of(of) => Ok(wrapped(pool.$method($argument)?, of)))
    };
}

#[inline(always)]
fn wrapped<L: Lease>(buf: Buf<L>, of: impl FnOnce(L) -> Of) -> Buf<AnyLease> {
    // SAFETY: the new lease holds the old one, and drops it when it is dropped.
    unsafe { buf.map_lease(|lease| AnyLease { of: of(lease) }) }
}

// First: documentation shows the methods in this order.
bufcore::pool_methods!(impl[] AnyPool => AnyLease);

impl AnyPool {
    pub(super) fn over(pool: Pool) -> Self {
        Self { pool, _unshared: PhantomData }
    }

    /// Returns the name of its strategy, as in [`AnyBuilder::NAMES`](super::AnyBuilder::NAMES).
    ///
    /// ```
    /// use bufworks::any::AnyBuilder;
    ///
    /// for &name in AnyBuilder::NAMES {
    ///     assert_eq!(AnyBuilder::named(name)?.build()?.strategy(), name);
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn strategy(&self) -> &'static str {
        self.pool.name()
    }

    /// Returns another handle to the same pool, for another thread.
    ///
    /// It returns `None` if the strategy serves one thread at a time: each thread then builds its
    /// own pool from the same [`AnyBuilder`](super::AnyBuilder).
    ///
    /// ```
    /// # #[cfg(feature = "shard")] {
    /// use bufworks::any::AnyBuilder;
    ///
    /// let pool = "shard".parse::<AnyBuilder>()?.build()?;
    /// let mut other = pool.share().expect("threads share this strategy");
    /// let worker = std::thread::spawn(move || other.acquire(100).map(|buf| buf.capacity()));
    /// assert_eq!(worker.join().unwrap()?, 100);
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn share(&self) -> Option<Self> {
        self.pool.share().map(Self::over)
    }

    /// Frees the pool's idle memory, as `trim` of the strategy does. The slot pool and the ring
    /// return pages of their region to the system, on Linux with the feature `mmap`.
    ///
    /// Cost: as the `trim` of the strategy.
    ///
    /// ```
    /// # #[cfg(feature = "shard")] {
    /// use bufworks::any::AnyBuilder;
    ///
    /// let mut pool = AnyBuilder::named("shard")?.build()?;
    /// drop(pool.acquire(1 << 20)?);
    /// assert!(pool.stats().reserved_bytes > 1 << 20);
    /// pool.trim();
    /// assert_eq!(pool.stats().reserved_bytes, 0);
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn trim(&mut self) {
        each!(&mut self.pool, Pool(pool) => Trim::trim(pool));
    }

    /// Frees memory that was idle for `age`, as `trim_idle` of the strategy does. The slot pool and
    /// the ring do not track ages, and [trim](Self::trim).
    ///
    /// A [`Keeper`](crate::Keeper) does so automatically. It watches a [shared](Self::share) pool,
    /// and any pool in an `Arc<Mutex<AnyPool>>`. Without one, a program calls it periodically, for
    /// example in the loop that owns the pool.
    ///
    /// ```
    /// # #[cfg(feature = "shard")] {
    /// use core::time::Duration;
    /// use bufworks::any::AnyBuilder;
    ///
    /// let mut pool = AnyBuilder::named("shard")?.build()?;
    /// drop(pool.acquire(1 << 20)?);
    /// pool.trim_idle(Duration::ZERO); // notes
    /// pool.trim_idle(Duration::ZERO); // not used since
    /// assert_eq!(pool.stats().reserved_bytes, 0);
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn trim_idle(&mut self, age: Duration) {
        each!(&mut self.pool, Pool(pool) => Trim::trim_idle(pool, age));
    }

    /// Restarts the high-water marks of the statistics from the current use. The other counters are
    /// never reset: [`PoolStats::since`] returns their difference.
    ///
    /// Without the `stats` feature it does nothing.
    ///
    /// ```
    /// use bufworks::any::AnyBuilder;
    ///
    /// let mut pool = AnyBuilder::named("heap")?.build()?;
    /// drop((pool.acquire(1500)?, pool.acquire(1500)?)); // a burst of two
    /// pool.reset_high_water();
    /// drop(pool.acquire(1500)?);
    /// # #[cfg(feature = "stats")]
    /// assert_eq!(pool.stats().high_water, 1); // the most since then
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn reset_high_water(&mut self) {
        each!(&mut self.pool, Pool(pool) => pool.reset_high_water());
    }

    /// Lists the buffers in use, longest first: where and when each was acquired.
    ///
    /// ```
    /// use bufworks::any::AnyBuilder;
    ///
    /// let mut pool = AnyBuilder::named("heap")?.build()?;
    /// let kept = pool.acquire(1500)?;
    /// for outstanding in pool.outstanding() {
    ///     println!("{outstanding}"); // the file and line of the `acquire`
    ///     assert_eq!(outstanding.capacity, 1500);
    /// }
    /// # drop(kept);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[cfg(feature = "track")]
    #[must_use]
    pub fn outstanding(&self) -> alloc::vec::Vec<bufcore::Outstanding> {
        each!(&self.pool, Pool(pool) => pool.outstanding())
    }
}

// As the pool of each strategy; what a feature turns on elsewhere takes nothing away.
bufcore::unwind_safe!(AnyPool);

impl Trim for AnyPool {
    fn trim(&mut self) {
        Self::trim(self);
    }

    fn trim_idle(&mut self, age: Duration) {
        Self::trim_idle(self, age);
    }

    fn stats(&self) -> Option<PoolStats> {
        Some(Self::stats(self))
    }

    fn uses(&self) -> usize {
        each!(&self.pool, Pool(pool) => Trim::uses(pool))
    }

    fn wake_when_grown(&self, waker: &Waker) -> bool {
        each!(&self.pool, Pool(pool) => Trim::wake_when_grown(pool, waker))
    }
}

#[cfg(feature = "std")]
impl bufkeeper::Watch for AnyPool {
    /// Returns a weak handle of the pool. A pool that serves one thread at a time cannot be watched
    /// this way, and counts as dropped. In an `Arc<Mutex<AnyPool>>` any pool can be watched.
    fn downgrade(&self) -> alloc::boxed::Box<dyn bufkeeper::WeakPool> {
        match self.pool.watched() {
            Some(pool) => pool.downgrade(),
            None => alloc::boxed::Box::new(Unwatched),
        }
    }
}

/// A pool that needs no keeper.
#[cfg(feature = "std")]
struct Unwatched;

#[cfg(feature = "std")]
impl bufkeeper::WeakPool for Unwatched {
    fn with(&self, _: &mut dyn FnMut(&mut dyn Trim)) -> bool {
        false
    }
}

impl BufferPool for AnyPool {
    type Lease = AnyLease;

    // Always: a buffer that comes back in memory is moved on in pieces of another size, for which
    // the processor waits.
    #[inline(always)]
    #[cfg_attr(feature = "track", track_caller)]
    fn acquire(&mut self, capacity: usize) -> Result<Buf<AnyLease>, AcquireError> {
        handed_out!(self.acquire(capacity))
    }

    #[inline]
    #[cfg_attr(feature = "track", track_caller)]
    fn acquire_zeroed(&mut self, len: usize) -> Result<Buf<AnyLease>, AcquireError> {
        handed_out!(self.acquire_zeroed(len))
    }

    fn max_capacity(&self) -> usize {
        each!(&self.pool, Pool(pool) => pool.max_capacity())
    }

    fn stats(&self) -> PoolStats {
        each!(&self.pool, Pool(pool) => pool.stats())
    }
}
