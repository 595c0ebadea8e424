//! The common part of both ends: a position of its own, and a look at the other's.
//!
//! ```text
//!  positions      read (consumer's)            written (producer's)          read + capacity
//!                   |  filled: the consumer's     |  free: the producer's      |
//!                   |                             |                            |
//! ```
//!
//! Each end knows how far the other was when it last looked. So most calls use nothing that is
//! shared except their own position, which they write by one plain store.
//!
//! # Invariants
//!
//! - C1: a position counts the bytes that its end has moved past, modulo 2^64 or 2^32, from 0; it
//!   is stored by its end alone. `written - read` is at most the capacity.
//! - C2: an end touches the bytes from its position on, as many as it knows to be its own. The
//!   consumer's are those that are written and not yet read, the producer's all others. The other
//!   end touches none of these before this one's position has gone past them.
//! - C3: what was done with bytes is ordered before the store of the position (Release), and what
//!   is done by the other end after its load (Acquire).
//! - C4: bytes come to be used through their other address only where `at` is taken back, and there
//!   [`end_of_addresses`] comes in between. Between threads, C3 orders them, whichever address they
//!   use.
//! - C5: an end that goes to sleep says so in its state, then looks at the other's position and
//!   state. One that moves its position or closes looks at the other's state afterwards. Between
//!   the two steps of each is a fence, so not both miss the other. The one of the end that moves
//!   may be the compiler's alone, as long as the system executes the other for both (`fences`).
//!   Where the system does so no more, both ends execute their own from then on (`Core::go_plain`).

mod waiting;

use alloc::sync::Arc;
use core::marker::PhantomData;
use core::ptr::NonNull;

use bufcore::strategy::sync::{AtomicBool, Ordering, RELEASE};
use bufcore::strategy::{Coop, fences};

use super::header::{CLOSED, Half, Header, SLEEPS};
use super::link::Core;
use crate::sync::end_of_addresses;

/// Which of the two ends.
pub(crate) trait Side {
    const IS_PRODUCER: bool;
}

/// The end that writes.
pub(crate) struct Writes;
/// The end that reads.
pub(crate) struct Reads;

impl Side for Writes {
    const IS_PRODUCER: bool = true;
}

impl Side for Reads {
    const IS_PRODUCER: bool = false;
}

/// One end.
pub(crate) struct End<S: Side> {
    core: Arc<Core>,
    /// As in `core`.
    header: NonNull<Header>,
    /// Of the memory; as in `core`.
    base: NonNull<u8>,
    /// As in `core`.
    capacity: usize,
    /// The position, as an offset: less than the capacity.
    at: usize,
    /// C1.
    position: usize,
    /// How many bytes from here on are known to be this end's (C2).
    known: usize,
    /// Whether the other end's position made no sense when this one looked, which happens between
    /// processes only. Set, it stays so. Atomic for looks by shared borrows.
    is_corrupt: AtomicBool,
    /// Whether the other end was found to be gone without a word.
    is_dead: bool,
    /// Whether this end has said that it is done.
    is_over: bool,
    /// Whether bytes of this end's may differ at their two addresses: they were lent to be changed
    /// in place where nothing is mapped. Those that count are the ones at the addresses from `at`
    /// on.
    is_changed: bool,
    /// For tasks.
    coop: Coop,
    side: PhantomData<S>,
}

// SAFETY: an end has its bytes alone (C2), as a `&mut [u8]` would; what it shares is atomic or
// locked.
unsafe impl<S: Side> Send for End<S> {}
// SAFETY: a shared end gives out nothing but numbers.
unsafe impl<S: Side> Sync for End<S> {}

impl<S: Side> End<S> {
    /// Makes an end that continues where the header says that it was.
    pub(crate) fn new(core: &Arc<Core>) -> Self {
        let (base, capacity) = (core.mirror.base(), core.mirror.capacity());
        let header = core.link.header();
        let core = Arc::clone(core);
        let (at, position, known) = (0, 0, 0);
        let side = PhantomData;
        let mut end = Self {
            core,
            header,
            base,
            capacity,
            at,
            position,
            known,
            is_corrupt: AtomicBool::new(false),
            is_dead: false,
            is_over: false,
            is_changed: false,
            coop: Coop::default(),
            side,
        };
        // ORDER: Relaxed: it was stored by this thread, or by an end that was there before, whose
        // process has ended.
        end.position = end.mine().position.0.load(Ordering::Relaxed);
        end.at = end.position % capacity;
        end.look();
        end
    }

    #[inline(always)]
    pub(crate) fn capacity(&self) -> usize {
        self.capacity
    }

    pub(crate) fn is_mapped(&self) -> bool {
        self.core.mirror.is_mapped()
    }

    #[inline(always)]
    fn header(&self) -> &Header {
        // SAFETY: the link, which `core` keeps, has it there. It is atomics only, so whoever writes
        // to it, it is valid.
        unsafe { self.header.as_ref() }
    }

    #[inline(always)]
    fn mine(&self) -> &Half {
        if S::IS_PRODUCER { &self.header().producer } else { &self.header().consumer }
    }

    #[inline(always)]
    fn other(&self) -> &Half {
        if S::IS_PRODUCER { &self.header().consumer } else { &self.header().producer }
    }

    /// Returns the `len` bytes from the position on, which are known to be this end's.
    #[inline(always)]
    pub(crate) fn window(&self, len: usize) -> NonNull<[u8]> {
        debug_assert!(len <= self.known && self.at < self.capacity);
        // SAFETY: `at` is less than the capacity, of which the memory has twice as much (M1).
        let start = unsafe { self.base.add(self.at) };
        NonNull::slice_from_raw_parts(start, len)
    }

