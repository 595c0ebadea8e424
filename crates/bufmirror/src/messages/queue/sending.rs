//! Sending: room is claimed, written, and given to the receivers.

use bufkit::sync::Ordering;

use super::waiting::{Patience, Refusal};
use super::{Queue, SHORT_BYTES};
use crate::copy::copy;
use crate::messages::error::SendError;
use crate::messages::frames::{Header, frame_bytes};
use crate::messages::sender::Written;
use crate::messages::side::{Claim, Side};

impl Refusal for SendError {
    const SENDS: bool = true;
    const TIMED_OUT: Self = Self::TimedOut;

    fn is_for_now(self) -> bool {
        matches!(self, Self::Full { .. })
    }
}

impl Queue {
    /// Sends a message of up to `len` bytes, which `write` writes; it returns how many, or nothing
    /// for all. What that is may take long or panic, unless `is_copy`: then it writes all.
    #[inline]
    pub(crate) fn send<W: Written>(
        &self,
        len: usize,
        patience: Patience,
        is_copy: bool,
        write: impl FnOnce(&mut [u8]) -> W,
    ) -> Result<u64, SendError> {
        let mut write = Some(write);
        let mut attempt = |has_turn| self.send_now(len, is_copy, has_turn, &mut write);
        match attempt(false) {
            Err(full @ SendError::Full { .. }) => self.wait(frame_bytes(len), patience, full, attempt),
            result => result,
        }
    }

    pub(crate) async fn send_async(&self, message: &[u8]) -> Result<u64, SendError> {
        let len = message.len();
        let attempt = |has_turn| {
            let mut write = Some(|slot: &mut [u8]| copy(slot, message));
            self.send_now(len, true, has_turn, &mut write)
        };
        self.wait_async(frame_bytes(len), attempt).await
    }

    #[inline]
    fn send_now<W: Written>(
        &self,
        len: usize,
        is_copy: bool,
        has_turn: bool,
        write: &mut Option<impl FnOnce(&mut [u8]) -> W>,
    ) -> Result<u64, SendError> {
        if len > self.max_message() {
            return Err(SendError::TooLong { requested: len, limit: self.max_message() });
        }
        let bytes = frame_bytes(len);
        let mut positions = self.producers.lock();
        // ORDER: Relaxed: it is set with the lock held (S1).
        if self.closed.load(Ordering::Relaxed) {
            return Err(SendError::Closed);
        }
        let capacity = self.frames.capacity();
        let mut room = capacity - self.frames.distance(positions.limit, positions.claimed);
        if room < bytes {
            positions.limit = self.consumers.published();
            room = capacity - self.frames.distance(positions.limit, positions.claimed);
        }
        if room < bytes || !has_turn && self.consumers.wait_queue.is_impatient() {
            return Err(SendError::Full { requested: bytes, available: room });
        }
        let Some(write) = write.take() else { return Err(SendError::Closed) };
        if is_copy && len <= SHORT_BYTES {
            let is_next = Side::is_complete(&positions);
            // SAFETY: there is room for it.
            let claim = unsafe { self.producers.claim(&self.frames, &mut positions, Header::done(len)) };
            write(self.slot(&claim));
            if is_next {
                self.producers.publish_all(&mut positions);
                drop(positions);
                // It is one message, and wakes one.
                self.producers.wait_queue.look(|_| self.filled().min(1));
            }
            return Ok(claim.number);
        }
        // SAFETY: there is room for it.
        let claim = unsafe { self.producers.claim(&self.frames, &mut positions, Header::open(len)) };
        drop(positions);
        let number = claim.number;
        let mut open = Open { queue: self, header: Header::abandoned(len), claim };
        let written = write(open.queue.slot(&open.claim)).of(len);
        open.header = if written == len {
            Header::done(len)
        } else {
            assert!(written <= len, "{written} bytes written to room for {len}");
            // SAFETY: claimed above, and nothing of it is lent any more; compared above.
            unsafe { self.frames.shorten(open.claim.position, len, written) }
        };
        Ok(number)
    }

    /// Returns the place for the message of a frame that this thread has claimed, and completes
    /// when it has used this.
    #[expect(clippy::mut_from_ref, reason = "the claim is exclusive, not the queue")]
    #[inline]
    fn slot<'a>(&'a self, claim: &'a Claim) -> &'a mut [u8] {
        let mut slot = self.frames.message(claim.position, claim.len, true);
        // SAFETY:
        // - valid and initialised: the frame is as long.
        // - exclusive: the frame is claimed and open, or the lock is held (N1), and this is called
        //   once for a claim. What was done through other addresses ended before (F2), and the
        //   fences of `Side::lock` and `Side::publish` stand in between.
        unsafe { slot.as_mut() }
    }
}

/// A frame that is being written, without the lock. Dropped before it is written, it is abandoned.
struct Open<'a> {
    queue: &'a Queue,
    claim: Claim,
    /// What becomes of it.
    header: Header,
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        let Self { queue, claim, header } = self;
        let mut positions = queue.producers.lock();
        // SAFETY: claimed in `send_now`, and completed here only.
        let published =
            unsafe { queue.producers.complete(&queue.frames, &mut positions, claim, Some(*header)) };
        queue.settle(&positions);
        drop(positions);
        if published {
            queue.call_receivers();
        }
    }
}
