//! Where a pool takes its memory from.

use core::fmt;

/// The part of its region in which a [`SlotPool`](crate::SlotPool) carves.
///
/// ```
/// # #[cfg(feature = "alloc")] {
/// use bufslot::{Mode, SlotPool};
///
/// let mut pool = SlotPool::new(4096, 1)?;
/// let held = pool.acquire(100)?;
/// assert_eq!(pool.mode(), Mode::Back);
/// drop(pool.acquire(100)?); // no slot is left
/// assert_eq!(pool.mode(), Mode::Fallback);
/// # drop(held);
/// # }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Mode {
    /// After the last live slot.
    Back,
    /// Before a live slot: the back is full, and buffers before it were released.
    Front,
    /// Not in the region: the fallback served the last request.
    Fallback,
}

impl fmt::Display for Mode {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Back => "BACK MODE",
            Self::Front => "FRONT MODE",
            Self::Fallback => "FALLBACK MODE",
        })
    }
}
