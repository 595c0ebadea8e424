//! New blocks, within the budget.

use core::ptr::NonNull;

use bufcore::AcquireError;
use bufkit::PageError;

use super::{NoBlock, Obtained, Turn};
use crate::block::Block;
use crate::class;
use crate::counts::Tier;
use crate::shared::Shared;
use crate::sync::Ordering;
use crate::trim::Slots;

/// How often a request that does not wait looks again where it could not look everywhere.
const LOOKS: usize = if cfg!(any(loom, shuttle)) { 0 } else { 3 };

impl Shared {
    /// Makes a new block for a request of `bytes` bytes. The caller holds a handle.
    pub(crate) fn fresh(&self, requested: usize, turn: Turn) -> Result<Obtained, NoBlock> {
        let layout = self.settings.layout_for(requested);
        // ORDER: Relaxed: any order of numbers will do.
        let layout = layout.coloured(self.colours.fetch_add(1, Ordering::Relaxed));
        if turn != Turn::First && self.has_budget() && self.has_claims() {
            // The memory that there is, is for those who wait.
            return Err(AcquireError::Exhausted { requested, available: 0 }.into());
        }
        let owner = NonNull::from(self).cast();
        let make = || Block::make(owner, layout, &self.heap, |class| self.settings.is_pooled(class));
        let mut made = make();
        let mut saw_all = true;
        if let Err(PageError::Exhausted { .. }) = made
            && turn != Turn::Spare
        {
            let target = self.settings.max_bytes.saturating_sub(self.settings.total(layout));
            saw_all = self.shrink(target, Slots::Stay);
            made = make();
            // Two threads may find each other at work, and nobody has a buffer whose release would
            // tell them of what both missed.
            for _ in 0..LOOKS {
                let Err(PageError::Exhausted { .. }) = made else { break };
                if saw_all || turn != Turn::Any {
                    break;
                }
                std::thread::yield_now();
                saw_all = self.shrink(target, Slots::Stay);
                made = make();
            }
            if let Err(PageError::Exhausted { .. }) = made
                && !self.heap.returns_pages()
            {
                // Memory goes as a whole, whose parts may be idle.
                saw_all = self.shrink(0, Slots::Stay);
                made = make();
            }
        }
        let made = made.map_err(|error| match error {
            PageError::Exhausted { available, slabs } => {
                let available = self.settings.most_within(available).max(class::largest_of(slabs));
                NoBlock { error: AcquireError::Exhausted { requested, available }, again: !saw_all }
            }
            _ => AcquireError::OutOfMemory { requested }.into(),
        })?;
        #[cfg(feature = "wipe")]
        if self.settings.wipe && !made.is_zero {
            // The pages had headers, too.
            // SAFETY: just made, so ours.
            unsafe { Block::zero(made.block) };
        }
        self.ref_counts.add_ref();
        // SAFETY: just made.
        let is_single = unsafe { made.block.as_ref() }.is_single();
        let tier = if is_single { Tier::Single } else { Tier::Fresh };
        Ok(Obtained { block: made.block, tier, is_zero: made.is_zero })
    }
}
