//! The state of a place in a pool's memory; see [`crate::strategy::ReleaseState`].

use core::fmt;
use core::ptr::NonNull;

use crate::sync::{AtomicU32, Ordering, RELEASE};
#[cfg(feature = "alloc")]
use crate::waiting::{Holder, Taken};

/// The place is free: its memory may be handed out.
const FREE: u32 = 0;
/// A buffer or the pool itself holds it.
const LIVE: u32 = 1;
/// A buffer held it when its pool ended. Its release is counted elsewhere, and leaves the state as
/// it is.
const ORPHANED: u32 = 2;
/// It was free when its pool ended, or its release was found afterwards.
const SETTLED: u32 = 3;
/// A buffer holds it, and its release is an exchange that sees whether it was told of a request
/// that waits.
#[cfg(feature = "alloc")]
const WATCHED: u32 = 4;
/// As `WATCHED`, and the buffer was told that a request waits: the state is this and the number of
/// the place, up to `MOST`.
#[cfg(feature = "alloc")]
const TOLD: u32 = 5;
/// No buffer holds it, and the pool has put it aside.
const PARKED: u32 = u32::MAX;

/// The state of a place in a pool's memory, which the pool shares with one release. For pools that
/// one thread at a time acquires from, where a release is a plain store.
///
/// - The pool hands out a place that [is free](Self::is_free) when it has [held](Self::hold) it.
///   Only the pool does that.
/// - The buffer's [release](Self::release) makes it free again, on any thread.
/// - The pool's end [leaves](Self::leave) each place that a buffer holds to its release, which then
///   [counts itself](crate::strategy::orphans) instead. One that was about to store is found by
///   [`settle`](Self::settle).
/// - With the feature `alloc`, a request that waits [tells](Self::tell) places: their
///   [late release](Self::release_late) wakes it.
///
/// All that the last holder did with the memory happened before the next one has it.
///
/// A slot of `bufslot` and a guard of `bufring` have one.
///
/// ```
/// use std::ptr::NonNull;
///
/// use bufcore::strategy::ReleaseState;
///
/// let place = ReleaseState::free();
/// assert!(place.is_free());
/// place.hold();
/// std::thread::scope(|scope| {
///     // A buffer's release. SAFETY: the place outlives the scope.
///     scope.spawn(|| assert!(unsafe { ReleaseState::release(NonNull::from(&place)) }));
/// });
/// assert!(place.is_free());
///
/// // The pool ends while a buffer is out: its release finds that, and counts itself.
/// place.hold();
/// assert!(place.leave());
/// // SAFETY: as above.
/// assert!(unsafe { !ReleaseState::release(NonNull::from(&place)) });
/// ```
#[repr(transparent)]
pub struct ReleaseState(AtomicU32);

impl ReleaseState {
    /// The largest number that a place can have, so that it fits into a state.
    pub const MOST: u32 = u32::MAX - 6;

    /// Makes the state of a place that is free.
    #[must_use]
    pub fn free() -> Self {
        Self(AtomicU32::new(FREE))
    }

    /// Makes the state of a place that the pool holds.
    #[must_use]
    pub fn held() -> Self {
        Self(AtomicU32::new(LIVE))
    }

    /// Returns whether the place is free, and its memory the pool's.
    #[inline(always)]
    #[must_use]
    pub fn is_free(&self) -> bool {
        // ORDER: Acquire pairs with the Release of the store in `release`, and of the exchange in
        // `release_late`: all that the last holder did with the memory happened before what the
        // next one does.
        self.0.load(Ordering::Acquire) == FREE
    }

    /// Returns whether the pool has put the place aside.
    #[inline(always)]
    #[must_use]
    pub fn is_parked(&self) -> bool {
        // ORDER: Relaxed: only the pool's own thread makes it so.
        self.0.load(Ordering::Relaxed) == PARKED
    }

    /// Puts a place aside that is free, or takes one back. For the pool.
    #[inline(always)]
    pub fn set_parked(&self, parked: bool) {
        // ORDER: Relaxed. No buffer holds it, and so no other thread reads the state. What was done
        // with the memory before, this thread has seen (`is_free`).
        self.0.store(if parked { PARKED } else { FREE }, Ordering::Relaxed);
    }

    /// Marks a free place as held. For the pool.
    #[inline(always)]
    pub fn hold(&self) {
        // ORDER: Relaxed. Only this thread reads the state until the buffer is handed over, and
        // that publishes it.
        self.0.store(LIVE, Ordering::Relaxed);
    }

    /// Frees a place that the pool itself holds.
    #[inline(always)]
    pub fn let_go(&self) {
        // ORDER: Relaxed: it was this thread that used the memory, and no other reads the state.
        self.0.store(FREE, Ordering::Relaxed);
    }

    /// Releases the place, for the buffer that holds it. It returns `false` when that is not done
    /// yet: the pool has ended, or the release may be waited for. Then
    /// [`release_late`](Self::release_late) is to be called, or without the feature `alloc` the
    /// release is to be counted.
    ///
    /// Cost: a load and a store.
    ///
    /// # Safety
    ///
    /// `this` is valid. It may be gone as soon as the place is free.
    #[inline(always)]
    #[must_use]
    pub unsafe fn release(this: NonNull<Self>) -> bool {
        // SAFETY: valid until the store below.
        let state = unsafe { &(*this.as_ptr()).0 };
        // ORDER: Relaxed. It only says which way to go: `release_late` looks again, with Acquire.
        if state.load(Ordering::Relaxed) != LIVE {
            return false;
        }
        // ORDER: Release pairs with the Acquire in `is_free`, `leave` and `settle`.
        if cfg!(loom) {
            // loom does not put a store behind an exchange that it races with, though the exchange
            // did not see it.
            state.swap(FREE, RELEASE);
        } else {
            state.store(FREE, RELEASE);
        }
        true
    }

