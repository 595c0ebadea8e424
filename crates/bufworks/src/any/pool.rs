//! The pool whose strategy was chosen at run time.

use core::cell::Cell;
use core::marker::PhantomData;
use core::panic::{RefUnwindSafe, UnwindSafe};

use bufcore::{AcquireError, Buf, BufferPool, HeapPool, Lease, PoolStats};

use super::lease::{AnyLease, Of};

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

#[derive(Debug)]
pub(super) enum Pool {
    Heap(HeapPool),
    #[cfg(feature = "slot")]
    Slot(bufslot::SlotPool),
    #[cfg(feature = "slot")]
    BoundedSlot(bufslot::SlotPool<bufcore::Reject>),
    #[cfg(feature = "ring")]
    Ring(bufring::RingPool),
    #[cfg(feature = "bump")]
    Bump(bufbump::BumpPool),
    #[cfg(feature = "shard")]
    Shard(bufshard::ShardPool),
}

/// Does the same with the pool of whichever strategy.
macro_rules! each {
    ($pool:expr, $each:ident => $what:expr) => {
        match $pool {
            Pool::Heap($each) => $what,
            #[cfg(feature = "slot")]
            Pool::Slot($each) => $what,
            #[cfg(feature = "slot")]
            Pool::BoundedSlot($each) => $what,
            #[cfg(feature = "ring")]
            Pool::Ring($each) => $what,
            #[cfg(feature = "bump")]
            Pool::Bump($each) => $what,
            #[cfg(feature = "shard")]
            Pool::Shard($each) => $what,
        }
    };
}

/// Calls `$method`, and wraps the lease of the buffer that it gives.
macro_rules! handed_out {
    ($self:ident.$method:ident($argument:expr)) => {
        match &mut $self.pool {
            Pool::Heap(pool) => Ok(wrapped(pool.$method($argument)?, Of::Heap)),
            #[cfg(feature = "slot")]
            Pool::Slot(pool) => Ok(wrapped(pool.$method($argument)?, Of::Slot)),
            #[cfg(feature = "slot")]
            Pool::BoundedSlot(pool) => Ok(wrapped(pool.$method($argument)?, Of::BoundedSlot)),
            #[cfg(feature = "ring")]
            Pool::Ring(pool) => Ok(wrapped(pool.$method($argument)?, Of::Ring)),
            #[cfg(feature = "bump")]
            Pool::Bump(pool) => Ok(wrapped(pool.$method($argument)?, Of::Bump)),
            #[cfg(feature = "shard")]
            Pool::Shard(pool) => Ok(wrapped(pool.$method($argument)?, Of::Shard)),
        }
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
        match &self.pool {
            Pool::Heap(_) => "heap",
            #[cfg(feature = "slot")]
            Pool::Slot(_) => "slot",
            #[cfg(feature = "slot")]
            Pool::BoundedSlot(_) => "bounded-slot",
            #[cfg(feature = "ring")]
            Pool::Ring(_) => "ring",
            #[cfg(feature = "bump")]
            Pool::Bump(_) => "bump",
            #[cfg(feature = "shard")]
            Pool::Shard(_) => "shard",
        }
    }

    /// Another handle to the same pool, for another thread. `None` when the strategy serves one thread at a time: then each thread
    /// builds its own from the same [`AnyBuilder`](super::AnyBuilder).
    #[must_use]
    pub fn share(&self) -> Option<Self> {
        match &self.pool {
            #[cfg(feature = "bump")]
            Pool::Bump(pool) => Some(Self::over(Pool::Bump(pool.clone()))),
            #[cfg(feature = "shard")]
            Pool::Shard(pool) => Some(Self::over(Pool::Shard(pool.clone()))),
            _ => None,
        }
    }

    /// Gives idle memory back to the system. Strategies over one region have none that they could give.
    ///
    /// Cost: as the `trim` of the strategy.
    pub fn trim(&self) {
        match &self.pool {
            #[cfg(feature = "bump")]
            Pool::Bump(pool) => pool.trim(),
            #[cfg(feature = "shard")]
            Pool::Shard(pool) => pool.trim(),
            _ => {}
        }
    }

    /// Lets the high-water marks of the statistics start again, from what is out now. The other counters are never set back:
    /// [`PoolStats::since`] is their difference.
    ///
    /// Without the `stats` feature it does nothing.
    pub fn reset_high_water(&mut self) {
        each!(&mut self.pool, pool => pool.reset_high_water());
    }

    /// The buffers that are out, longest first: where and when each was acquired.
    #[cfg(feature = "track")]
    #[must_use]
    pub fn outstanding(&self) -> alloc::vec::Vec<bufcore::Outstanding> {
        each!(&self.pool, pool => pool.outstanding())
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
        each!(&self.pool, pool => pool.max_capacity())
    }

    fn stats(&self) -> PoolStats {
        each!(&self.pool, pool => pool.stats())
    }
}
