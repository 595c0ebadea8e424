//! The buffer with a span of its own that a thread keeps.

use core::ptr::NonNull;

use bufkit::sync::Ordering;

use super::{Shards, ThreadCache};
use crate::shard::Block;

/// One block, or none.
#[derive(Default)]
pub(crate) struct Kept {
    block: Option<NonNull<Block>>,
    /// Whether a look of `trim_idle` saw it.
    is_seen: bool,
}

impl ThreadCache {
    /// Takes the block that is kept, if its span has `least` bytes and at most `more` more. For
    /// the cache's thread, which holds a handle.
    #[inline(always)]
    pub(crate) fn take_large(&self, least: usize, more: usize) -> Option<NonNull<Block>> {
        let take = move |shards: &mut Shards| {
            // ORDER: Relaxed: written with the block.
            let bytes = self.large_bytes.load(Ordering::Relaxed);
            let is_fit = bytes >= least && bytes - least <= more;
            if is_fit { self.taken(&mut shards.large) } else { None }
        };
        self.shards.enter(take)?
    }

    /// Keeps a block, whose span has `bytes` bytes, for the cache's thread, the caller. If it
    /// returns `false`, the block is still the caller's.
    #[inline(always)]
    pub(crate) fn keep_large(&self, block: NonNull<Block>, bytes: usize) -> bool {
        let keep = move |shards: &mut Shards| {
            let is_empty = shards.large.block.is_none();
            if is_empty {
                shards.large = Kept { block: Some(block), is_seen: false };
                // ORDER: Relaxed: a number for people, and a hint for trims.
                self.large_bytes.store(bytes, Ordering::Relaxed);
            }
            is_empty
        };
        self.open(keep) == Some(true)
    }

    /// Takes the block for a trim. With `unused`, only if the last such look saw it as well; else
    /// it is noted. The caller holds a handle.
    pub(crate) fn trim_large(&self, unused: bool) -> Option<NonNull<Block>> {
        self.large_bytes()?;
        let take = |kept: &mut Kept| {
            let is_seen = core::mem::replace(&mut kept.is_seen, true);
            (is_seen || !unused).then(|| self.taken(kept)).flatten()
        };
        self.shards.claim(|shards| take(&mut shards.large)).flatten()
    }

    /// Takes the block.
    #[inline(always)]
    pub(super) fn taken(&self, kept: &mut Kept) -> Option<NonNull<Block>> {
        let block = kept.block.take()?;
        // ORDER: Relaxed, as in `keep_large`.
        self.large_bytes.store(0, Ordering::Relaxed);
        Some(block)
    }

    /// Returns the bytes of the span of the block, if there is one at this moment.
    pub(crate) fn large_bytes(&self) -> Option<usize> {
        // ORDER: Relaxed: a number for people, and a hint for trims.
        Some(self.large_bytes.load(Ordering::Relaxed)).filter(|&bytes| bytes > 0)
    }
}
