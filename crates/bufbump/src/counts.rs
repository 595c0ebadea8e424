//! Counts pieces of memory, with the `stats` feature. Without it, the counters are a type of no
//! size whose methods do nothing.

#[cfg(feature = "stats")]
use bufkit::sync::{AtomicUsize, Ordering};

/// What became of a piece of memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Piece {
    /// Allocated for a request.
    Allocated,
    /// Allocated ahead.
    Preallocated,
    /// Freed when it was back, since it was not to be kept.
    Discarded,
    /// Freed by a trim.
    Trimmed,
}

/// The counters of a pool. They are written where the allocator is called, which is rare.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    #[cfg(feature = "stats")]
    counts: [AtomicUsize; 4],
}

#[cfg_attr(not(feature = "stats"), allow(clippy::unused_self, reason = "nothing is counted then"))]
impl Counts {
    /// Counts one.
    pub(crate) fn count(&self, piece: Piece) {
        #[cfg(feature = "stats")]
        // ORDER: Relaxed: a count, which publishes nothing.
        self.counts[piece as usize].fetch_add(1, Ordering::Relaxed);
        #[cfg(not(feature = "stats"))]
        let _ = piece;
    }

    /// Returns how many were counted.
    pub(crate) fn of(&self, piece: Piece) -> u64 {
        #[cfg(feature = "stats")]
        // ORDER: Relaxed, as above.
        let count = self.counts[piece as usize].load(Ordering::Relaxed) as u64;
        #[cfg(not(feature = "stats"))]
        let (_, count) = (piece, 0);
        count
    }
}
