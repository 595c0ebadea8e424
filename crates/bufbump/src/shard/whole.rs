//! A shard that is the memory of one buffer at a time: of a request larger than a shard, or of a
//! thread that is ending. Such a *piece* is nobody's while its buffer is out, and then the buffer's
//! release is the last. Or it is a thread's, which uses it for one buffer after the other.

use core::ptr::NonNull;

use bufkit::sync::{AtomicUsize, Ordering};

use super::{ABANDONED, Block, Shard, fold};

impl Shard {
    /// Makes a free shard the memory of one buffer of `bytes` bytes, which nobody owns: the
    /// buffer's release is the last. `is_reused` says that the memory was used before.
    pub(crate) fn single(&self, bytes: usize, is_reused: bool) -> NonNull<Block> {
        // ORDER: Relaxed: the shard is free; what hands over the buffer publishes it.
        self.word.store(ABANDONED - 1, Ordering::Relaxed);
        self.block(bytes, is_reused)
    }

    /// Takes the whole memory for one buffer, of a shard that the calling thread has just made its
    /// own.
    pub(crate) fn whole(&self, bytes: usize, is_reused: bool) -> NonNull<Block> {
        let taken: &AtomicUsize = &self.own.taken;
        // ORDER: Relaxed, for both: only this thread writes it, and others learn of it from
        // `is_busy`, or by the end of the thread or the pool.
        taken.store(taken.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
        self.block(bytes, is_reused)
    }

    /// Uses an owned piece again: `None` while its buffer is out, where it is too small, or so
    /// large that more than a third of it would be idle. As when a request looks one size above its
    /// own (`depot::large`), so what is out has at most half as much again as was asked for. The
    /// caller is the owner.
    #[inline(always)]
    pub(crate) fn reuse(&self, bytes: usize) -> Option<NonNull<Block>> {
        // ORDER: Relaxed: written when the memory came.
        let size = self.bytes.load(Ordering::Relaxed);
        let over = size.checked_sub(bytes)?;
        // No overflow: memory is less than half of what can be counted.
        if over * 2 > bytes {
            return None;
        }
        let others = self.others_if_back()?;
        #[cfg(all(test, loom))]
        self.shadow.write();
        if others != 0 {
            // SAFETY: the shard is there while it is borrowed, and nothing of it is out.
            unsafe { fold(NonNull::from(self), others) };
        }
        Some(self.whole(bytes, true))
    }

    /// Notes the one buffer, and writes its header.
    fn block(&self, bytes: usize, is_reused: bool) -> NonNull<Block> {
        let rare = &self.own.rare;
        rare.is_single.set(true);
        rare.is_reused.set(is_reused);
        rare.asked.set(bytes);
        // SAFETY: the start of memory that is nobody's, and has room for a header.
        let block = unsafe { Block::write(self.own.base.get().cast(), self, 0) };
        // SAFETY: the start of memory is not null.
        unsafe { NonNull::new_unchecked(block) }
    }

    /// Returns whether the memory is for one buffer at a time.
    pub(crate) fn is_single(&self) -> bool {
        self.own.rare.is_single.get()
    }

    /// Returns whether the memory was allocated for the one buffer that is out.
    pub(crate) fn is_fallback(&self) -> bool {
        self.is_single() && !self.own.rare.is_reused.get()
    }

    /// Returns how many bytes the one buffer which is out was made with.
    pub(super) fn asked(&self) -> usize {
        self.own.rare.asked.get()
    }

    /// Returns how many bytes buffers can have together, and each alone; zero without memory.
    pub(crate) fn size(&self) -> usize {
        // ORDER: Relaxed: written by whoever had the shard alone, when the memory came.
        self.bytes.load(Ordering::Relaxed)
    }

    /// Returns the bytes that the memory counts as, in statistics and in the budget.
    pub(crate) fn held(&self) -> usize {
        // ORDER: Relaxed, as above.
        self.own.rare.held.load(Ordering::Relaxed)
    }

    /// Returns how often the owner has used the shard, wrapping, as far as can be seen.
    pub(crate) fn uses(&self) -> usize {
        // ORDER: Relaxed: a hint.
        self.own.taken.load(Ordering::Relaxed)
    }

    /// Returns whether the last look at the place that keeps the shard has seen it there, with
    /// nothing out.
    pub(crate) fn is_seen(&self) -> bool {
        // ORDER: Relaxed: a hint.
        self.own.rare.is_seen.load(Ordering::Relaxed)
    }

    pub(crate) fn set_seen(&self, is_seen: bool) {
        // ORDER: Relaxed, as above.
        self.own.rare.is_seen.store(is_seen, Ordering::Relaxed);
    }
}
