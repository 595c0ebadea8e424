//! The pool whose strategy was chosen at run time.

use core::cell::Cell;
use core::marker::PhantomData;
use core::panic::{RefUnwindSafe, UnwindSafe};

use bufcore::{AcquireError, Buf, BufferPool, Lease, PoolStats};

use super::lease::AnyLease;
use super::variants::{Of, Pool};

/// A pool of whichever strategy. Made by an [`AnyBuilder`](super::AnyBuilder).
///
/// Threads: `Send`, not `Sync`. One thread at a time acquires, through `&mut self`, whatever the strategy; any thread releases. For further threads
/// there is [`share`](Self::share).
///
/// Cost: on top of the strategy's, a match for each acquire, and one for each release.
#[derive(Debug)]
pub struct AnyPool {
    pool: Pool,
    /// Not `Sync`, whichever strategies there are: so a feature that is turned on elsewhere takes nothing away.
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

impl AnyPool {
    pub(super) fn over(pool: Pool) -> Self {
        Self { pool, _unshared: PhantomData }
    }

    /// The name of its strategy, as in [`AnyBuilder::NAMES`](super::AnyBuilder::NAMES).
    #[must_use]
    pub fn strategy(&self) -> &'static str {
        self.pool.name()
    }

    /// Another handle to the same pool, for another thread. `None` when the strategy serves one thread at a time: then each thread
    /// builds its own from the same [`AnyBuilder`](super::AnyBuilder).
    #[must_use]
    pub fn share(&self) -> Option<Self> {
        self.pool.share().map(Self::over)
    }

    /// Gives idle memory back to the system. Strategies over one region have none that they could give.
    ///
    /// Cost: as the `trim` of the strategy.
    pub fn trim(&self) {
        self.pool.trim();
    }

    /// Lets the high-water marks of the statistics start again, from what is out now. The other counters are never set back:
    /// [`PoolStats::since`] is their difference.
    ///
    /// Without the `stats` feature it does nothing.
    pub fn reset_high_water(&mut self) {
        each!(&mut self.pool, Pool(pool) => pool.reset_high_water());
    }

    /// The buffers that are out, longest first: where and when each was acquired.
    #[cfg(feature = "track")]
    #[must_use]
    pub fn outstanding(&self) -> alloc::vec::Vec<bufcore::Outstanding> {
        each!(&self.pool, Pool(pool) => pool.outstanding())
    }
}

// As the pool of each strategy; what a feature turns on elsewhere takes nothing away.
impl UnwindSafe for AnyPool {}
impl RefUnwindSafe for AnyPool {}

bufcore::pool_methods!(impl[] AnyPool => AnyLease);

impl BufferPool for AnyPool {
    type Lease = AnyLease;

    // Always: a buffer that comes back in memory is moved on in pieces of another size, for which the processor waits.
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
