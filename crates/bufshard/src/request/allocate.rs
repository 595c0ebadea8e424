//! New blocks, within the budget.

use core::ptr::NonNull;

use bufcore::AcquireError;

use super::{NoBlock, Turn};
use crate::block::{Block, Layout};
use crate::class::{self, NO_CLASS};
use crate::shared::Shared;
use crate::sync::Ordering;
use crate::trim::Slots;

impl Shared {
    /// Makes a new block of a class. The caller holds a handle.
    pub(crate) fn pooled(
        &self,
        class: usize,
        requested: usize,
        turn: Turn,
    ) -> Result<NonNull<Block>, NoBlock> {
        // ORDER: Relaxed: any order of numbers will do.
        let colour = self.colours.fetch_add(1, Ordering::Relaxed);
        let layout = self.settings.layout_of(class as u8, class::bytes_of(class));
        self.block(layout.coloured(colour), requested, turn)
    }

    /// Makes a new block for one buffer of `bytes` bytes. The caller holds a handle.
    pub(crate) fn single(&self, bytes: usize, turn: Turn) -> Result<NonNull<Block>, NoBlock> {
        self.block(self.settings.layout_of(NO_CLASS, bytes), bytes, turn)
    }

    fn block(&self, mut layout: Layout, requested: usize, turn: Turn) -> Result<NonNull<Block>, NoBlock> {
        let exhausted = |left, again| Err(NoBlock { error: self.exhausted(requested, left), again });
        let mut total = layout.total();
        if turn != Turn::First && self.has_budget() && self.has_claims() {
            // The memory that there is, is for those who wait.
            return exhausted(0, false);
        }
        if let Err(left) = self.reserve(total) {
            if turn == Turn::Spare {
                return exhausted(left, false);
            }
            let saw_all = self.shrink(self.settings.max_bytes.saturating_sub(total), Slots::Stay);
            if self.reserve(total).is_err() {
                // The first colour takes the least.
                layout = layout.coloured(0);
                total = layout.total();
                if let Err(left) = self.reserve(total) {
                    return exhausted(left, !saw_all);
                }
            }
        }
        let block = Block::make(self.owner(), layout, &self.source).map_err(|_refused| {
            // SAFETY: the handle keeps the pool.
            unsafe { Self::unreserve(NonNull::from(self), total) };
            AcquireError::OutOfMemory { requested }
        })?;
        self.ref_counts.add_ref();
        Ok(block)
    }
}
