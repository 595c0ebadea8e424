//! A shard that its thread carves no more, and has on its list: who may take its memory.
//!
//! Its thread takes the shard off the list, to carve it again, or when all its buffers are back. If
//! other threads released the last of them, its thread does not know, and may sleep for long. So
//! another thread may free the memory of such a shard. The header stays on the list, *hollow*,
//! until its thread comes across it. `listing` decides which thread gets the memory:
//!
//! ```text
//!            set_listed            take_listed
//!   CARVED ─────────────> LISTED <─────────────> LOOKED_AT ───────> TAKEN ───────> HOLLOW
//!      ^                    │     a buffer is out                     memory is freed
//!      └────────────────────┘
//!            unlist                from each of the four: leave_list ───────> LEFT
//! ```
//!
//! The transitions to the right of `LISTED` are those of other threads, of which one at a time
//! looks (`Shared::idle_since`). All others are those of the shard's thread. It never waits: a
//! shard that is looked at it leaves on the list.

use core::ptr::NonNull;

use bufkit::sync::Ordering;

use super::Shard;

/// Not on a list.
pub(super) const CARVED: u32 = 0;
/// On its thread's list.
const LISTED: u32 = 1;
/// The same, and another thread looks whether something is out.
const CLAIMED: u32 = 2;
/// The same, and the memory is another thread's, which frees it.
const TAKEN: u32 = 3;
/// On its thread's list, without memory.
const DETACHED: u32 = 4;
/// Its thread has given it up.
const GIVEN_UP: u32 = 5;

/// What a thread gives up that takes a shard off its list for good.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Yielded {
    /// All of it.
    Shard,
    /// The header, which has no memory.
    Header,
    /// Nothing: another thread has the memory, and gets the header.
    Nothing,
}

impl Shard {
    /// Lets other threads look at a shard that is on the list of the calling thread, its owner.
    pub(crate) fn set_listed(&self) {
        self.set_seen(false);
        // ORDER: Release pairs with the Acquire in `take_listed`: `allocated` is seen as it is from
        // now on.
        self.own.listing.store(LISTED, Ordering::Release);
    }

    /// Returns whether the shard is carved from no more, to its owner. To others it is a hint.
    pub(crate) fn is_listed(&self) -> bool {
        // ORDER: Relaxed: the owner learns no more from it than that it is not `CARVED`, which it
        // wrote itself; for others it is a hint.
        self.own.listing.load(Ordering::Relaxed) != CARVED
    }

    /// Ends what `set_listed` began: `false` when another thread looks at the shard, or has its
    /// memory, and then it stays on the list. The caller is the owner.
    pub(crate) fn unlist(&self) -> bool {
        // ORDER: Relaxed, for both: other threads change nothing before the memory is theirs.
        self.own.listing.compare_exchange(LISTED, CARVED, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    /// Returns whether the memory is gone, so that the header of the list is the owner's alone. The
    /// caller owns the shard.
    pub(crate) fn is_detached(&self) -> bool {
        // ORDER: Acquire pairs with the Release in `yield_header`.
        self.own.listing.load(Ordering::Acquire) == DETACHED
    }

    /// Ends what `set_listed` began, for good. By pointer, here and below: the header may be gone
    /// at once, where it is the other's.
    ///
    /// # Safety
    ///
    /// The shard was listed, and the caller is its owner, or the pool's end, and uses no more of it
    /// than it is given.
    pub(crate) unsafe fn leave_list(this: NonNull<Self>) -> Yielded {
        // SAFETY: valid until the exchange.
        let listing = unsafe { &this.as_ref().own.listing };
        // ORDER: Acquire pairs with the Release in `yield_header`, and Release with the Acquire
        // there.
        match listing.swap(GIVEN_UP, Ordering::AcqRel) {
            TAKEN => Yielded::Nothing,
            DETACHED => Yielded::Header,
            _ => Yielded::Shard,
        }
    }

    /// Takes the memory of a shard of any thread's list, if nothing is out: it is the caller's
    /// then, to be freed. With `unused`, only where the last such look saw the same.
    ///
    /// One thread at a time may do this, during a visit (`depot`, H3).
    pub(crate) fn take_listed(&self, unused: bool) -> bool {
        let listing = &self.own.listing;
        // ORDER: Relaxed: a look that saves the exchanges.
        if listing.load(Ordering::Relaxed) != LISTED || !self.is_all_free() {
            return false;
        }
        // ORDER: Acquire pairs with the Release in `set_listed`: `allocated` is not older. A
        // failure leaves the shard alone.
        if listing.compare_exchange(LISTED, CLAIMED, Ordering::Acquire, Ordering::Relaxed).is_err() {
            return false;
        }
        // The owner takes nothing from it now. So if nothing is out, that stays.
        let mut goes = self.is_all_free();
        if goes && unused && !self.is_seen() {
            self.set_seen(true);
            goes = false;
        }
        let next = if goes { TAKEN } else { LISTED };
        // ORDER: Relaxed, for both: nothing was changed. It fails where the owner gave the shard
        // up.
        listing.compare_exchange(CLAIMED, next, Ordering::Relaxed, Ordering::Relaxed).is_ok() && goes
    }

    /// Leaves a header whose memory was taken, and is gone, to the list that it is on. Returns
    /// `false` where it is on none: then it is the caller's.
    ///
    /// # Safety
    ///
    /// The header is valid, and the caller had the memory alone. It does not use the header again
    /// when this returns `true`.
    pub(crate) unsafe fn yield_header(this: NonNull<Self>) -> bool {
        // SAFETY: valid until the exchange.
        let listing = unsafe { &this.as_ref().own.listing };
        // ORDER: Acquire, for both, pairs with the Release in `leave_list`: the owner uses the
        // links no more. Release pairs with the Acquire in `is_detached` and `leave_list`: nor does
        // this thread use the header.
        listing.load(Ordering::Acquire) == TAKEN
            && listing.compare_exchange(TAKEN, DETACHED, Ordering::Release, Ordering::Acquire).is_ok()
    }

    /// Returns whether nothing is out of a shard that its owner takes nothing from meanwhile: a
    /// hint, until the caller has seen by `listing` that this is so.
    fn is_all_free(&self) -> bool {
        // ORDER: Relaxed: the caller has seen what the owner did last with it, by `listing`.
        let allocated = self.own.allocated.load(Ordering::Relaxed);
        // ORDER: Acquire, for both, pairs with the Release of `release_remote` and
        // `release_local`: the last owners are done before the memory goes.
        let others = self.remote_frees.load(Ordering::Acquire);
        allocated == self.own.local_frees.load(Ordering::Acquire).wrapping_add(others)
    }
}
