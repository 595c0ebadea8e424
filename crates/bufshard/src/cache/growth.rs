//! How the magazines of a cache grow and shrink with what their thread needs.
//!
//! A magazine begins without a slot. It gets its first slots when its thread releases a block of
//! the class and keeps another one apart already. From then on each *trip* to the depot is
//! evidence:
//!
//! - The magazine was found empty after it had been full. The thread has more out at once than the
//!   magazine has slots, and releases them again. The slots are doubled.
//! - [`TRIPS`] trips since the slots changed. A thread that only takes, or only gives, moves more
//!   blocks with each trip then. The slots are doubled, up to those of a [`batch`].
//!
//! A magazine that was not used between two looks of `trim_idle` loses its blocks and its slots.
//! One that was used without a trip has more than it needs. Half of its blocks go to the depot,
//! which knows after the next look whether anybody needed them. Half of its slots go with them.
//!
//! Slots are charged, as the bytes of as many blocks, to what the caches of all threads may keep
//! together (`Shared::charge`). Where there is nothing left of that, a magazine does not grow.
//!
//! A release does not allocate. So the first slots, and those of one batch, come from a store
//! within the cache. More are allocated when a request finds its magazine empty.
//!
//! The idea is that of Bonwick and Adams (2001), whose depot enlarges all magazines when its lock
//! is contended. Here each thread and class has its own evidence, since a program's threads differ.

use core::ptr::NonNull;

use super::ThreadCache;
use super::arrays::{Array, Arrays, Slot};
use super::magazines::Magazine;
use crate::chain::Chain;
use crate::class;
use crate::sync::{CountU32, Ordering};

/// Blocks that a trip to the depot moves at most,
const BATCH: usize = 32;
/// and their bytes, or one block: what is between two threads is to be little more than what they
/// need.
const BATCH_BYTES: usize = 64 << 10;
/// Trips to the depot after which a magazine of less than a batch grows.
const TRIPS: u32 = 8;
/// The same for a magazine without slots, whose thread has released nothing of the class.
const FIRST_TRIPS: u32 = 2;
/// The first slots of a class have no more bytes than this, or are one.
const FIRST_BYTES: usize = 64 << 10;
/// No magazine is halved to less.
const LEAST_HALF: usize = 8;

/// Slots that are given out together. In models one is all that a cache has, so that its magazine
/// needs an array for two.
const RANGE: usize = if cfg!(any(loom, shuttle)) { 1 } else { 4 };
/// Such ranges in a cache: a batch, and the first slots of some classes.
const RANGES: usize = if cfg!(any(loom, shuttle)) { 1 } else { 24 };
/// Slots within a cache.
pub(super) const STORE_SLOTS: usize = RANGES * RANGE;

/// The bits of the evidence: trips since the slots changed, at most this number,
const TRIPS_MASK: u32 = 0xFF;
/// the magazine was full on one of them,
const OVERFLOWED: u32 = 0x100;
/// and, above, the number of the look that came next when the last of them was.
const LOOK_SHIFT: u32 = 16;

/// What a magazine knows of its trips. Its thread alone writes it, or who claims the cache.
pub(super) struct Evidence(CountU32);

impl Evidence {
    pub(super) const fn none() -> Self {
        Self(CountU32::new(0))
    }

    fn get(&self) -> u32 {
        // ORDER: Relaxed: one writer; for others a hint.
        self.0.load(Ordering::Relaxed)
    }

    fn set(&self, evidence: u32) {
        // ORDER: Relaxed, as in `get`.
        self.0.store(evidence, Ordering::Relaxed);
    }

    /// Returns whether there was a trip between the look before this one and now: before this look,
    /// or after it began.
    fn is_since(&self, look: u32) -> bool {
        [look, look.wrapping_add(1)]
            .iter()
            .any(|next| self.get() >> LOOK_SHIFT == next & (u32::MAX >> LOOK_SHIFT))
    }

    /// Notes a trip before the look of this number.
    fn note(&self, look: u32, flag: u32) {
        self.set(look << LOOK_SHIFT | self.get() & (OVERFLOWED | TRIPS_MASK) | flag);
    }

    /// Counts a trip that moved blocks.
    fn count(&self) {
        if self.trips() < TRIPS_MASK {
            self.set(self.get() + 1);
        }
    }

    /// Forgets the trips, because the slots have changed or are not to change.
    fn forget(&self) {
        self.set(self.get() & !(OVERFLOWED | TRIPS_MASK));
    }

    fn trips(&self) -> u32 {
        self.get() & TRIPS_MASK
    }

    fn has_overflowed(&self) -> bool {
        self.get() & OVERFLOWED != 0
    }
}

/// What the thread does that finds its magazine wanting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Trip {
    Miss,
    Overflow,
}

impl ThreadCache {
    /// Returns how many slots the magazine of a class would grow to; 0 when it may not grow.
    fn next_limit(&self, class: usize, magazine: &Magazine) -> usize {
        let most = self.settings().thread_limit(class);
        let limit = magazine.limit();
        let next = match limit {
            0 => (FIRST_BYTES / class::bytes_of(class)).clamp(1, RANGE),
            limit => limit.saturating_mul(2),
        };
        if limit >= most { 0 } else { next.min(most) }
    }

