//! Shards on their way: out of a cache or the depot, and not yet kept, freed, or left to their
//! buffers. And those that are kept for later.

use core::ptr::NonNull;

use super::Shard;

/// Shards that are the holder's alone, or orphans that were not adopted yet. Linked through
/// `chained`.
///
/// By pointers, not by references: a shard may be gone while the function that pushed it still
/// runs, and headers are freed by what is popped.
///
/// Freeing a shard may call the allocator or a provider, which is others' code and may use the
/// pool. So shards are first taken out of where they are, into a chain, and freed when nothing is
/// locked.
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
        unsafe { shard.as_ref() }.chained.set(self.0);
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
        self.0 = unsafe { first.as_ref() }.chained.get();
        Some(first)
    }
}

/// Free shards that are kept for later, the last one on top.
#[derive(Default)]
pub(crate) struct IdleShards {
    shards: Chain,
    count: usize,
    /// The least that `count` was since the last call of `take_unused`.
    least: usize,
}

impl IdleShards {
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Keeps a shard.
    ///
    /// # Safety
    ///
    /// It is free and the caller's alone, and stays valid until it is taken.
    pub(crate) unsafe fn put(&mut self, shard: NonNull<Shard>) {
        // SAFETY: the caller's promise.
        unsafe { self.shards.push(shard) };
        self.count += 1;
    }

    /// Takes one, which is the caller's alone.
    pub(crate) fn take(&mut self) -> Option<NonNull<Shard>> {
        // SAFETY: those that were put are valid.
        let shard = unsafe { self.shards.pop() }?;
        self.count -= 1;
        self.least = self.least.min(self.count);
        Some(shard)
    }

    /// Takes all, or as many as nobody needed since the last such call, which begins to note that.
    /// Gives each to `f`, whose alone it is.
    pub(crate) fn take_some(&mut self, unused: bool, mut f: impl FnMut(NonNull<Shard>)) {
        for _ in 0..if unused { self.least } else { self.count } {
            let Some(shard) = self.take() else { break };
            f(shard);
        }
        if unused {
            self.least = self.count;
        }
    }
}
