//! The list of released places whose pool does not look for them; see [`crate::FreedList`].
//!
//! A stack: releases push, and the pool takes all of it, so no place is seen twice. The links are
//! in the states of the places. The end closes the list: a push that finds it closed counts itself.

use core::fmt;
use core::ptr::NonNull;

use super::slot_state::{LINK, SlotState};
use crate::sync::{AtomicU32, Ordering, RELEASE};

/// The pool has ended. No place is there: positions are multiples of eight.
const CLOSED: u32 = u32::MAX;

/// Lists the released slots of a pool that [watches](SlotState::watch) them, so that it finds them
/// without visiting those in use.
///
/// ```
/// use std::ptr::NonNull;
///
/// use bufkit::{FreedList, SlotState};
///
/// let (list, place) = (FreedList::new(), SlotState::free());
/// place.mark_live();
/// assert!(place.watch(8));
/// // A buffer's release. SAFETY: the place and the list outlive it.
/// assert!(unsafe { !SlotState::release(NonNull::from(&place)) });
/// assert!(unsafe { FreedList::push(NonNull::from(&list), NonNull::from(&place), 8) });
///
/// assert_eq!(list.take(), 8);
/// assert_eq!(place.next_freed(), FreedList::END);
/// ```
pub struct FreedList(AtomicU32);

impl FreedList {
    /// The value that stands for no slot.
    pub const END: u32 = LINK;

    /// Makes an empty list.
    #[must_use]
    pub fn new() -> Self {
        Self(AtomicU32::new(Self::END))
    }

    /// Adds the slot at `at` to the list, for the release of its buffer. Returns `false` if the
    /// pool was dropped: the release must then be counted.
    ///
    /// Cost: a locked instruction.
    ///
    /// # Safety
    ///
    /// The list is valid until the pool has taken the slot from it, or until the release is
    /// counted. The slot is [watched](SlotState::watched_at) at `at`, and was not pushed before.
    #[must_use]
    pub unsafe fn push(this: NonNull<Self>, place: NonNull<SlotState>, at: u32) -> bool {
        // SAFETY: valid until the exchange below.
        let list = unsafe { &(*this.as_ptr()).0 };
        // SAFETY: likewise.
        let place = unsafe { &*place.as_ptr() };
        // ORDER: Relaxed: only linked to, and compared. The count of late releases has an order of
        // its own.
        let mut first = list.load(Ordering::Relaxed);
        while first != CLOSED {
            place.set_next_freed(first);
            // ORDER: Release pairs with the Acquire in `take`, `close` and `first`: the last holder
            // is done, and the link is there. On failure Relaxed, as above.
            match list.compare_exchange_weak(first, at, RELEASE, Ordering::Relaxed) {
                Ok(_) => return true,
                Err(now) => first = now,
            }
        }
        false
    }

    /// Takes all slots off the list, and returns the first; [`SlotState::next_freed`] returns the
    /// others. For the pool.
    ///
    /// Cost: a load, and a locked instruction if there is one.
    #[must_use]
    pub fn take(&self) -> u32 {
        // ORDER: Relaxed: only compared. What it misses is left to a later call. (A model's load
        // may miss the newest store; its exchange does not.)
        if !cfg!(loom) && self.0.load(Ordering::Relaxed) == Self::END {
            return Self::END;
        }
        // ORDER: Acquire pairs with the Release in `push`.
        self.0.swap(Self::END, Ordering::Acquire)
    }

    /// Takes all slots off the list, as [`take`](Self::take) does, and makes later releases count
    /// themselves.
    #[must_use]
    pub fn close(&self) -> u32 {
        // ORDER: Acquire pairs with the Release in `push`.
        self.0.swap(CLOSED, Ordering::Acquire)
    }

    /// Returns the first slot on the list without removing it. It is for the pool, which does not
    /// take it at the same time.
    #[must_use]
    pub fn first(&self) -> u32 {
        // ORDER: Acquire pairs with the Release in `push`: the links are there.
        self.0.load(Ordering::Acquire)
    }
}

impl Default for FreedList {
    #[inline]
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for FreedList {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FreedList").finish_non_exhaustive()
    }
}
