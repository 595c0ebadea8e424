//! All headers of shards that a pool has, and those of them that nobody owns.
//!
//! A header is made when there is none without memory, is used again, and goes with the pool.
//!
//! # Invariants
//!
//! - H1: the headers on the stack `IDLE` have memory, and those on `VACANT` have none; nothing is
//!   out of either, and nobody owns them.
//! - H2: each header is in `all`, once, from when it is made. So headers are valid as long as the
//!   bookkeeping, and whoever keeps that may look at the atomics of any header.

mod large;

use core::ptr::NonNull;

use bufkit::Registry;

pub(crate) use self::large::CLASSES;
use self::large::Large;
use crate::shard::{Chain, Shard};
use crate::stack::{StackId, Stacks};

/// Shards with memory that nobody owns.
pub(crate) const IDLE: StackId = StackId::First;
/// Headers without memory.
const VACANT: StackId = StackId::Second;

/// The headers of a pool.
pub(crate) struct Depot {
    stacks: Stacks<Shard>,
    /// Pieces larger than a shard, with memory, that nobody owns.
    pub(crate) large: Large,
    /// H2.
    all: Registry<Shard>,
}

impl Depot {
    pub(crate) fn new() -> Self {
        Self { stacks: Stacks::new(), large: Large::new(), all: Registry::default() }
    }

    /// Takes one header off a stack. The caller holds a handle.
    fn pop(&self, which: StackId) -> Option<NonNull<Shard>> {
        // SAFETY: stacks are closed when there is no handle, and headers are valid (H2).
        unsafe { self.stacks.pop(which) }
    }

    /// Takes a free shard with memory, if there is one. The caller holds a handle.
    pub(crate) fn idle(&self) -> Option<NonNull<Shard>> {
        self.pop(IDLE)
    }

    /// Takes a header without memory, or adds the one that `make` makes; it is the caller's alone.
    /// Returns `None` when there is no header and no memory for one. The caller holds a handle.
    pub(crate) fn vacant(&self, make: impl FnOnce() -> Shard) -> Option<&Shard> {
        match self.pop(VACANT) {
            // SAFETY: valid (H2).
            Some(header) => Some(unsafe { header.as_ref() }),
            None => self.all.add(make()),
        }
    }

    /// Puts a shard with memory where others find it; `false` when the pool is gone, and then it is
    /// still the caller's. The shard kept all of this, so it comes by pointer.
    ///
    /// # Safety
    ///
    /// The shard is free and the caller's, who does not use it again when this returns `true`. It
    /// keeps the bookkeeping until then, of which `this` is a part.
    pub(crate) unsafe fn keep(this: NonNull<Self>, shard: NonNull<Shard>) -> bool {
        // SAFETY: valid until the shard is kept.
        let stacks = unsafe { &(*this.as_ptr()).stacks };
        // SAFETY: the caller's promise; it is valid until it is vacant, popped, and freed.
        unsafe { stacks.push(IDLE, shard) }
    }

    /// Puts a header without memory where others find it.
    ///
    /// # Safety
    ///
    /// As for [`keep`](Self::keep), except that something else keeps the bookkeeping.
    pub(crate) unsafe fn vacate(&self, shard: NonNull<Shard>) {
        // SAFETY: the caller's promise; it is valid until it is popped and freed.
        let is_open = unsafe { self.stacks.push(VACANT, shard) };
        debug_assert!(is_open, "this stack is never closed");
    }

    /// Closes the depot at the end of the pool, so that no shard is kept any more. Adds those that
    /// were kept to `chain`.
    ///
    /// # Safety
    ///
    /// No handle of the pool is left.
    pub(crate) unsafe fn close(&self, chain: &mut Chain) {
        // SAFETY: what was on the stack is free and nobody's (H1).
        let link = |shard: NonNull<Shard>| unsafe { chain.push(shard) };
        // SAFETY: only holders of a handle pop.
        unsafe { self.stacks.close(IDLE, link) };
        self.large.close(chain);
    }

    /// Iterates over all headers, of which only atomics are used.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Shard> {
        self.all.iter()
    }
}
