//! The state of a place in a pool's memory; see [`crate::SlotState`].
//!
//! # Why a release is counted once
//!
//! A release is a load (has the pool ended?) and a store (`FREE`). With loads and stores alone a
//! release that was stopped between the two and the pool's end cannot agree on which came last; a
//! locked instruction in every release would decide it, at more than the cost of all the rest. So
//! the end marks n places as `ORPHANED`, and the release of each reads its state once:
//!
//! - It read `ORPHANED`: it stores nothing and counts itself, so no `count_missed` finds it.
//! - It read `LIVE`: it stores `FREE` after the mark, since the exchange that made the mark saw
//!   `LIVE`. One `count_missed` exchanges that `FREE` for `SETTLED` and counts it.
//!
//! A place that was free at the end is `SETTLED` before anybody looks.
//!
//! A pool that looks for released places among many may have a place watched instead. Its release
//! finds that where it would find the end, and puts the place on a [`FreedList`](crate::FreedList).
//! A release that read `LIVE` before stores `FREE` over it, which the pool finds when it looks, and
//! `count_missed` after the end.

use core::fmt;
use core::ptr::NonNull;

use crate::sync::{AtomicU32, Ordering, RELEASE};

/// The place is free: its memory may be handed out.
const FREE: u32 = 0;
/// A buffer or the pool itself holds it.
const LIVE: u32 = 1;
/// A buffer held it when its pool ended. Its release is counted elsewhere, and leaves the state as
/// it is.
const ORPHANED: u32 = 2;
/// It was free when its pool ended, or its release was found afterwards.
const SETTLED: u32 = 3;
/// A buffer holds it, whose release lists it. The other bits are the position of the place.
const WATCHED: u32 = 4;
/// It is on the list of released places, or about to be. The other bits are the next one's.
const LISTED: u32 = 5;
/// The bits of a position.
pub(super) const LINK: u32 = !7;

/// The state of a slot in a pool's memory, which the pool shares with one release. It is for pools
/// from which one thread at a time acquires, and in which a release is a plain store.
///
/// - The pool hands out a slot that [is free](Self::is_free) after [marking](Self::mark_live) it.
///   Only the pool does that.
/// - The buffer's [release](Self::release) makes it free again, on any thread.
/// - Dropping the pool [leaves](Self::orphan) each slot in use to its release, which then [counts
///   itself](crate::orphan) instead. [`count_missed`](Self::count_missed) finds a release that was
///   about to store.
///
/// All that the last holder did with the memory happened before the next one uses it.
///
/// A slot of `bufslot` and a guard of `bufring` have one.
///
/// ```
/// use std::ptr::NonNull;
///
/// use bufkit::SlotState;
///
/// let place = SlotState::free();
/// assert!(place.is_free());
/// place.mark_live();
/// std::thread::scope(|scope| {
///     // A buffer's release. SAFETY: the place outlives the scope.
///     scope.spawn(|| assert!(unsafe { SlotState::release(NonNull::from(&place)) }));
/// });
/// assert!(place.is_free());
///
/// // The pool ends while a buffer is in use: its release is then counted.
/// place.mark_live();
/// assert!(place.orphan());
/// // SAFETY: as above.
/// assert!(unsafe { !SlotState::release(NonNull::from(&place)) });
/// place.see_end();
/// ```
#[repr(transparent)]
pub struct SlotState(AtomicU32);

impl SlotState {
    /// Makes the state of a free slot.
    #[must_use]
    pub fn free() -> Self {
        Self(AtomicU32::new(FREE))
    }

    /// Makes the state of a slot in use.
    #[must_use]
    pub fn held() -> Self {
        Self(AtomicU32::new(LIVE))
    }

    /// Returns whether the slot is free, and its memory the pool's.
    #[inline(always)]
    #[must_use]
    pub fn is_free(&self) -> bool {
        // ORDER: Acquire pairs with the Release of the store in `release`: all that the last holder
        // did with the memory happened before what the next one does.
        self.0.load(Ordering::Acquire) == FREE
    }

    /// Marks a free slot as in use. For the pool.
    #[inline(always)]
    pub fn mark_live(&self) {
        // ORDER: Relaxed. Only this thread reads the state until the buffer is handed over, and
        // that publishes it.
        self.0.store(LIVE, Ordering::Relaxed);
    }

    /// Frees a slot that the pool itself holds.
    #[inline(always)]
    pub fn mark_free(&self) {
        // ORDER: Relaxed: it was this thread that used the memory, and no other reads the state.
        self.0.store(FREE, Ordering::Relaxed);
    }

