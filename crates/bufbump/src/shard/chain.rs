//! Shards on their way: out of a cache or a stack, and not yet kept, freed, or left to their
//! buffers.

use core::ptr::NonNull;

use super::Shard;

/// Shards that are the holder's alone, or whose memory is, or orphans that were not adopted yet.
/// Linked through `chained`.
///
/// By pointers, not by references: a shard may be gone while the function that pushed it still
/// runs, and headers are freed by what is popped.
///
/// Freeing a shard calls the allocator, which is others' code and may use the pool. So shards are
/// first taken out of where they are, into a chain, and go when nothing is half done.
#[must_use = "the shards are lost otherwise"]
#[derive(Default)]
pub(crate) struct Chain(Option<NonNull<Shard>>);

impl Chain {
    pub(crate) const fn new() -> Self {
        Self(None)
    }

    /// Adds a shard, in front.
    ///
    /// # Safety
    ///
    /// It is valid, and the caller's as above.
    pub(crate) unsafe fn push(&mut self, shard: NonNull<Shard>) {
        // SAFETY: the caller's promise.
        unsafe { shard.as_ref() }.own.chained.set(self.0);
        self.0 = Some(shard);
    }

    /// Takes one off.
    ///
    /// # Safety
    ///
    /// All that were pushed are valid.
    pub(crate) unsafe fn pop(&mut self) -> Option<NonNull<Shard>> {
        let first = self.0?;
        // SAFETY: the caller's promise.
        self.0 = unsafe { first.as_ref() }.own.chained.get();
        Some(first)
    }
}
