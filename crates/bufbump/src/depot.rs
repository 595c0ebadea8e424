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
    /// How many are idle. Changed under the lock.
    idle_count: AtomicUsize,
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
    /// Takes a free shard with memory, if there is one.
    pub(crate) fn idle(&self) -> Option<NonNull<Shard>> {
        let mut free = lock(&self.free);
        let shard = free.idle.take()?;
        self.note(&free);
        Some(shard)
    }

    /// Notes how many are idle.
    fn note(&self, free: &Free) {
        // ORDER: Relaxed: a count.
        self.idle_count.store(free.idle.count(), Ordering::Relaxed);
    }

    /// Returns how many shards are idle at this moment.
    pub(crate) fn idle_count(&self) -> usize {
        // ORDER: Relaxed: a count.
        self.idle_count.load(Ordering::Relaxed)
    }

    /// Takes all idle shards, or those that nobody needed since the last such call.
    pub(crate) fn take_idle(&self, unused: bool, chain: &mut Chain) {
        let mut free = lock(&self.free);
        // SAFETY: just taken.
        free.idle.take_some(unused, |shard| unsafe { chain.push(shard) });
        self.note(&free);
    }

    /// Takes a header without memory, or adds the one that `make` makes; it is the caller's alone.
    /// Returns `None` when there is no header and no memory for one.
    pub(crate) fn vacant(&self, make: impl FnOnce() -> Shard) -> Option<&Shard> {
        // SAFETY: valid (H2).
        let header = unsafe { lock(&self.free).vacant.pop() };
        match header {
            // SAFETY: likewise.
            Some(header) => Some(unsafe { header.as_ref() }),
            None => self.all.add(make),
        }
    }

    /// Keeps a shard with memory, of `bytes` bytes, if then at most `most` bytes are idle here.
    /// Returns `false` otherwise, and when the pool has ended: the shard is still the caller's.
    ///
    /// # Safety
    ///
    /// The shard is free and the caller's, who does not use it again when this returns `true`.
    pub(crate) unsafe fn keep(&self, shard: NonNull<Shard>, bytes: usize, most: usize) -> bool {
        let mut free = lock(&self.free);
        if free.is_closed || (free.idle.count() + 1).saturating_mul(bytes) > most {
            return false;
        }
        // SAFETY: the caller's promise; headers are valid (H2).
        unsafe { free.idle.put(shard) };
        self.note(&free);
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