    /// Makes the release of a slot at position `at`, a multiple of eight, add it to the list.
    /// Returns `false` if the slot is free or already watched. For the pool.
    ///
    /// A concurrent release may still free the slot without listing it.
    ///
    /// Cost: a locked instruction.
    #[must_use]
    pub fn watch(&self, at: u32) -> bool {
        debug_assert!(at & !LINK == 0, "place at {at}");
        // ORDER: Relaxed: nothing is published, and `is_free` looks again.
        self.0.compare_exchange(LIVE, at | WATCHED, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    /// Returns whether the slot is watched: its release adds it to the list, or has done so.
    #[inline]
    #[must_use]
    pub fn is_watched(&self) -> bool {
        // ORDER: Relaxed: only compared. The pool takes what is listed from the list.
        self.0.load(Ordering::Relaxed) & !LINK >= WATCHED
    }

    /// Returns whether the slot is on the list of released slots, or about to be.
    #[inline]
    #[must_use]
    pub fn is_listed(&self) -> bool {
        // ORDER: Relaxed: only compared.
        self.0.load(Ordering::Relaxed) & !LINK == LISTED
    }

    /// Returns the position of a watched slot, for its release.
    #[inline]
    #[must_use]
    pub fn watched_at(&self) -> Option<u32> {
        // ORDER: Relaxed: the position does not change while the place is watched.
        let state = self.0.load(Ordering::Relaxed);
        (state & !LINK == WATCHED).then_some(state & LINK)
    }

    /// Returns the next slot on the list of released slots.
    #[inline]
    #[must_use]
    pub fn next_freed(&self) -> u32 {
        // ORDER: Relaxed: the list has published it.
        self.0.load(Ordering::Relaxed) & LINK
    }

    #[inline]
    pub(super) fn set_next_freed(&self, next: u32) {
        // ORDER: Relaxed: the exchange that lists the place publishes it.
        self.0.store(next | LISTED, Ordering::Relaxed);
    }

    /// Releases the slot, for the buffer that holds it. Returns `false` if the slot is
    /// [watched](Self::watched_at), or the pool was dropped. The release must then be listed, or
    /// counted after a call of [`see_end`](Self::see_end).
    ///
    /// Cost: a load and a store.
    ///
    /// # Safety
    ///
    /// `this` is valid. The state may be deallocated as soon as the slot is free.
    #[inline(always)]
    #[must_use]
    pub unsafe fn release(this: NonNull<Self>) -> bool {
        // SAFETY: valid until the store below.
        let state = unsafe { &(*this.as_ptr()).0 };
        // ORDER: Relaxed. It only says which way to go: `see_end` looks again, with Acquire.
        if state.load(Ordering::Relaxed) != LIVE {
            return false;
        }
        // ORDER: Release pairs with the Acquire in `is_free`, `orphan` and `count_missed`.
        if cfg!(loom) {
            // loom does not put a store behind an exchange that it races with, though the exchange
            // did not see it.
            state.swap(FREE, RELEASE);
        } else {
            state.store(FREE, RELEASE);
        }
        true
    }

    /// Makes the writes of the pool before its call of [`orphan`](Self::orphan) visible to a
    /// release that found the pool dropped. It is not a part of [`release`](Self::release), whose
    /// fast path would have two more instructions.
    #[inline(always)]
    pub fn see_end(&self) {
        // ORDER: Acquire pairs with the Release exchange in `orphan`.
        let seen = self.0.load(Ordering::Acquire);
        debug_assert_eq!(seen, ORPHANED, "a place is released once");
    }

    /// Ends the pool's use of the slot; its list of released slots is
    /// [closed](crate::FreedList::close). It returns whether a buffer holds the slot. Its release
    /// then counts itself, unless [`count_missed`](Self::count_missed) finds it. For the pool.
    ///
    /// Cost: a locked instruction.
    #[must_use]
    pub fn orphan(&self) -> bool {
        // ORDER: Release on success pairs with the Acquire load in `see_end`; what is read then is
        // what this thread stored. Acquire on failure pairs with the Release of the store there.
        match self.0.compare_exchange(LIVE, ORPHANED, Ordering::Release, Ordering::Acquire) {
            // The release of a watched place finds its list closed.
            Err(state) if state & !LINK < WATCHED => {
                // ORDER: Relaxed: nobody else uses a place that is free.
                self.0.store(SETTLED, Ordering::Relaxed);
                false
            }
            _ => true,
        }
    }

    /// Returns whether the slot was left to a release that freed it without counting, and marks it
    /// then. It returns `true` once.
    ///
    /// Cost: a load, and a locked instruction for a slot that is found.
    #[must_use]
    pub fn count_missed(&self) -> bool {
        // A model's load may miss the newest store; its exchange does not.
        // ORDER: Relaxed: only compared. What it misses is left to a later look.
        if !cfg!(loom) && self.0.load(Ordering::Relaxed) != FREE {
            return false;
        }
        // ORDER: Acquire pairs with the Release store in `release`: the last holder is done before
        // the memory goes. Of several looks at once one finds it. A failure reads nothing that is
        // used.
        self.0.compare_exchange(FREE, SETTLED, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }
}

impl fmt::Debug for SlotState {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SlotState").finish_non_exhaustive()
    }
}
