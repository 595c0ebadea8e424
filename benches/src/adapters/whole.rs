//! Whole buffers of this workspace's pools, for all strategies by the same code.

use bufcore::{Buf, BufferPool, ConfigError};

use crate::harness::plan::{Plan, Unsupported};
use crate::harness::serve::Pool;

/// A pool that serves every request that a workload has.
pub(crate) trait Planned: BufferPool + Sized + 'static {
    /// Builds it for what the workload will ask.
    ///
    /// # Errors
    ///
    /// When the pool cannot be as large.
    fn planned(plan: &Plan) -> Result<Self, ConfigError>;
}

/// Whole buffers of such a pool.
#[derive(Clone)]
pub(crate) struct Whole<P>(P);

impl<P: Planned> Pool for Whole<P> {
    type Buf = Buf<P::Lease>;

    fn build(plan: &Plan) -> Result<Self, Unsupported> {
        P::planned(plan).map(Self).map_err(|error| Unsupported(error.to_string()))
    }

    #[inline(always)]
    fn acquire(&mut self, bytes: usize) -> Self::Buf {
        self.0.acquire(bytes).expect("there is room for what the workload has out at once")
    }

    fn fallbacks(&self) -> Option<u64> {
        cfg!(feature = "count").then(|| self.0.stats().fallbacks)
    }
}