    /// Returns how many slots the evidence speaks for; 0 when there is not enough.
    fn wanted_limit(&self, class: usize, magazine: &Magazine, trip: Trip) -> usize {
        let (next, evidence) = (self.next_limit(class, magazine), &magazine.evidence);
        let is_due = match (trip, magazine.limit()) {
            (Trip::Overflow, 0) => true,
            (Trip::Miss, 0) => evidence.trips() >= FIRST_TRIPS,
            (Trip::Miss, _) if evidence.has_overflowed() => true,
            _ => evidence.trips() >= TRIPS && next <= batch(class),
        };
        if is_due { next } else { 0 }
    }

    /// Enters the cache as `enter` does, with slots for a request of a class that will want some
    /// which the cache has none of. The slots are allocated while the cache is not entered. Returns
    /// whether the cache is entered, and the slots. The caller holds a handle.
    pub(crate) fn enter_for_miss(&self, class: usize) -> (bool, Option<Array>) {
        if !self.enter() {
            return (false, None);
        }
        let slots = self.lacks(class);
        if slots == 0 {
            return (true, None);
        }
        self.leave_open();
        let array = Array::new(slots);
        (self.enter(), array)
    }

    /// Returns how many slots a request will want for its class where the cache has none to give,
    /// or 0. The caller is between `enter` and `leave`.
    fn lacks(&self, class: usize) -> usize {
        self.touch();
        let Some(magazine) = self.magazines.get(class).filter(|magazine| magazine.is_empty()) else {
            return 0;
        };
        let slots = self.wanted_limit(class, magazine, Trip::Miss);
        let has = slots <= magazine.limit() || slots <= magazine.slots_len(self) || self.has_stored(slots);
        let is_free = || self.shared().can_charge(magazine.charge_of(class, slots));
        if has || self.is_waited() || !is_free() { 0 } else { slots }
    }

    /// Notes that a request found the magazine of its class empty. Grows the magazine with the
    /// slots of `array`, if there is evidence, and returns the slots that are left over. The caller
    /// is between `enter` and `leave`.
    pub(crate) fn note_miss(&self, class: usize, array: Option<Array>) -> Arrays {
        let Some(magazine) = self.magazines.get(class) else { return array.into() };
        let wanted = self.wanted_limit(class, magazine, Trip::Miss);
        magazine.evidence.note(self.look(), 0);
        self.grow(class, magazine, wanted, array)
    }

    /// Notes that the depot served what the magazine could not. The caller is between `enter` and
    /// `leave`.
    pub(crate) fn note_served(&self, class: usize) {
        if let Some(magazine) = self.magazines.get(class) {
            magazine.evidence.count();
        }
    }

    /// Notes that a release found the magazine of its class full, or without slots. Returns whether
    /// the magazine has more room now, and the slots that are left over. The caller is between
    /// `enter` and `leave`.
    pub(crate) fn note_overflow(&self, class: usize) -> (bool, Arrays) {
        let Some(magazine) = self.magazines.get(class) else { return (false, Arrays::new()) };
        let wanted = self.wanted_limit(class, magazine, Trip::Overflow);
        magazine.evidence.note(self.look(), OVERFLOWED);
        magazine.evidence.count();
        let before = magazine.limit();
        // The cache's own store has the new ones. The old ones may be an array: there may have been
        // nothing left in the store then.
        let left = self.grow(class, magazine, wanted, None);
        (magazine.limit() > before, left)
    }

    /// Gives a magazine `wanted` slots, if that is more than it has, as many are to be had,
    /// and all caches together may keep as much. Returns the slots that are left over.
    fn grow(&self, class: usize, magazine: &Magazine, wanted: usize, array: Option<Array>) -> Arrays {
        if wanted <= magazine.limit() {
            return array.into();
        }
        let has_slots = wanted <= magazine.slots_len(self);
        let is_long = array.as_ref().is_some_and(|array| array.len() >= wanted);
        if !has_slots && !is_long && !self.has_stored(wanted) {
            return array.into();
        }
        if !self.shared().charge(magazine.charge_of(class, wanted)) {
            return array.into();
        }
        magazine.evidence.forget();
        if has_slots {
            magazine.set_limit(wanted);
            return array.into();
        }
        let (slots, left) = match (self.take_stored(wanted), array) {
            (None, Some(array)) => (array.into_slots(), None),
            (Some(slots), array) => (slots, array),
            (None, None) => unreachable!("looked for above"),
        };
        // SAFETY: as many as are wanted, and nobody else's.
        let old = unsafe { magazine.move_to(slots, wanted) };
        // It may be both: the store may have had nothing when the magazine was given the old ones,
        // and have become free while the array was allocated.
        let mut left = Arrays::from(left);
        left.extend(old.and_then(|(slots, limit)| self.take_back(slots, limit)));
        left
    }

