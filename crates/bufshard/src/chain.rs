//! Blocks on their way to the allocator, or where it is not known yet how many they are: linked
//! through their headers, and one owner's.

use core::ptr::NonNull;

use crate::block::Block;

/// A list of blocks of one pool that its owner has alone (`block`, K2). Forgetting it loses them.
///
/// The link to the next block is where a block has its pool, which the chain notes once for all. So
/// nothing is written to the bytes of blocks, which may be cold, or known to be zero.
#[must_use = "the blocks are lost otherwise"]
pub(crate) struct Chain {
    /// Each leads to the next (`block`, K3); the last one has its pool.
    first: NonNull<Block>,
    /// The pool of all blocks, if there are any.
    pool: NonNull<()>,
    /// With none, `first` is no block.
    count: usize,
}

impl Chain {
    pub(crate) const fn new() -> Self {
        Self { first: NonNull::dangling(), pool: NonNull::dangling(), count: 0 }
    }

    /// Adds a block in front.
    ///
    /// # Safety
    ///
    /// The caller has the block, and gives it to the chain. It is of the pool of the others.
    pub(crate) unsafe fn push(&mut self, block: NonNull<Block>) {
        // SAFETY: the caller's promise.
        let header = unsafe { block.as_ref() };
        if self.count == 0 {
            self.pool = header.link();
        } else {
            debug_assert!(header.link() == self.pool, "a block of another pool");
            header.set_link(self.first.cast());
        }
        self.first = block;
        self.count += 1;
    }

    /// Adds the blocks of another chain in front, which are of the same pool.
    pub(crate) fn append(&mut self, mut other: Self) {
        while let Some(block) = other.pop() {
            // SAFETY: just taken.
            unsafe { self.push(block) };
        }
    }

    /// Takes the block in front, which is the caller's from then on.
    pub(crate) fn pop(&mut self) -> Option<NonNull<Block>> {
        self.count = self.count.checked_sub(1)?;
        let block = self.first;
        // SAFETY: a block of the chain is valid.
        let header = unsafe { block.as_ref() };
        self.first = header.link().cast();
        header.set_link(self.pool);
        Some(block)
    }

    /// Returns the number of blocks in the chain.
    pub(crate) fn len(&self) -> usize {
        self.count
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }
}
