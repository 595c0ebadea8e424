//! Where a search in the depot need not look.

use super::bin::{Bin, SEQ_CST};
use crate::sync::{AtomicUsize, Ordering};

/// What a search among the bins of a class may leave out: a bit for each shard.
///
/// Bits change only when a search has found them wrong, so that in the long run nobody writes here.
#[derive(Default)]
pub(super) struct BinBitmap {
    /// There may be blocks.
    pub(super) some: AtomicUsize,
    /// There is no room.
    pub(super) full: AtomicUsize,
}

impl BinBitmap {
    /// Notes that a bin was given blocks.
    pub(super) fn note_some(&self, bit: usize) {
        // ORDER: SeqCst here, in `note_none` and for the count in `unlock` and `Bin::count`: of who
        // gives blocks and who found none the one sees the other, and the bit is set in the end.
        // Otherwise a bin might not be looked into until it is given more.
        if self.some.load(SEQ_CST) & bit == 0 {
            self.some.fetch_or(bit, SEQ_CST);
        }
    }

    /// Notes that a bin was found empty.
    pub(super) fn note_none(&self, bit: usize, bin: &Bin) {
        // ORDER: SeqCst, as `note_some` says.
        self.some.fetch_and(!bit, SEQ_CST);
        if bin.count() > 0 {
            // ORDER: SeqCst, likewise.
            self.some.fetch_or(bit, SEQ_CST);
        }
    }

    /// Notes that blocks were taken out of a bin.
    pub(super) fn note_room(&self, bit: usize) {
        // ORDER: Relaxed, for both: a hint.
        if self.full.load(Ordering::Relaxed) & bit != 0 {
            self.full.fetch_and(!bit, Ordering::Relaxed);
        }
    }
}
