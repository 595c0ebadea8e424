//! Where a pool takes its memory from.

use core::fmt;

/// Where a [`SlotPool`](crate::SlotPool) carves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Mode {
    /// Behind the last live slot.
    Back,
    /// Before a live slot: the back is used up, and buffers before it have been returned.
    Front,
    /// Nowhere: the last request went to the fallback.
    Fallback,
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Back => "BACK MODE",
            Self::Front => "FRONT MODE",
            Self::Fallback => "FALLBACK MODE",
        })
    }
}
