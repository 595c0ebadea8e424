//! Receiving: a message is claimed, read or copied, and its place given to the senders.

use bufkit::sync::Ordering;

use super::waiting::{Patience, Refusal};
use super::{Queue, SHORT_BYTES};
use crate::copy::copy;
use crate::messages::error::RecvError;
use crate::messages::frames::Header;
use crate::messages::side::{Claim, Positions, Side};
use crate::messages::wait_queue::WaitQueue;

impl Refusal for RecvError {
    const TIMED_OUT: Self = Self::TimedOut;
    const GROWS_IMPATIENT: bool = false;

    fn is_for_now(self) -> bool {
        matches!(self, Self::Empty)
    }

    fn wait_queue(queue: &Queue) -> &WaitQueue {
        &queue.producers.wait_queue
    }

    fn available(queue: &Queue, wanted: usize) -> usize {
        queue.messages(wanted)
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
            Err(RecvError::Empty) => self.receive_later(patience, take),
            result => result,
        }
    }

    #[cold]
    #[inline(never)]
    fn receive_later<R>(
        &self,
        patience: Patience,
        mut take: impl FnMut() -> Result<R, RecvError>,
    ) -> Result<R, RecvError> {
        self.wait(1, patience, RecvError::Empty, |_| take())
    }

    /// Receives as [`receive`](Self::receive) does, and waits as a task.
    pub(crate) async fn receive_async<R>(
        &self,
        mut take: impl FnMut() -> Result<R, RecvError>,
    ) -> Result<R, RecvError> {
        self.wait_async(1, |_| take()).await
    }

    /// Returns the header of the next message, and passes by abandoned frames. The caller holds the
    /// consumers' lock, of which `positions` are.
    #[inline]
    fn next(&self, positions: &mut Positions) -> Result<Header, RecvError> {
        loop {
            if positions.claimed == positions.limit {
                positions.limit = self.producers.published();
                if positions.claimed == positions.limit {
                    return self.nothing(positions);
                }
            }
            // SAFETY: published by the producers, and the lock is held (N1, N2).
            let header = unsafe { self.frames.header(positions.claimed) };
            if !header.is_abandoned() {
                return Ok(header);
            }
            self.skip(positions, header);
        }
    }

    #[cold]
    fn nothing(&self, positions: &mut Positions) -> Result<Header, RecvError> {
        // ORDER: Acquire pairs with the Release in `settle`: all that was published is seen.
        if !self.over.load(Ordering::Acquire) {
            return Err(RecvError::Empty);
        }
        positions.limit = self.producers.published();
        if positions.claimed == positions.limit { Err(RecvError::Closed) } else { self.next(positions) }
    }

    /// Passes by the next frame: it is done.
    #[inline]
    fn skip(&self, positions: &mut Positions, header: Header) {
        let is_next = Side::is_complete(positions);
        self.consumers.pass(&self.frames, positions, header.len());
        if is_next {
            self.consumers.publish_all(positions);
        }
    }

    /// Takes the next message.
    #[inline]
    pub(crate) fn take(&self) -> Result<Taken<'_>, RecvError> {
        let mut positions = self.consumers.lock();
        let before = positions.claimed;
        let found = self.next(&mut positions);
        let has_skipped = positions.claimed != before;
        // SAFETY: published by the producers with this length (N2).
        let taken = found.map(|header| unsafe { self.take_next(&mut positions, header) });
        drop(positions);
        if has_skipped {
            self.call_senders();
        }
        taken
    }

    /// Takes the next message, which has this header, with the consumers' lock held.
    ///
    /// # Safety
    ///
    /// The producers have published it.
    #[inline]
    unsafe fn take_next(&self, positions: &mut Positions, header: Header) -> Taken<'_> {
        // SAFETY: the caller's promise.
        let mut claim = unsafe { self.consumers.claim(&self.frames, positions, Header::open(header.len())) };
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
        let mut positions = self.consumers.lock();
        let before = positions.claimed;
        let found = self.next(&mut positions);
        let has_skipped = positions.claimed != before;
        let fits = found.and_then(|header| {
            // SAFETY: published by the producers with this header, and the lock is held (N1, N2).
            let needed = unsafe { self.frames.len_of(positions.claimed, header) };
            let available = into.len();
            Ok((header, into.get_mut(..needed).ok_or(RecvError::TooSmall { needed, available })?))
        });
        let (header, target) = match fits {
            Ok(fits) => fits,
            Err(error) => {
                drop(positions);
                if has_skipped {
                    self.call_senders();
                }
                return Err(error);
            }
        };
        let (len, number) = (target.len(), positions.number);
        if len <= SHORT_BYTES {
            let claim = Claim { position: positions.claimed, len, number };
            copy(target, self.bytes(&claim));
            self.skip(&mut positions, header);
            drop(positions);
            self.call_senders();
            return Ok((len, number));
        }
        // SAFETY: published by the producers with this length (N2).
        let taken = unsafe { self.take_next(&mut positions, header) };
        drop(positions);
        if has_skipped {
            self.call_senders();
        }
        copy(target, taken.bytes());
        drop(taken);
        Ok((len, number))
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
