//! Buffers and frames of this workspace's pools, for all strategies by the same code.

use bufcore::{Buf, BufferPool, ConfigError, SplitLease, Writer};

use crate::harness::plan::{Plan, Unsupported};
use crate::harness::serve::{Frames, OpenFrame, Pool};

/// A pool that serves every request that a workload has.
pub(crate) trait Planned: BufferPool<Lease: SplitLease + Send> + Sized + 'static {
    /// Builds it for what the workload will ask.
    ///
    /// # Errors
    ///
    /// When the pool cannot be as large.
    fn planned(plan: &Plan) -> Result<Self, ConfigError>;

    /// What it has to be built for where a frame may move.
    fn with_moves(plan: &Plan) -> Plan {
        *plan
    }

    /// Starts a frame.
    #[inline(always)]
    fn writer(&mut self) -> Writer<&mut Self> {
        Writer::new(self)
    }
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

/// Frames of such a pool.
pub(crate) struct Growing<P>(P);

impl<P: Planned> Frames for Growing<P> {
    type Frame = Buf<P::Lease>;
    type Open<'a> = Open<'a, P>;

    fn build(plan: &Plan) -> Result<Self, Unsupported> {
        P::planned(&P::with_moves(plan)).map(Self).map_err(|error| Unsupported(error.to_string()))
    }

    #[inline(always)]
    fn open(&mut self) -> Open<'_, P> {
        Open(self.0.writer())
    }

    fn fallbacks(&self) -> Option<u64> {
        cfg!(feature = "count").then(|| self.0.stats().fallbacks)
    }
}

/// A frame that is being filled.
pub(crate) struct Open<'a, P: Planned>(Writer<&'a mut P>);

impl<P: Planned> OpenFrame for Open<'_, P> {
    type Frame = Buf<P::Lease>;

    #[inline(always)]
    fn append(&mut self, chunk: &[u8]) {
        self.0.extend_from_slice(chunk).expect("there is room for the frames that are out, and for a move");
    }

    #[inline(always)]
    fn detach(mut self) -> Self::Frame {
        self.0.finish()
    }
}
