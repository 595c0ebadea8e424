//! The budget for idle memory, and what is counted of it.

use bufkit::sync::{AtomicUsize, Ordering};

/// What of the budget for idle memory is taken, in bytes. All are counts, which publish nothing.
///
/// # Invariants
///
/// - G1: `bytes` is the sum of what the pool keeps for any thread, shards and larger pieces, or is
///   about to.
pub(crate) struct Budget {
    limit: usize,
    bytes: AtomicUsize,
    /// Idle shards, or about to be.
    shards: AtomicUsize,
    /// The least that `shards` was since `trim_idle` last looked.
    least: AtomicUsize,
}

impl Budget {
    pub(crate) fn new(limit: usize) -> Self {
        let none = || AtomicUsize::new(0);
        Self { limit, bytes: none(), shards: none(), least: none() }
    }

    /// Takes `bytes`, if they are left.
    pub(crate) fn take(&self, bytes: usize) -> bool {
        // ORDER: Relaxed: a count.
        let before = self.bytes.fetch_add(bytes, Ordering::Relaxed);
        let fits = before.checked_add(bytes).is_some_and(|sum| sum <= self.limit);
        if !fits {
            self.give_back(bytes);
        }
        fits
    }

    pub(crate) fn give_back(&self, bytes: usize) {
        // ORDER: Relaxed: a count.
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Returns whether room for `bytes` has to be made.
    pub(crate) fn is_short_of(&self, bytes: usize) -> bool {
        // ORDER: Relaxed: a hint.
        self.bytes.load(Ordering::Relaxed).saturating_add(bytes) > self.limit
    }

    /// Takes the bytes of an idle shard, if they are left.
    pub(crate) fn take_shard(&self, bytes: usize) -> bool {
        let fits = self.take(bytes);
        if fits {
            // ORDER: Relaxed: a count.
            self.shards.fetch_add(1, Ordering::Relaxed);
        }
        fits
    }

    pub(crate) fn give_back_shard(&self, bytes: usize) {
        self.give_back(bytes);
        // ORDER: Relaxed, for all: counts.
        let left = self.shards.fetch_sub(1, Ordering::Relaxed).saturating_sub(1);
        if left < self.least.load(Ordering::Relaxed) {
            self.least.fetch_min(left, Ordering::Relaxed);
        }
    }

    /// Counts the shards that are idle, or about to be.
    pub(crate) fn shards(&self) -> usize {
        // ORDER: Relaxed: a count.
        self.shards.load(Ordering::Relaxed)
    }

    /// Returns how many idle shards nobody needed since `note_shards`.
    pub(crate) fn unused_shards(&self) -> usize {
        // ORDER: Relaxed: a count.
        self.least.load(Ordering::Relaxed)
    }

    /// Begins to note how many idle shards are needed.
    pub(crate) fn note_shards(&self) {
        // ORDER: Relaxed: a count.
        self.least.store(self.shards(), Ordering::Relaxed);
    }
}
