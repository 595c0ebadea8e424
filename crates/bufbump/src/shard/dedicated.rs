//! A shard that is the memory of one buffer at a time: of a request larger than a shard, or of a
//! thread that is ending. Such a *piece* is nobody's while its buffer is out, and the buffer's
//! release is the last.

use core::ptr::NonNull;

use bufkit::sync::Ordering;

use super::{ABANDONED, Block, Shard};

impl Shard {
    /// Makes a free shard the memory of one buffer of `bytes` bytes, which nobody owns: the
    /// buffer's release is the last. `is_reused` says that the memory was used before.
    pub(crate) fn dedicate(&self, bytes: usize, is_reused: bool) -> NonNull<Block> {
        // ORDER: Relaxed: the shard is free; what hands over the buffer publishes it.
        self.remote_frees.store(ABANDONED - 1, Ordering::Relaxed);
        let cold = &self.own.cold;
        cold.is_dedicated.set(true);
        cold.is_reused.set(is_reused);
        cold.asked.set(bytes);
        // SAFETY: the start of memory that is nobody's, and has room for a header.
        let block = unsafe { Block::write(self.own.base.get().cast(), self, 0) };
        // SAFETY: the start of memory is not null.
        unsafe { NonNull::new_unchecked(block) }
    }

    /// Returns whether the memory is for one buffer at a time.
    pub(crate) fn is_dedicated(&self) -> bool {
        self.own.cold.is_dedicated.get()
    }

    /// Returns whether the memory was allocated for the one buffer that is out.
    pub(crate) fn is_fallback(&self) -> bool {
        self.is_dedicated() && !self.own.cold.is_reused.get()
    }

    /// Returns how many bytes the one buffer which is out was made with.
    pub(super) fn asked(&self) -> usize {
        self.own.cold.asked.get()
    }

    /// Returns how many bytes buffers can have together, and each alone; zero without memory.
    pub(crate) fn size(&self) -> usize {
        // ORDER: Relaxed: written by whoever had the shard alone, when the memory came.
        self.bytes.load(Ordering::Relaxed)
    }

    /// Returns the bytes that the memory counts as, in statistics and in the budget.
    pub(crate) fn held(&self) -> usize {
        // ORDER: Relaxed, as above.
        self.own.cold.held.load(Ordering::Relaxed)
    }

    /// Returns whether the last look at the place that keeps the shard has seen it there, with
    /// nothing out.
    pub(crate) fn is_seen(&self) -> bool {
        // ORDER: Relaxed: a hint.
        self.own.cold.is_seen.load(Ordering::Relaxed)
    }

    pub(crate) fn set_seen(&self, is_seen: bool) {
        // ORDER: Relaxed, as above.
        self.own.cold.is_seen.store(is_seen, Ordering::Relaxed);
    }
}
