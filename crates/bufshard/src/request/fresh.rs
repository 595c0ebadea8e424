//! New blocks, within the budget.

use core::ptr::NonNull;

use bufcore::AcquireError;

use super::{NoBlock, Turn};
use crate::block::Block;
use crate::class::{self, NO_CLASS};
use crate::shared::Shared;
use crate::sync::Ordering;

impl Shared {
    /// A new block of a class. For holders of a handle.
    pub(crate) fn pooled(
        &self,
        class: usize,
        requested: usize,
        turn: Turn,
    ) -> Result<NonNull<Block>, NoBlock> {
        // ORDER: Relaxed: any order of numbers will do.
        let colour = self.colours.fetch_add(1, Ordering::Relaxed);
        self.block(class as u16, class::bytes_of(class), colour, requested, turn)
    }

    /// A new block for one buffer of `bytes` bytes. For holders of a handle.
    pub(crate) fn single(&self, bytes: usize, turn: Turn) -> Result<NonNull<Block>, NoBlock> {
        self.block(NO_CLASS, bytes, 0, bytes, turn)
    }

    fn block(
        &self,
        class: u16,
        bytes: usize,
        colour: usize,
        requested: usize,
        turn: Turn,
    ) -> Result<NonNull<Block>, NoBlock> {
        let exhausted = |left, again| Err(NoBlock { error: self.exhausted(requested, left), again });
        let alignment = self.settings.alignment_of(bytes);
        let (mut colour, mut total) = (colour, Block::total(bytes, alignment, colour));
        if turn != Turn::First && self.has_budget() && self.has_claims() {
            // What there is, is for those who wait.
            return exhausted(0, false);
        }
        if let Err(left) = self.reserve(total) {
            if turn == Turn::Spare {
                return exhausted(left, false);
            }
            let saw_all = self.shrink(self.settings.max_bytes.saturating_sub(total));
            if self.reserve(total).is_err() {
                // The first colour takes the least.
                (colour, total) = (0, Block::total(bytes, alignment, 0));
                if let Err(left) = self.reserve(total) {
                    return exhausted(left, !saw_all);
                }
            }
        }
        let block = Block::make(NonNull::from(self).cast(), self.id, class, bytes, alignment, colour)
            .map_err(|_refused| {
                // SAFETY: the handle keeps the pool.
                unsafe { Self::unreserve(NonNull::from(self), total) };
                AcquireError::OutOfMemory { requested }
            })?;
        self.ref_counts.add_ref();
        Ok(block)
    }
}
