//! Zeroes what a pool that wipes has to zero of a frame, and of the room behind it that a forgotten
//! writer had.

use core::ptr::NonNull;

use bufcore::{Buf, BufferPool};

use crate::pool::SlotPool;

impl<F: BufferPool> SlotPool<F> {
    /// Zeroes the gap behind the frame, which has borrowed it, if the pool wipes: a forgotten
    /// writer may have written there (see [`lend`](Self::lend)).
    #[cold]
    #[inline(never)]
    pub(super) fn wipe_gap(&self) {
        let slots = self.table.slots();
        self.table.wipe(self.frame_end(), slots.start(slots.next(self.frame)));
    }

    /// Lets a frame that is with the fallback have the rest of its buffer, if a forgotten writer
    /// had it, and zeroes that if the pool or its fallback wipes.
    pub(super) fn renew_spill(&mut self) {
        let (first, next) = (self.frame_first.addr().get(), self.frame_next.addr().get());
        let Some(spill) = self.spill.as_mut().filter(|_| self.frame_limit == next) else { return };
        let wipes = self.table.wipes() || bufcore::Lease::wipe_range(spill.lease()).is_some();
        let memory = spill.spare_mut();
        let (discarded, used) = (first - memory.as_ptr().addr(), next - memory.as_ptr().addr());
        if wipes {
            memory[used..].fill(0);
        }
        self.frame_limit = memory.as_ptr().addr() + memory.len();
        let start = NonNull::from(memory).cast::<u8>();
        // SAFETY: the frame starts and ends in this buffer (P5).
        self.frame_first = unsafe { start.add(discarded) };
        // SAFETY: likewise.
        self.frame_next = unsafe { start.add(used) };
    }

    /// Zeroes the last `cut` bytes of the frame, which are about to be cut off, if the pool or its
    /// fallback wipes. Where a forgotten writer may have had the room behind them (see
    /// [`lend`](Self::lend)), the frame has none afterwards, as before.
    pub(super) fn wipe_cut(&mut self, cut: usize) {
        let of_spill = |spill: &Buf<F::Lease>| bufcore::Lease::wipe_range(spill.lease()).is_some();
        if self.table.wipes() || self.spill.as_ref().is_some_and(of_spill) {
            let kept = self.frame_len() - cut;
            self.filled_mut()[kept..].fill(0);
        }
        if self.frame_room() == 0 {
            self.frame_limit -= cut;
        }
    }
}
