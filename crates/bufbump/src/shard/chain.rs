//! Shards on their way: out of a cache or a stack, and not yet kept, freed, or left to their
//! buffers.

use core::ptr::{self, NonNull};

use super::Shard;

/// Shards that are the holder's alone, or orphans that were not adopted yet, linked through `next`.
///
/// Freeing a shard calls the allocator, which is others' code and may use the pool. So shards are
/// first taken out of where they are, into a chain, and go when nothing is half done.
#[must_use = "the shards are lost otherwise"]
pub(crate) struct Chain(*const Shard);

impl Chain {
    pub(crate) const fn new() -> Self {
        Self(ptr::null())
    }

    /// Adds a shard, in front.
    pub(crate) fn push(&mut self, shard: &Shard) {
        shard.set_next(self.0);
        self.0 = shard;
    }

    /// Takes one off.
    ///
    /// # Safety
    ///
    /// All that were pushed are valid.
    pub(crate) unsafe fn pop(&mut self) -> Option<NonNull<Shard>> {
        let first = NonNull::new(self.0.cast_mut())?;
        // SAFETY: the caller's promise.
        self.0 = unsafe { first.as_ref() }.next();
        Some(first)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_null()
    }
}
