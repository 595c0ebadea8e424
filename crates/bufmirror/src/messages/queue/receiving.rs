//! Receiving: a message is claimed, read or copied, and its place given to the senders.

use bufkit::sync::Ordering;

use super::waiting::{Patience, Refusal};
use super::{Queue, SHORT_BYTES};
use crate::copy::copy;
use crate::lock::Locked;
use crate::messages::error::RecvError;
use crate::messages::frames::Header;
use crate::messages::side::{Claim, Positions, Side};

impl Refusal for RecvError {
    const SENDS: bool = false;
    const TIMED_OUT: Self = Self::TimedOut;

    fn is_for_now(self) -> bool {
        matches!(self, Self::Empty)
    }
}

impl Queue {
    /// Waits for the next message, of which `take` makes something.
    #[inline]
    pub(crate) fn receive<R>(
        &self,
        patience: Patience,
        mut take: impl FnMut() -> Result<R, RecvError>,
    ) -> Result<R, RecvError> {
        match take() {
            Err(RecvError::Empty) => self.wait(1, patience, RecvError::Empty, |_| take()),
            result => result,
        }
    }

    /// Returns the header of the next message, with the consumers' lock. Passes by abandoned frames
    /// on the way.
    #[inline]
    fn next(&self) -> Result<(Locked<'_, Positions>, Header), RecvError> {
        loop {
            let mut positions = self.consumers.lock();
            if positions.claimed == positions.limit {
                positions.limit = self.producers.published();
                if positions.claimed == positions.limit {
                    // ORDER: Acquire pairs with the Release in `settle`: all that was published is
                    // seen.
                    if !self.over.load(Ordering::Acquire) {
                        return Err(RecvError::Empty);
                    }
                    positions.limit = self.producers.published();
                    if positions.claimed == positions.limit {
                        return Err(RecvError::Closed);
                    }
                }
            }
            // SAFETY: published by the producers, and the lock is held (N1, N2).
            let header = unsafe { self.frames.header(positions.claimed) };
            if !header.is_abandoned() {
                return Ok((positions, header));
            }
            self.skip(positions, header);
        }
    }

    /// Passes by the next frame, which has this header: it is done.
    #[inline]
    fn skip(&self, mut positions: Locked<'_, Positions>, header: Header) {
        let is_next = Side::is_complete(&positions);
        self.consumers.pass(&self.frames, &mut positions, header.len());
        if is_next {
            self.consumers.publish_all(&mut positions);
        }
        drop(positions);
        self.call_senders();
    }

    /// Takes the next message.
    #[inline]
    pub(crate) fn take(&self) -> Result<Taken<'_>, RecvError> {
        let (positions, header) = self.next()?;
        // SAFETY: published by the producers with this header (N2).
        Ok(unsafe { self.take_next(positions, header) })
    }

    /// Takes the next message, which has this header.
    ///
    /// # Safety
    ///
    /// The producers have published it.
    #[inline]
    unsafe fn take_next(&self, mut positions: Locked<'_, Positions>, header: Header) -> Taken<'_> {
        let open = Header::open(header.len());
        // SAFETY: the caller's promise.
        let mut claim = unsafe { self.consumers.claim(&self.frames, &mut positions, open) };
        // SAFETY: the caller's promise, and the frame is claimed.
        claim.len = unsafe { self.frames.len_of(claim.position, header) };
        Taken { queue: self, claim }
    }

    /// Returns the bytes of a claim.
    #[inline]
    fn bytes<'a>(&'a self, claim: &'a Claim) -> &'a [u8] {
        let message = self.frames.message(claim.position, claim.len, false);
        // SAFETY:
        // - valid and initialised: the frame is as long.
        // - not written meanwhile: the frame is claimed and not complete, or the lock is held (N1).
        //   What was done through other addresses ended before (F2), and the fences of `Side::lock`
        //   and `Side::publish` stand in between.
        unsafe { message.as_ref() }
    }

    /// Copies the next message into `into`; its length and its number.
    #[inline]
    pub(crate) fn copy_next(&self, into: &mut [u8]) -> Result<(usize, u64), RecvError> {
        let (positions, header) = self.next()?;
        // SAFETY: published by the producers with this header, and the lock is held (N1, N2).
        let needed = unsafe { self.frames.len_of(positions.claimed, header) };
        let available = into.len();
        let Some(target) = into.get_mut(..needed) else {
            return Err(RecvError::TooSmall { needed, available });
        };
        let number = positions.number;
        if needed <= SHORT_BYTES {
            let claim = Claim { position: positions.claimed, len: needed, number };
            copy(target, self.bytes(&claim));
            self.skip(positions, header);
        } else {
            // SAFETY: published by the producers with this header (N2).
            let taken = unsafe { self.take_next(positions, header) };
            copy(target, taken.bytes());
        }
        Ok((needed, number))
    }
}

/// A message that was taken, whose place is given back when this is dropped. Whatever unwinds
/// meanwhile: others' wakers do.
pub(crate) struct Taken<'a> {
    queue: &'a Queue,
    /// Of the consumers' side, and not complete.
    claim: Claim,
}

impl Taken<'_> {
    #[inline]
    pub(crate) fn bytes(&self) -> &[u8] {
        self.queue.bytes(&self.claim)
    }

    pub(crate) fn number(&self) -> u64 {
        self.claim.number
    }
}

impl Drop for Taken<'_> {
    #[inline]
    fn drop(&mut self) {
        let Self { queue, claim } = self;
        let mut positions = queue.consumers.lock();
        // SAFETY: claimed in `take_next`, and completed here only; what was lent of it borrowed
        // this.
        let published = unsafe { queue.consumers.complete(&queue.frames, &mut positions, claim, None) };
        drop(positions);
        if published {
            queue.call_senders();
        }
    }
}