    /// Ends the pool's use of the place. It returns whether a buffer holds it, whose release counts
    /// itself from then on, unless [`settle`](Self::settle) finds it. For the pool.
    ///
    /// [`release_late`](Self::release_late), which finds the mark, sees all that the calling thread
    /// wrote before.
    ///
    /// Cost: a locked instruction.
    #[must_use]
    pub fn leave(&self) -> bool {
        let mut seen = LIVE;
        // ORDER: AcqRel on success: Release pairs with the Acquire load in `release_late`. Acquire
        // has no partner: a success reads what this thread stored, or `WATCHED`, with which a
        // release publishes nothing. Acquire on failure pairs with the Release of the store in
        // `release`, and of the exchange in `release_late`.
        while let Err(now) = self.0.compare_exchange(seen, ORPHANED, Ordering::AcqRel, Ordering::Acquire) {
            if now == FREE {
                // ORDER: Relaxed: nobody else uses a place that is free.
                self.0.store(SETTLED, Ordering::Relaxed);
                return false;
            }
            // One that may be waited for.
            seen = now;
        }
        true
    }

    /// Finds out whether the place was left to a release that made it free all the same, and marks
    /// it then. It returns `true` once.
    ///
    /// Cost: a load, and a locked instruction for one that is found.
    #[must_use]
    pub fn settle(&self) -> bool {
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

/// The part for requests that wait.
#[cfg(feature = "alloc")]
impl ReleaseState {
    /// Makes the release see whether somebody waits. The caller is the thread that took the place,
    /// before the buffer is handed out.
    pub fn watch(&self) {
        // ORDER: Relaxed. Only this thread reads the state until the buffer is handed over, and
        // that publishes it.
        self.0.store(WATCHED, Ordering::Relaxed);
    }

    /// Looks at how a place is held that is not the pool's own.
    pub fn look(&self) -> Holder {
        // ORDER: Relaxed: only compared. Whoever looks for memory afterwards looks with Acquire.
        holder(self.0.load(Ordering::Relaxed))
    }

    /// Tells the release of the place with the number `place`, unless it is free, that somebody
    /// waits, who is in the [`WaitPlace`](crate::strategy::WaitPlace) already. It returns how the
    /// place was held.
    ///
    /// Cost: a locked instruction.
    ///
    /// # Panics
    ///
    /// In debug builds, when `place` is larger than [`MOST`](Self::MOST).
    pub fn tell(&self, place: u32) -> Holder {
        debug_assert!(place <= Self::MOST, "{place}");
        let word = place + TOLD;
        // ORDER: Relaxed, also on failure: as in `look`.
        let mut seen = self.0.load(Ordering::Relaxed);
        // Also where it was told before: the release that is under way takes out who is in the
        // place, and who was put there since is to be found by it, or by its next look.
        while seen != FREE {
            // ORDER: Release pairs with the Acquire in `release_late`.
            match self.0.compare_exchange(seen, word, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => break,
                Err(now) => seen = now,
            }
        }
        holder(seen)
    }

    /// Releases the place after [`release`](Self::release) could not. It returns `false` when the
    /// pool has ended: then the release is to be counted.
    ///
    /// `take` gets the number of a place that was told, which is not free yet, and takes out who
    /// waits. That is added to `taken`, which is to be woken when nothing of the place is used any
    /// more.
    ///
    /// # Safety
    ///
    /// As for [`release`](Self::release), which has returned `false`.
    #[must_use]
    pub unsafe fn release_late(
        this: NonNull<Self>,
        taken: &mut Option<Taken>,
        mut take: impl FnMut(u32) -> Option<Taken>,
    ) -> bool {
        // SAFETY: valid until the exchange that frees it.
        let state = unsafe { &(*this.as_ptr()).0 };
        loop {
            // ORDER: Acquire pairs with the Release exchange in `leave`: what the pool wrote before
            // is seen.
            let seen = state.load(Ordering::Acquire);
            if seen == ORPHANED {
                return false;
            }
            if seen == WATCHED {
                // ORDER: Release pairs with the Acquire in `is_free`, and in `leave` on failure.
                // (Not in `settle`: that looks for `FREE` from after the end, and this fails then.)
                // A failure is looked at again.
                if state.compare_exchange(WATCHED, FREE, RELEASE, Ordering::Relaxed).is_ok() {
                    return true;
                }
                continue;
            }
            // The place stays this release's until it is free. ORDER: Acquire pairs with the
            // Release exchange in `tell`. That is done anew each time somebody is put into the
            // place, so whoever waits is found there, or tells this one once more. A failure is
            // looked at again.
            if state.compare_exchange(seen, WATCHED, Ordering::Acquire, Ordering::Relaxed).is_ok() {
                debug_assert!(seen >= TOLD, "a place is released once: {seen}");
                if let Some(newer) = take(seen.wrapping_sub(TOLD)) {
                    *taken = Some(newer.and(taken.take()));
                }
            }
        }
    }
}

/// Returns how a place of this state is held.
#[cfg(feature = "alloc")]
fn holder(state: u32) -> Holder {
    match state {
        FREE => Holder::Nobody,
        LIVE => Holder::Plain,
        WATCHED => Holder::Watched,
        _ => Holder::Told,
    }
}

impl fmt::Debug for ReleaseState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReleaseState").finish_non_exhaustive()
    }
}