    /// Returns how many bytes are known to be this end's, without a look at the other.
    #[inline(always)]
    pub(crate) fn known(&self) -> usize {
        self.known
    }

    /// Returns whether `n` bytes are this end's. It looks at the other end only if they are not
    /// known to be.
    #[inline(always)]
    pub(crate) fn has(&mut self, n: usize) -> bool {
        n <= self.known || n <= self.look()
    }

    /// Returns how many of `n` bytes are this end's.
    #[inline(always)]
    pub(crate) fn up_to(&mut self, n: usize) -> usize {
        if self.has(n) { n } else { self.known }
    }

    /// Looks how many bytes are this end's, and notes and returns that.
    #[inline]
    pub(crate) fn look(&mut self) -> usize {
        self.known = self.count();
        self.known
    }

    /// Counts the bytes that are this end's, for those who only want to know. Returns 0 when the
    /// other end's position makes no sense.
    #[inline(always)]
    pub(crate) fn count(&self) -> usize {
        // ORDER: Acquire pairs with the store in `advance`: what the other end did with the bytes
        // happened before (C3).
        let other = self.other().position.0.load(Ordering::Acquire);
        let filled = if S::IS_PRODUCER {
            self.position.wrapping_sub(other)
        } else {
            other.wrapping_sub(self.position)
        };
        if filled > self.capacity {
            // ORDER: Relaxed: it is this end's own, for the next call.
            self.is_corrupt.store(true, Ordering::Relaxed);
            0
        } else if S::IS_PRODUCER {
            // The other end may have read the last byte there will be.
            if self.is_over { 0 } else { self.capacity - filled }
        } else {
            filled
        }
    }

    /// Gives the next `n` bytes, which are known to be this end's, to the other end, and wakes it
    /// if it sleeps.
    #[inline(always)]
    pub(crate) fn advance(&mut self, n: usize) {
        debug_assert!(n <= self.known);
        if S::IS_PRODUCER && !self.is_mapped() {
            // SAFETY: these bytes are this end's, and nothing of them is lent: `&mut self`.
            unsafe { self.core.mirror.reflect(self.at, n) };
        }
        end_of_addresses();
        self.at += n;
        self.known -= n;
        if self.at >= self.capacity {
            self.at -= self.capacity;
            if self.is_changed {
                self.bring_down();
            }
        }
        self.position = self.position.wrapping_add(n);
        // ORDER: `RELEASE` pairs with the Acquire in `count`: C3.
        self.mine().position.0.store(self.position, RELEASE);
        self.ring();
    }

    /// Notes that the bytes which are known to be this end's are lent to be changed in place.
    #[inline]
    pub(crate) fn note_changes(&mut self) {
        self.is_changed = !self.is_mapped();
    }

    /// Repairs the bytes that are known to be this end's after `at` was taken back: it makes them
    /// at `at` what they were in the second half. Those that the other end has given meanwhile were
    /// not changed.
    #[cold]
    #[inline(never)]
    fn bring_down(&mut self) {
        self.is_changed = false;
        // SAFETY:
        // - `at` was not less than the capacity a moment ago, and so far from there the bytes that
        //   are known end before twice the capacity, because `at` was less than the capacity before
        //   and they were no more than that.
        // - these bytes are this end's (C2), at both addresses, and nothing of them is lent:
        //   `&mut self`.
        unsafe { self.core.mirror.rebase(self.capacity + self.at, self.known) };
    }

    /// Wakes the other end if it sleeps. After what it waits for (C5).
    #[inline(always)]
    fn ring(&self) {
        // ORDER: Relaxed: an end that sets it waits until it is seen here.
        if self.core.is_plain.load(Ordering::Relaxed) {
            fences::full();
        } else {
            fences::light();
        }
        // ORDER: Relaxed: the fences order it (C5).
        if self.other().state.0.load(Ordering::Relaxed) & SLEEPS != 0 {
            self.wake();
        }
    }

    #[cold]
    #[inline(never)]
    fn wake(&self) {
        let half = self.other();
        // ORDER: Acquire pairs with the Release in `arm`; the lock would do, too.
        if half.state.0.fetch_and(!SLEEPS, Ordering::Acquire) & SLEEPS == 0 {
            return;
        }
        self.core.link.wake(!S::IS_PRODUCER, &half.state.0);
    }

    /// Returns whether the other end is gone, or this one is done. Bytes that the other one wrote
    /// before may be there still.
    #[inline]
    pub(crate) fn is_closed(&self) -> bool {
        self.is_over || self.is_dead || self.has_closed()
    }

    /// Returns whether the other end went in good order.
    #[inline]
    fn has_closed(&self) -> bool {
        // ORDER: Acquire pairs with the Release in `drop`: who sees that the end is gone sees its
        // last position.
        self.other().state.0.load(Ordering::Acquire) & CLOSED != 0
    }
}

impl<S: Side> End<S> {
    /// Tells the other end that this one is gone.
    fn say_closed(&self) {
        // ORDER: Release pairs with the Acquire in `has_closed`.
        self.mine().state.0.fetch_or(CLOSED, Ordering::Release);
        self.ring();
    }
}

impl End<Writes> {
    /// Returns whether `close` was called.
    pub(crate) fn is_over(&self) -> bool {
        self.is_over
    }

    /// Closes this end: no byte is its own any more, and the other end knows.
    pub(crate) fn close(&mut self) {
        self.is_over = true;
        self.known = 0;
        self.say_closed();
    }
}

impl<S: Side> Drop for End<S> {
    fn drop(&mut self) {
        // In a forked child it is the parent that has the end.
        if self.core.link.is_ours() {
            self.say_closed();
        }
    }
}
