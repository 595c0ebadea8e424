//! The parts that the ends of a queue share: the bytes and the two sides.
//!
//! # Invariants
//!
//! - S1: once `closed` is set, which is with the producers' lock held, nothing more is claimed by
//!   producers.
//! - S2: once `over` is set, nothing more is published by them: it was closed, and all that was
//!   claimed is complete.

mod receiving;
mod sending;
mod waiting;

#[cfg(not(all(test, loom)))]
pub(super) use alloc::sync::Arc;
#[cfg(all(test, loom))]
pub(super) use bufkit::sync::checker::sync::Arc;

use bufkit::sync::{AtomicBool, Ordering};

use super::frames::{Frames, WORD_BYTES};
use super::side::{Positions, Side};
use crate::map::Mirror;

pub(super) use self::receiving::{Taken, TakenMany};
pub(super) use self::waiting::Patience;

/// Messages up to here are copied while the lock is held: one lock, where longer ones take two.
pub(crate) const SHORT_BYTES: usize = if cfg!(any(loom, shuttle)) { 8 } else { 256 };
/// How often somebody looks again before it sleeps, where there is another processor to change
/// something meanwhile.
const SPINS: u32 = if cfg!(any(loom, miri)) { 0 } else { 100 };

/// A queue.
pub(crate) struct Queue {
    pub(crate) frames: Frames,
    /// Frames that are written. Receivers wait for what it publishes.
    pub(crate) producers: Side,
    /// Frames that are read. Senders wait for what it publishes.
    pub(crate) consumers: Side,
    /// Nothing more may be sent (S1).
    closed: AtomicBool,
    /// Nothing more comes (S2).
    over: AtomicBool,
    spins: u32,
}

/// What the ends of one side share. When the last of them is dropped, the queue is closed.
pub(super) struct Ends {
    pub(super) queue: Arc<Queue>,
}

impl Drop for Ends {
    fn drop(&mut self) {
        self.queue.close();
    }
}

impl Queue {
    pub(crate) fn new(mirror: Mirror) -> Self {
        let alone = !cfg!(any(loom, shuttle))
            && std::thread::available_parallelism().is_ok_and(|count| count.get() == 1);
        let frames = Frames::new(mirror);
        let capacity = frames.capacity();
        Self {
            frames,
            producers: Side::new(0, capacity),
            consumers: Side::new(0, capacity),
            closed: AtomicBool::new(false),
            over: AtomicBool::new(false),
            spins: if alone { 0 } else { SPINS },
        }
    }

    pub(crate) fn max_message(&self) -> usize {
        self.frames.capacity() - WORD_BYTES
    }

    pub(crate) fn is_closed(&self) -> bool {
        // ORDER: Acquire pairs with the Release in `close`, for those who ask what the other side
        // did before.
        self.closed.load(Ordering::Acquire)
    }

    /// Counts the bytes that are free, as far as can be seen. Returns the largest number once the
    /// queue is closed, so that those who wait for some are woken.
    fn room(&self) -> usize {
        if self.is_closed() {
            return usize::MAX;
        }
        // In this order: what is claimed is never less far than what is published.
        let head = self.consumers.published();
        let used = self.frames.distance(head, self.producers.claimed());
        self.frames.capacity().saturating_sub(used)
    }

    /// Counts the bytes that can be received, as far as can be seen. Returns the largest number
    /// once the queue is over, so that those who wait for messages are woken.
    fn filled(&self) -> usize {
        // ORDER: Acquire pairs with the Release in `settle`: what was published before is seen.
        if self.over.load(Ordering::Acquire) {
            return usize::MAX;
        }
        let claimed = self.consumers.claimed();
        self.frames.distance(claimed, self.producers.published())
    }

    /// Counts the messages that can be received, as far as to say whether there are as many as
    /// `wanted`. Where they are counted, those that are being written are, too. Returns the largest
    /// number once the queue is over.
    fn messages(&self, wanted: usize) -> usize {
        let filled = self.filled();
        if wanted <= 1 || filled == 0 || filled == usize::MAX {
            return filled;
        }
        // In this order: a message that is claimed in between is counted, too.
        let received = self.consumers.lock().number;
        let sent = self.producers.lock().number;
        (sent - received) as usize
    }

    fn call_receivers(&self) {
        self.producers.wait_queue.look(|wanted| self.messages(wanted));
    }

    fn call_senders(&self) {
        self.consumers.wait_queue.look(|_| self.room());
    }

    /// Closes the queue for senders. What is in it can be received.
    #[cold]
    pub(crate) fn close(&self) {
        let positions = self.producers.lock();
        // ORDER: Release pairs with the Acquire in `is_closed`.
        self.closed.store(true, Ordering::Release);
        self.settle(&positions);
        drop(positions);
        self.call_senders();
        self.call_receivers();
    }

    /// Notes that nothing more comes, if that is so. The caller holds the producers' lock, of which
    /// `positions` are.
    #[inline]
    fn settle(&self, positions: &Positions) {
        let is_complete = Side::is_complete(positions);
        // ORDER: Relaxed: it is set with the lock held (S1).
        if self.closed.load(Ordering::Relaxed) && is_complete {
            // ORDER: Release pairs with the Acquire in `filled` and `next`.
            self.over.store(true, Ordering::Release);
        }
    }
}
