//! Receiving: a message is claimed, read or copied, and its place given to the senders.

use bufkit::sync::Ordering;

use super::waiting::{Patience, Refusal};
use super::{Queue, SHORT_BYTES};
use crate::copy::copy;
use crate::lock::Locked;
use crate::messages::error::RecvError;
use crate::messages::frames::{Header, WORD_BYTES, frame_bytes};
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
        self.consumers.pass(&self.frames, &mut positions, header.len(), 1);
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
        Ok(unsafe { self.take_next(positions, header, false) })
    }

    /// Takes the next message, which has this header.
    ///
    /// # Safety
    ///
    /// The producers have published it.
    #[inline]
    unsafe fn take_next(&self, positions: Locked<'_, Positions>, header: Header, is_copy: bool) -> Taken<'_> {
        // SAFETY: the caller's promise.
        let mut held = unsafe { self.take_frames(positions, Header::open(header.len(), is_copy), 1) };
        // SAFETY: the caller's promise, and the frame is claimed.
        held.claim.len = unsafe { self.frames.len_of(held.claim.position, header) };
        Taken { held }
    }

    /// Takes the next frames, as one that has this header.
    ///
    /// # Safety
    ///
    /// The producers have published them, and they are as long.
    #[inline]
    unsafe fn take_frames(&self, mut positions: Locked<'_, Positions>, open: Header, count: u64) -> Held<'_> {
        let claim = Claim { position: positions.claimed, len: open.len(), number: positions.number };
        // SAFETY: published, as the caller promises, and the lock is held (N1, N2).
        unsafe { self.frames.set_header(claim.position, open) };
        self.consumers.pass(&self.frames, &mut positions, claim.len, count);
        Held { queue: self, claim }
    }

    /// Takes the messages that have come, up to `max`, of which there is one at least.
    pub(crate) fn take_many(&self, max: usize) -> Result<TakenMany<'_>, RecvError> {
        let (mut positions, first) = self.next()?;
        positions.limit = self.producers.published();
        let (mut end, mut frames, mut count) = (positions.claimed, 0, 0);
        while count < max.max(1) && end != positions.limit {
            // SAFETY: published by the producers, and the lock is held (N1, N2).
            let header = unsafe { self.frames.header(end) };
            end = self.frames.behind(end, frame_bytes(header.len()));
            frames += 1;
            count += usize::from(!header.is_abandoned());
        }
        let len = self.frames.distance(positions.claimed, end) - WORD_BYTES;
        // SAFETY: published by the producers up to `limit`, as whole frames (N2).
        let held = unsafe { self.take_frames(positions, Header::open(len, false), frames) };
        Ok(TakenMany { held, first, count })
    }

    /// Returns the bytes of the message at `position`.
    ///
    /// # Safety
    ///
    /// The producers have published it with this length, and while the bytes are borrowed it is
    /// claimed and not complete, or the lock is held.
    #[inline]
    unsafe fn bytes(&self, position: usize, len: usize) -> &[u8] {
        let message = self.frames.message(position, len, false);
        // SAFETY:
        // - valid and initialised: the frame is as long.
        // - not written meanwhile, as the caller promises (N1). What was done through other
        //   addresses ended before (F2), and the fences of `Side::lock` and `Side::publish` stand
        //   in between.
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
            // SAFETY: as above.
            copy(target, unsafe { self.bytes(positions.claimed, needed) });
            self.skip(positions, header);
        } else {
            // SAFETY: published by the producers with this header (N2).
            let taken = unsafe { self.take_next(positions, header, true) };
            copy(target, taken.bytes());
        }
        Ok((needed, number))
    }
}

/// A message that was taken, whose place is given back when this is dropped. Whatever unwinds
/// meanwhile: others' wakers do.
pub(crate) struct Taken<'a> {
    /// As long as its message.
    held: Held<'a>,
}

impl Taken<'_> {
    #[inline]
    pub(crate) fn bytes(&self) -> &[u8] {
        let Held { queue, claim } = &self.held;
        // SAFETY: claimed in `take_next`, with this length, and complete when this is dropped.
        unsafe { queue.bytes(claim.position, claim.len) }
    }

    pub(crate) fn number(&self) -> u64 {
        self.held.claim.number
    }
}

/// Messages that were taken at once, and are given back at once.
pub(crate) struct TakenMany<'a> {
    held: Held<'a>,
    /// The first header, as the producers left it.
    first: Header,
    count: usize,
}

impl TakenMany<'_> {
    pub(crate) fn number(&self) -> u64 {
        self.held.claim.number
    }

    pub(crate) fn messages(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        let Self { held: Held { queue, claim }, first, count } = self;
        let (mut position, mut next) = (claim.position, Some(*first));
        (0..*count).map(move |_| {
            loop {
                // SAFETY: within the claim, of which as many messages are left. Its headers behind
                // the first one are as the producers left them, and accessed by nobody else (N1).
                let header = next.take().unwrap_or_else(|| unsafe { queue.frames.header(position) });
                let at = position;
                position = queue.frames.behind(at, frame_bytes(header.len()));
                if !header.is_abandoned() {
                    // SAFETY: as above; published with this header (N2).
                    let len = unsafe { queue.frames.len_of(at, header) };
                    // SAFETY: as above, and complete when this is dropped.
                    return unsafe { queue.bytes(at, len) };
                }
            }
        })
    }
}

/// Frames that were claimed, and are complete when this is dropped.
struct Held<'a> {
    queue: &'a Queue,
    /// Of the consumers' side, and not complete.
    claim: Claim,
}

impl Drop for Held<'_> {
    #[inline]
    fn drop(&mut self) {
        let Self { queue, claim } = self;
        let mut positions = queue.consumers.lock();
        // SAFETY: claimed in `take_frames`, and completed here only; what was lent of it borrowed
        // this.
        let published = unsafe { queue.consumers.complete(&queue.frames, &mut positions, claim, None) };
        drop(positions);
        if published {
            queue.call_senders();
        }
    }
}
