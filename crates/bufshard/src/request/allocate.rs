//! New blocks, within the budget.

use bufcore::AcquireError;
use bufkit::PageError;

use super::{NoBlock, Obtained, Turn};
use crate::block::{Block, Layout, Made};
use crate::counts::Tier;
use crate::shared::Shared;
use crate::sync::Ordering;
use crate::trim::Slots;

impl Shared {
    /// Makes a new block of a class. The caller holds a handle.
    pub(crate) fn pooled(&self, class: usize, requested: usize, turn: Turn) -> Result<Obtained, NoBlock> {
        let made = self.block(self.settings.class_layout(class), requested, turn)?;
        Ok(Obtained { block: made.block, tier: Tier::Fresh, is_zero: made.is_zero })
    }

    /// Makes a new block for one buffer of `bytes` bytes. The caller holds a handle.
    pub(crate) fn single(&self, bytes: usize, turn: Turn) -> Result<Obtained, NoBlock> {
        let made = self.block(self.settings.layout_for(bytes), bytes, turn)?;
        Ok(Obtained { block: made.block, tier: Tier::Single, is_zero: made.is_zero })
    }

    fn block(&self, layout: Layout, requested: usize, turn: Turn) -> Result<Made, NoBlock> {
        // ORDER: Relaxed: any order of numbers will do.
        let layout = layout.coloured(self.colours.fetch_add(1, Ordering::Relaxed));
        if turn != Turn::First && self.has_budget() && self.has_claims() {
            // The memory that there is, is for those who wait.
            return Err(self.exhausted(requested, 0).into());
        }
        let mut made = Block::make(self.owner(), layout, &self.heap);
        let mut saw_all = true;
        if let Err(PageError::Exhausted { .. }) = made
            && turn != Turn::Spare
        {
            let total = layout.total(self.settings.page_bytes);
            saw_all = self.shrink(self.settings.max_bytes.saturating_sub(total), Slots::Stay);
            made = Block::make(self.owner(), layout, &self.heap);
        }
        let made = made.map_err(|error| match error {
            PageError::Exhausted { available } => {
                NoBlock { error: self.exhausted(requested, available), again: !saw_all }
            }
            _ => AcquireError::OutOfMemory { requested }.into(),
        })?;
        self.ref_counts.add_ref();
        Ok(made)
    }
}
