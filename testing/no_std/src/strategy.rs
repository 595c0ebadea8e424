//! What the scenarios need of a strategy beyond its traits: made over memory that is lent, and
//! giving it back.

use bufcore::{BufferPool, NoFallback, Region, SplitLease};
use bufring::RingPool;
use bufslot::SlotPool;

use crate::Checked;

/// A pool over memory that is lent to it.
pub trait Strategy: BufferPool<Lease = Self::Of> + Sized {
    /// Its leases.
    type Of: SplitLease;
    /// As people call it.
    const NAME: &'static str;
    /// To what its buffers are aligned.
    const ALIGNMENT: usize = 16;

    /// Makes a pool over `region`.
    fn over(region: Region) -> Checked<Self>;

    /// Returns its memory, unless anything is out.
    fn into_region(self) -> Result<Region, Self>;

    /// Returns whether nothing is out.
    fn is_idle(&self) -> bool;
}

impl Strategy for SlotPool<NoFallback> {
    type Of = <Self as BufferPool>::Lease;
    const NAME: &'static str = "== the slot pool";

    fn over(region: Region) -> Checked<Self> {
        let builder = bufslot::Builder::new().slots(16).alignment(Self::ALIGNMENT);
        #[cfg(feature = "wipe")]
        let builder = builder.wipe(true);
        Ok(ok!(builder.build_in(region, NoFallback)))
    }

    fn into_region(self) -> Result<Region, Self> {
        self.into_region()
    }

    fn is_idle(&self) -> bool {
        self.is_idle()
    }
}

impl Strategy for RingPool {
    type Of = <Self as BufferPool>::Lease;
    const NAME: &'static str = "== the ring";

    fn over(region: Region) -> Checked<Self> {
        let builder = bufring::Builder::new().alignment(Self::ALIGNMENT);
        #[cfg(feature = "wipe")]
        let builder = builder.wipe(true);
        Ok(ok!(builder.build_in(region)))
    }

    fn into_region(self) -> Result<Region, Self> {
        self.into_region()
    }

    fn is_idle(&self) -> bool {
        self.is_idle()
    }
}