    /// Takes all slots from an empty magazine; what was allocated is returned. The caller has the
    /// cache.
    pub(crate) fn narrow(&self, class: usize) -> Option<Array> {
        let magazine = self.magazines.get(class)?;
        if !magazine.is_empty() || magazine.limit() == 0 {
            return None;
        }
        self.shared().discharge(magazine.limit() * class::bytes_of(class));
        magazine.evidence.forget();
        let (slots, limit) = magazine.take_slots()?;
        self.take_back(slots, limit)
    }

    /// Takes half of the blocks of a magazine, the oldest, if there was no trip since the look
    /// before this one; the slots follow. The caller has the cache.
    pub(super) fn halve(&self, class: usize, look: u32, chain: &mut Chain) {
        let Some(magazine) = self.magazines.get(class) else { return };
        if !magazine.is_halved_by(look) {
            return;
        }
        magazine.take_oldest(magazine.len() / 2, chain);
        let limit = magazine.limit();
        let half = (limit / 2).max(magazine.len()).max(LEAST_HALF);
        if half < limit && !self.is_stored(magazine) {
            self.shared().discharge((limit - half) * class::bytes_of(class));
            magazine.set_limit(half);
        }
    }

    /// Takes back slots that a magazine uses no more. Slots of the store return to it; others are
    /// returned as an array.
    fn take_back(&self, slots: NonNull<Slot>, limit: usize) -> Option<Array> {
        let Some(first) = self.index_in_store(slots) else {
            // SAFETY: not of the store, so of an array; the magazine has given it up.
            return Some(unsafe { Array::from_slots(slots) });
        };
        let bits = ranges(limit) << (first / RANGE);
        self.free_ranges.set(self.free_ranges.get() | bits);
        None
    }

    /// Returns the index of slots in the store, if they are of the store.
    fn index_in_store(&self, slots: NonNull<Slot>) -> Option<usize> {
        let offset = slots.addr().get().wrapping_sub(self.store.as_ptr().addr());
        let index = offset / size_of::<Slot>();
        (index < STORE_SLOTS).then_some(index)
    }

    /// Returns whether the slots of a magazine are of the store.
    fn is_stored(&self, magazine: &Magazine) -> bool {
        magazine.slots().is_some_and(|slots| self.index_in_store(slots).is_some())
    }

    /// Returns whether the store has `slots` free slots in a row.
    fn has_stored(&self, slots: usize) -> bool {
        self.free_run(slots).is_some()
    }

    fn free_run(&self, slots: usize) -> Option<usize> {
        if slots > BATCH {
            return None;
        }
        let (free, bits) = (self.free_ranges.get(), ranges(slots));
        (0..RANGES).find(|at| free >> at & bits == bits)
    }

    fn take_stored(&self, slots: usize) -> Option<NonNull<Slot>> {
        let at = self.free_run(slots)?;
        self.free_ranges.set(self.free_ranges.get() & !(ranges(slots) << at));
        Some(NonNull::from(&self.store[at * RANGE..]).cast())
    }

    /// Returns the number of the next look of `trim_idle`.
    fn look(&self) -> u32 {
        self.shared().next_look()
    }
}

impl Magazine {
    /// Returns how many slots the magazine could use without getting others. The caller has the
    /// cache.
    fn slots_len(&self, cache: &ThreadCache) -> usize {
        match self.slots() {
            Some(slots) if cache.index_in_store(slots).is_none() => {
                // SAFETY: not of the store, so of an array, which is the magazine's.
                let array = unsafe { core::mem::ManuallyDrop::new(Array::from_slots(slots)) };
                array.len()
            }
            _ => self.limit(),
        }
    }

    /// Returns the bytes that are charged for those of `slots` slots that the magazine does not
    /// use.
    fn charge_of(&self, class: usize, slots: usize) -> usize {
        slots.saturating_sub(self.limit()) * class::bytes_of(class)
    }

    /// Returns whether a look takes half of the blocks: there was no trip since the look before.
    pub(super) fn is_halved_by(&self, look: u32) -> bool {
        self.len() > LEAST_HALF && !self.evidence.is_since(look)
    }
}

/// Returns how many blocks of a class a trip moves at most.
pub(crate) fn batch(class: usize) -> usize {
    (BATCH_BYTES / class::bytes_of(class)).clamp(1, BATCH)
}

/// Returns the bits of the ranges that `slots` slots take.
const fn ranges(slots: usize) -> u32 {
    u32::MAX >> (u32::BITS - slots.div_ceil(RANGE) as u32)
}

/// All ranges.
pub(super) const ALL_RANGES: u32 = ranges(RANGES * RANGE);

/// Takes the arrays out of a cache that is gone.
pub(super) fn arrays_of(cache: &ThreadCache) -> Arrays {
    let mut arrays = Arrays::new();
    for (slots, limit) in cache.magazines.iter().filter_map(Magazine::take_slots) {
        arrays.extend(cache.take_back(slots, limit));
    }
    arrays
}
