//! Blocks on their way to the allocator, or where it is not known yet how many they are: linked
//! through their headers, and one owner's.

use core::ptr::{self, NonNull};

use crate::block::Block;

/// A list of blocks that its owner has alone (`block`, K2). Forgetting it loses them.
#[must_use = "the blocks are lost otherwise"]
pub(crate) struct Chain {
    first: *const Block,
    count: usize,
}

impl Chain {
    pub(crate) const fn new() -> Self {
        Self { first: ptr::null(), count: 0 }
    }

    /// Adds a block in front.
    ///
    /// # Safety
    ///
    /// The caller has the block, and gives it to the chain.
    pub(crate) unsafe fn push(&mut self, block: NonNull<Block>) {
        // SAFETY: the caller's promise.
        unsafe { block.as_ref() }.set_next(self.first);
        self.first = block.as_ptr();
        self.count += 1;
    }

    /// Adds the blocks of another chain in front.
    pub(crate) fn append(&mut self, mut other: Self) {
        while let Some(block) = other.pop() {
            // SAFETY: just taken.
            unsafe { self.push(block) };
        }
    }

    /// Takes the block in front, which is the caller's from then on.
    pub(crate) fn pop(&mut self) -> Option<NonNull<Block>> {
        let block = NonNull::new(self.first.cast_mut())?;
        // SAFETY: a block of the chain is valid.
        self.first = unsafe { block.as_ref() }.next();
        self.count -= 1;
        Some(block)
    }

    /// Blocks in it.
    pub(crate) fn len(&self) -> usize {
        self.count
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }
}
