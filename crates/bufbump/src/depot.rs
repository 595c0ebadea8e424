//! All headers of shards that a pool has, and those of them that nobody owns.
//!
//! A header is made when there is none without memory, is used again, and goes with the pool.
//!
//! # Invariants
//!
//! - H1: the headers in `idle` have memory, and those in `vacant` have none; nothing is out of
//!   either, and nobody owns them.
//! - H2: each header is in `all`, once, from when it is made. So headers are valid as long as the
//!   bookkeeping, and whoever keeps that may look at the atomics of any header.
//! - H3: the lock is held for some instructions, in which no code of others is called and no other
//!   lock is waited for.

use core::ptr::NonNull;

use bufkit::Registry;
use bufkit::sync::{AtomicUsize, Mutex, Ordering, lock};

use crate::shard::{Chain, IdleShards, Shard};

/// The headers of a pool.
#[derive(Default)]
pub(crate) struct Depot {
    free: Mutex<Free>,
    /// H2.
    all: Registry<Shard>,
}

/// Headers that nobody owns (H1).
#[derive(Default)]
struct Free {
    idle: IdleShards,
    vacant: Chain,
    /// Whether the pool has ended, so that no shard is kept any more.
    is_closed: bool,
}

impl Depot {
    /// Takes a free shard with memory, if there is one, and its `bytes` off what is idle.
    pub(crate) fn idle(&self, idle_bytes: &AtomicUsize, bytes: usize) -> Option<NonNull<Shard>> {
        let mut free = lock(&self.free);
        let shard = free.idle.take()?;
        // ORDER: Relaxed: a count; the lock orders it for `count`.
        idle_bytes.fetch_sub(bytes, Ordering::Relaxed);
        Some(shard)
    }

    /// Counts the idle shards. Returns that, and what `idle_bytes` was at that moment: what others
    /// add from then on stays added.
    pub(crate) fn count(&self, idle_bytes: &AtomicUsize) -> (usize, usize) {
        let free = lock(&self.free);
        // ORDER: Relaxed: a count, as above.
        (free.idle.count(), idle_bytes.load(Ordering::Relaxed))
    }

    /// Takes all idle shards, or those that nobody needed since the last such call. Calls `each`
    /// for each of them.
    pub(crate) fn take_idle(&self, unused: bool, chain: &mut Chain, mut each: impl FnMut()) {
        lock(&self.free).idle.take_some(unused, |shard| {
            each();
            // SAFETY: just taken.
            unsafe { chain.push(shard) };
        });
    }

    /// Takes a header without memory, or adds the one that `make` makes; it is the caller's alone.
    /// Returns `None` when there is no header and no memory for one.
    pub(crate) fn vacant(&self, make: impl FnOnce() -> Shard) -> Option<&Shard> {
        // SAFETY: valid (H2).
        let header = unsafe { lock(&self.free).vacant.pop() };
        match header {
            // SAFETY: likewise.
            Some(header) => Some(unsafe { header.as_ref() }),
            None => self.all.add(make()),
        }
    }

    /// Keeps a shard with memory, if then at most `most` bytes are idle, its `bytes` among them.
    /// Returns `false` otherwise, and when the pool has ended: the shard is still the caller's.
    ///
    /// # Safety
    ///
    /// The shard is free and the caller's, who does not use it again when this returns `true`.
    pub(crate) unsafe fn keep(
        &self,
        shard: NonNull<Shard>,
        idle_bytes: &AtomicUsize,
        bytes: usize,
        most: usize,
    ) -> bool {
        let mut free = lock(&self.free);
        // ORDER: Relaxed: a count, as in `idle`.
        if free.is_closed || idle_bytes.load(Ordering::Relaxed).saturating_add(bytes) > most {
            return false;
        }
        // ORDER: Relaxed: likewise.
        idle_bytes.fetch_add(bytes, Ordering::Relaxed);
        // SAFETY: the caller's promise; headers are valid (H2).
        unsafe { free.idle.put(shard) };
        true
    }

    /// Keeps a header without memory.
    ///
    /// # Safety
    ///
    /// It is the caller's alone, who does not use it again.
    pub(crate) unsafe fn vacate(&self, shard: NonNull<Shard>) {
        // SAFETY: the caller's promise; headers are valid (H2).
        unsafe { lock(&self.free).vacant.push(shard) };
    }

    /// Ends the keeping of shards, at the end of the pool.
    pub(crate) fn close(&self) {
        lock(&self.free).is_closed = true;
    }

    /// Iterates over all headers, of which only atomics are used.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Shard> {
        self.all.iter()
    }
}
