//! Sending: room is claimed, written, and given to the receivers.

use core::ops::Range;

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

/// What frames are claimed for: one message, or several that follow each other.
#[derive(Debug, Clone, Copy)]
struct Room {
    /// Bytes of all frames, less the first header and what follows the last message.
    len: usize,
    messages: u64,
}

impl Room {
    /// Returns the room for these messages, or `None` where there are none.
    fn of(messages: &[&[u8]]) -> Option<Self> {
        let (last, others) = messages.split_last()?;
        // Several of them may be the same bytes, so that their sum overflows.
        let add = |sum: usize, message: &&[u8]| sum.saturating_add(frame_bytes(message.len()));
        Some(Self { len: others.iter().fold(last.len(), add), messages: messages.len() as u64 })
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
        let write = |claim: &Claim| {
            let written = write(self.slot(claim)).of(len);
            if written == len {
                return Header::done(len);
            }
            assert!(written <= len, "{written} bytes written to room for {len}");
            // SAFETY: claimed by the caller, and nothing of it is lent any more; compared above.
            unsafe { self.frames.shorten(claim.position, len, written) }
        };
        self.send_to(Room { len, messages: 1 }, patience, is_copy, write)
    }

    /// Sends all of these messages, or none; returns their numbers.
    pub(crate) fn send_many(&self, messages: &[&[u8]], patience: Patience) -> Result<Range<u64>, SendError> {
        let Some(room) = Room::of(messages) else { return Ok(0..0) };
        let first = self.send_to(room, patience, true, |claim| self.copy_all(claim, messages))?;
        Ok(first..first + room.messages)
    }

    pub(crate) async fn send_many_async(&self, messages: &[&[u8]]) -> Result<Range<u64>, SendError> {
        let Some(room) = Room::of(messages) else { return Ok(0..0) };
        let attempt = |has_turn| {
            let mut write = Some(|claim: &Claim| self.copy_all(claim, messages));
            self.send_now(room, true, has_turn, &mut write)
        };
        // More is refused by the first attempt.
        let bytes = frame_bytes(room.len.min(self.max_message()));
        let first = self.wait_async(bytes, attempt).await?;
        Ok(first..first + room.messages)
    }

    #[inline(always)]
    fn send_to(
        &self,
        room: Room,
        patience: Patience,
        is_copy: bool,
        write: impl FnOnce(&Claim) -> Header,
    ) -> Result<u64, SendError> {
        let mut write = Some(write);
        let mut attempt = |has_turn| self.send_now(room, is_copy, has_turn, &mut write);
        match attempt(false) {
            Err(full @ SendError::Full { .. }) => self.wait(frame_bytes(room.len), patience, full, attempt),
            result => result,
        }
    }

    /// Claims the frames if there is room. `write` writes them, except the first header, which it
    /// returns.
    #[inline(always)]
    fn send_now(
        &self,
        room: Room,
        is_copy: bool,
        has_turn: bool,
        write: &mut Option<impl FnOnce(&Claim) -> Header>,
    ) -> Result<u64, SendError> {
        let Room { len, messages } = room;
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
        let claim = Claim { position: positions.claimed, len, number: positions.number };
        if is_copy && len <= SHORT_BYTES {
            let is_next = Side::is_complete(&positions);
            let header = write(&claim);
            // SAFETY: there is room for it, and the lock is held (N1, N2).
            unsafe { self.frames.set_header(claim.position, header) };
            self.producers.pass(&self.frames, &mut positions, len, messages);
            if is_next {
                self.producers.publish_all(&mut positions);
                drop(positions);
                // It wakes one for each message.
                self.producers.wait_queue.look(|_| self.filled().min(messages as usize));
            }
            return Ok(claim.number);
        }
        // SAFETY: there is room for it, and the lock is held (N1, N2).
        unsafe { self.frames.set_header(claim.position, Header::open(len, is_copy)) };
        self.producers.pass(&self.frames, &mut positions, len, messages);
        drop(positions);
        let number = claim.number;
        let mut open = Open { queue: self, header: Header::abandoned(len), claim };
        open.header = write(&open.claim);
        Ok(number)
    }

    /// Writes these messages, of which there is one at least, to the frames that were claimed for
    /// them; returns the first header.
    fn copy_all(&self, claim: &Claim, messages: &[&[u8]]) -> Header {
        let mut position = claim.position;
        for (index, message) in messages.iter().enumerate() {
            let len = message.len();
            if index > 0 {
                // SAFETY: claimed by the caller, and within the claim, since that has room for all
                // of them. The other headers are accessed by nobody else before the first one says
                // that it is done (N1).
                unsafe { self.frames.set_header(position, Header::done(len)) };
            }
            copy(self.slot(&Claim { position, len, number: claim.number }), message);
            position = self.frames.behind(position, frame_bytes(len));
        }
        Header::done(messages[0].len())
    }

    /// Returns the place for the message of a frame that this thread has claimed, alone or with
    /// others, and completes when it has used this.
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
