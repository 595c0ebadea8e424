//! One direction: those who write frames, or those who read them.
//!
//! Both are the same. Frames are claimed in order and completed in any; as far as all are complete,
//! they are given to the other side, by one store.
//!
//! ```text
//!            completed          claimed
//!                ▼                 ▼
//!  ─────────────┬────┬──────┬─────┬──────────────
//!   the other's │    │ done │     │ may be claimed   → to `limit`, what the other side gave last
//!  ─────────────┴────┴──────┴─────┴──────────────
//! ```
//!
//! # Invariants
//!
//! - N1: from one side's `completed` to its `claimed` lie whole frames, each with a header. These
//!   headers are accessed with the side's lock held only. Such a frame is done, or somebody of this
//!   side has claimed it and nobody else accesses its message. Several that are claimed at once are
//!   one frame while the first of them is not done: what lies behind that header is the claimer's.
//! - N2: `claimed` never passes what the other side has published. A side does not access again
//!   what it has published.
//! - N3: `number` counts the frames up to `claimed`. Both sides count all frames, so the two give a
//!   frame the same number.

use bufkit::sync::{AtomicUsize, Ordering, RELEASE};
use crossbeam_utils::CachePadded;

use super::frames::{Frames, Header, frame_bytes};
use super::wait_queue::WaitQueue;
use crate::lock::{Lock, Locked};
use crate::sync::end_of_addresses;

/// Where a side is. Positions as in [`Frames`].
pub(crate) struct Positions {
    /// As `claimed` of the side.
    pub(crate) claimed: usize,
    /// Up to here all is done, and published.
    completed: usize,
    /// What the other side was seen to have published.
    pub(crate) limit: usize,
    /// Frames up to `claimed`, since the beginning.
    pub(crate) number: u64,
}

/// A frame that was claimed, and is neither done nor abandoned, or several as one. Who has it
/// completes it, once.
#[derive(Debug)]
pub(crate) struct Claim {
    pub(crate) position: usize,
    /// Bytes of the message, of which the frame may have room for more when it is read (F3 of
    /// `frames`). Of several, those of all frames, less the first header.
    pub(crate) len: usize,
    /// The number of the first.
    pub(crate) number: u64,
}

/// One side of a queue.
pub(crate) struct Side {
    positions: CachePadded<Lock<Positions>>,
    /// Up to here frames are claimed, for those who want to know without the lock. Changed with it.
    claimed: AtomicUsize,
    /// What the other side may have.
    published: CachePadded<AtomicUsize>,
    /// Those of the other side who wait for it.
    pub(crate) wait_queue: CachePadded<WaitQueue>,
}

impl Side {
    /// Makes a side at the beginning, of a queue of `capacity` bytes. The other side has
    /// published up to `limit`.
    pub(crate) fn new(limit: usize, capacity: usize) -> Self {
        Self {
            positions: CachePadded::new(Lock::new(Positions { claimed: 0, completed: 0, limit, number: 0 })),
            claimed: AtomicUsize::new(0),
            published: CachePadded::new(AtomicUsize::new(0)),
            wait_queue: CachePadded::new(WaitQueue::new(capacity)),
        }
    }

    /// Returns the position up to which the other side may have the bytes.
    #[inline]
    pub(crate) fn published(&self) -> usize {
        // ORDER: Acquire pairs with the Release in `publish`: what was done with the bytes up to
        // there happened before.
        self.published.load(Ordering::Acquire)
    }

    /// Returns the position up to which frames were claimed a moment ago.
    #[inline]
    pub(crate) fn claimed(&self) -> usize {
        // ORDER: Relaxed: those who wait look again with the lock, or have seen by a lock all that
        // ended before.
        self.claimed.load(Ordering::Relaxed)
    }

    #[inline]
    pub(crate) fn lock(&self) -> Locked<'_, Positions> {
        let positions = self.positions.lock();
        end_of_addresses();
        positions
    }

    /// Moves `claimed` behind frames of `len` bytes in all, less the first header, which has to be
    /// written before the lock is given up.
    #[inline]
    pub(crate) fn pass(&self, frames: &Frames, positions: &mut Positions, len: usize, count: u64) {
        positions.claimed = frames.behind(positions.claimed, frame_bytes(len));
        positions.number += count;
        // ORDER: Relaxed: as in `claimed`.
        self.claimed.store(positions.claimed, Ordering::Relaxed);
    }

    /// Returns whether a frame that is done at once is published at once: no frame before it is
    /// open.
    #[inline]
    pub(crate) fn is_complete(positions: &Positions) -> bool {
        positions.completed == positions.claimed
    }

    /// Returns whether all claimed frames are published, at the moment of the second look: the
    /// caller knows that no more than a capacity is claimed in between.
    #[inline]
    pub(crate) fn is_settled(&self) -> bool {
        let published = self.published();
        published == self.claimed()
    }

    /// Returns up to where frames are done and how many are claimed, unless what is not done will
    /// be soon: the first frame that is not is being copied.
    pub(crate) fn resting(&self, frames: &Frames) -> Option<(usize, u64)> {
        let positions = self.lock();
        // SAFETY: up to `claimed` each frame has a header, and the lock is held (N1).
        let rests =
            Self::is_complete(&positions) || !unsafe { frames.header(positions.completed) }.is_being_copied();
        rests.then_some((positions.completed, positions.number))
    }

    /// Publishes all that is claimed. The frames up to there are done.
    #[inline]
    pub(crate) fn publish_all(&self, positions: &mut Positions) {
        positions.completed = positions.claimed;
        self.publish(positions);
    }

    #[inline]
    fn publish(&self, positions: &Positions) {
        end_of_addresses();
        // ORDER: Release pairs with the Acquire in `published`.
        self.published.store(positions.completed, RELEASE);
    }

    /// Completes a claim: `header` says how, or else it is done. `true` when something was
    /// published.
    ///
    /// # Safety
    ///
    /// `claim` was claimed here, was not completed before, and its bytes are not accessed any more.
    #[inline]
    pub(crate) unsafe fn complete(
        &self,
        frames: &Frames,
        positions: &mut Positions,
        claim: &Claim,
        header: Option<Header>,
    ) -> bool {
        match header {
            // SAFETY: claimed, so this side's, and the lock is held (N1).
            Some(header) => unsafe { frames.set_header(claim.position, header) },
            // SAFETY: as above.
            None => unsafe { frames.set_done(claim.position) },
        }
        if positions.completed != claim.position {
            return false;
        }
        while positions.completed != positions.claimed {
            // SAFETY: up to `claimed` each frame has a header, and the lock is held (N1).
            let header = unsafe { frames.header(positions.completed) };
            if !header.is_done() {
                break;
            }
            positions.completed = frames.behind(positions.completed, frame_bytes(header.len()));
        }
        self.publish(positions);
        true
    }
}
