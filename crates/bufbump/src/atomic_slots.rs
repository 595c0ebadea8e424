//! Slots for free shards: a few links that any thread fills and empties, each by one exchange.
//!
//! # Invariants
//!
//! - Q1: a shard in a slot has memory, nothing of it is out, and nobody uses it but those who look
//!   at its atomics. A thread that takes it out of the slot has it alone.
//! - Q2: a put exchanges null for a shard, and a take exchanges whatever is there for null. No
//!   exchange compares with the address of a shard, so none is misled by one that was freed and
//!   used again.
//! - Q3: a closed slot takes in nothing, and nobody takes out of it. It is closed by the end of
//!   its pool.

use core::ptr::{self, NonNull};

use bufkit::sync::{AtomicPtr, Ordering};

use crate::shard::{Chain, Shard};

/// A number of slots. A put fills the first that is free, and a take empties the first that is
/// filled. So those behind are the ones that nobody needed for a time.
pub(crate) struct AtomicSlots<const N: usize> {
    slots: [AtomicPtr<Shard>; N],
}

/// Returns the mark in a slot that takes in nothing any more.
fn closed() -> *mut Shard {
    ptr::without_provenance_mut(1)
}

impl<const N: usize> AtomicSlots<N> {
    pub(crate) fn new() -> Self {
        Self { slots: [(); N].map(|()| AtomicPtr::new(ptr::null_mut())) }
    }

    /// Puts a shard into one of the first `limit` slots. Returns `false` when none of them is
    /// free, or the pool is gone, and then the shard is still the caller's.
    ///
    /// # Safety
    ///
    /// The shard has memory, nothing of it is out, and the caller has it alone. The caller does not
    /// use it again when this returns `true`: it may be freed.
    pub(crate) unsafe fn put(&self, shard: NonNull<Shard>, limit: usize) -> bool {
        // SAFETY: the caller's alone.
        unsafe { shard.as_ref() }.set_seen(false);
        self.slots.iter().take(limit).any(|slot| {
            // ORDER: Relaxed: a look that saves the exchange.
            slot.load(Ordering::Relaxed).is_null()
                // ORDER: Release pairs with the Acquire in `take`, `take_unused` and `close`: all
                // that was done with the shard happened before its next use. A failure publishes
                // nothing.
                && slot
                    .compare_exchange(ptr::null_mut(), shard.as_ptr(), Ordering::Release, Ordering::Relaxed)
                    .is_ok()
        })
    }

    /// Takes a shard out. Not when the slots are closed.
    pub(crate) fn take(&self) -> Option<NonNull<Shard>> {
        self.slots.iter().find_map(|slot| {
            // ORDER: Relaxed: a look that saves the exchange.
            if slot.load(Ordering::Relaxed).is_null() {
                return None;
            }
            Self::empty(slot)
        })
    }

    /// Takes what is in a slot.
    fn empty(slot: &AtomicPtr<Shard>) -> Option<NonNull<Shard>> {
        // ORDER: Acquire pairs with the Release in `put`.
        let shard = NonNull::new(slot.swap(ptr::null_mut(), Ordering::Acquire))?;
        debug_assert!(shard.as_ptr() != closed(), "Q3");
        Some(shard)
    }

    /// Takes the shards that the last call saw in these slots already, and notes the others. One
    /// that goes and another that comes at this very moment may be confused. The caller holds a
    /// handle.
    pub(crate) fn take_unused(&self, chain: &mut Chain) {
        for slot in &self.slots {
            // ORDER: Acquire pairs with the Release in `put`: what the shard notes is of this stay.
            let found = slot.load(Ordering::Acquire);
            // SAFETY: headers are valid as long as the bookkeeping (`depot`, H2); only an atomic is
            // used.
            let Some(shard) = (unsafe { found.as_ref() }) else { continue };
            if !shard.is_seen() {
                shard.set_seen(true);
            } else if let Some(taken) = Self::empty(slot) {
                // SAFETY: just taken (Q1).
                unsafe { chain.push(taken) };
            }
        }
    }

    /// Counts the slots that are filled, as far as can be seen.
    pub(crate) fn count(&self) -> usize {
        // ORDER: Relaxed: a number for people.
        self.slots.iter().filter(|slot| !slot.load(Ordering::Relaxed).is_null()).count()
    }

    /// Takes all out, and lets nothing in any more. For the pool's end, once.
    pub(crate) fn close(&self, chain: &mut Chain) {
        for slot in &self.slots {
            // ORDER: Acquire pairs with the Release in `put`; nothing is published.
            if let Some(shard) = NonNull::new(slot.swap(closed(), Ordering::Acquire)) {
                // SAFETY: just taken (Q1).
                unsafe { chain.push(shard) };
            }
        }
    }
}
