//! What the ends of a queue share: the bytes and the two lanes.
//!
//! # Invariants
//!
//! - S1: once `closed` is set, which is with the producers' lock held, nothing more is claimed by producers.
//! - S2: once `over` is set, nothing more is published by them: it was closed, and all that was claimed is complete.

use core::future::poll_fn;
use core::task::Poll;
use core::time::Duration;
use std::time::Instant;

use bufcore::strategy::Sleeper;
use bufcore::strategy::sync::{AtomicBool, AtomicUsize, Ordering};

use super::error::{RecvError, SendError};
use super::frames::{Frames, Header, WORD_BYTES, frame_bytes};
use super::lane::{Claim, Lane, Places};
use super::lobby::{Kind, Lobby, PATIENCE, Waiter};
use crate::copy::copy;
use crate::map::Mirror;
use crate::parking;

/// Messages up to here are copied while the lock is held: one lock, where longer ones take two.
pub(crate) const SHORT_BYTES: usize = if cfg!(any(loom, shuttle)) { 8 } else { 256 };
/// How often somebody looks again before it sleeps, where there is another processor to change something meanwhile.
const SPINS: u32 = if cfg!(any(loom, miri)) { 1 } else { 100 };
/// When to try again where there was no memory to be woken by.
const PAUSE: Duration = Duration::from_millis(1);

/// How long to wait.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Patience {
    /// Not at all.
    Now,
    /// Until then.
    Until(Instant),
    /// As long as it takes.
    Forever,
}

impl Patience {
    /// For so long from now on.
    pub(crate) fn of(timeout: Duration) -> Self {
        Instant::now().checked_add(timeout).map_or(Self::Forever, Self::Until)
    }
}

/// Whether one that waits lets others pass.
#[derive(Debug, Clone, Copy)]
enum Overtakes {
    /// It does, since they all need the same.
    Always,
    /// For so long as [`PATIENCE`], since they may need less and leave it nothing.
    ForAWhile,
}

/// What a message's writer returns. A type for each, so that no comparison is left for those who write all.
pub(crate) trait Written {
    /// Bytes that it wrote, or claims to have written, to room for `len`.
    fn of(self, len: usize) -> usize;
}

impl Written for () {
    #[inline]
    fn of(self, len: usize) -> usize {
        len
    }
}

impl Written for usize {
    #[inline]
    fn of(self, _: usize) -> usize {
        self
    }
}

/// A queue.
pub(crate) struct Shared {
    pub(crate) frames: Frames,
    /// Frames that are written. Receivers wait for what it publishes.
    pub(crate) producers: Lane,
    /// Frames that are read. Senders wait for what it publishes.
    pub(crate) consumers: Lane,
    /// Nothing more may be sent (S1).
    closed: AtomicBool,
    /// Nothing more comes (S2).
    over: AtomicBool,
    pub(crate) senders: AtomicUsize,
    pub(crate) receivers: AtomicUsize,
    spins: u32,
}

impl Shared {
    pub(crate) fn new(mirror: Mirror) -> Self {
        let alone = !cfg!(any(loom, shuttle))
            && std::thread::available_parallelism().is_ok_and(|count| count.get() == 1);
        let frames = Frames::new(mirror);
        let capacity = frames.capacity();
        Self {
            frames,
            producers: Lane::new(0, capacity),
            consumers: Lane::new(0, capacity),
            closed: AtomicBool::new(false),
            over: AtomicBool::new(false),
            senders: AtomicUsize::new(1),
            receivers: AtomicUsize::new(1),
            spins: if alone { 0 } else { SPINS },
        }
    }

    pub(crate) fn max_message(&self) -> usize {
        self.frames.capacity() - WORD_BYTES
    }

    pub(crate) fn is_closed(&self) -> bool {
        // ORDER: Acquire pairs with the Release in `close`, for those who ask what the other side did before.
        self.closed.load(Ordering::Acquire)
    }

    /// Bytes that are free, as far as can be seen; all there are in the world once it is closed, so that who waits for some is woken.
    fn room(&self) -> usize {
        if self.is_closed() {
            return usize::MAX;
        }
        // In this order: what is claimed is never less far than what is published.
        let head = self.consumers.published();
        let used = self.frames.distance(head, self.producers.claimed());
        self.frames.capacity().saturating_sub(used)
    }

    /// Bytes that can be received, as far as can be seen; all there are in the world once it is over, so that who waits for some is woken.
    fn filled(&self) -> usize {
        // ORDER: Acquire pairs with the Release in `settle`: what was published before is seen.
        if self.over.load(Ordering::Acquire) {
            return usize::MAX;
        }
        let claimed = self.consumers.claimed();
        self.frames.distance(claimed, self.producers.published())
    }

    fn call_receivers(&self) {
        self.producers.lobby.0.call(|| self.filled());
    }

    fn call_senders(&self) {
        self.consumers.lobby.0.call(|| self.room());
    }

    /// Closes the queue for senders. What is in it can be received.
    #[cold]
    pub(crate) fn close(&self) {
        let places = self.producers.lock();
        // ORDER: Release pairs with the Acquire in `is_closed`.
        self.closed.store(true, Ordering::Release);
        self.settle(&places);
        drop(places);
        self.call_senders();
        self.call_receivers();
    }

    /// Says that nothing more comes, if that is so. With the producers' lock held, of which `places` are.
    #[inline]
    fn settle(&self, places: &Places) {
        let is_complete = Lane::is_complete(places);
        // ORDER: Relaxed: it is set with the lock held (S1).
        if self.closed.load(Ordering::Relaxed) && is_complete {
            // ORDER: Release pairs with the Acquire in `filled` and `next`.
            self.over.store(true, Ordering::Release);
        }
    }

    /// Waits until `attempt` has an answer; it is told whether it may overtake nobody, and was woken to try. `None` when the time is over.
    fn wait<R>(
        &self,
        lobby: &Lobby,
        need: usize,
        patience: Patience,
        overtakes: Overtakes,
        there: impl Fn() -> usize,
        mut attempt: impl FnMut(bool) -> Option<R>,
    ) -> Option<R> {
        let deadline = match patience {
            Patience::Now => return None,
            Patience::Until(deadline) => Some(deadline),
            Patience::Forever => None,
        };
        let mut waiter = Waiter::new(lobby, need, Kind::Thread, None, there);
        let answer = self.wait_as(&mut waiter, deadline, overtakes, &mut attempt);
        // Here, and not at the end of the scope: it may wake others, and where a waker panics then, a result that is returned already
        // would be forgotten instead of dropped.
        drop(waiter);
        answer
    }

    fn wait_as<R>(
        &self,
        waiter: &mut Waiter<'_, impl Fn() -> usize>,
        deadline: Option<Instant>,
        overtakes: Overtakes,
        attempt: &mut impl FnMut(bool) -> Option<R>,
    ) -> Option<R> {
        let mut began = None;
        loop {
            if waiter.begin_to_seek() {
                for _ in 0..self.spins {
                    if waiter.sees()
                        && let Some(answer) = attempt(waiter.has_turn())
                    {
                        return Some(answer);
                    }
                    core::hint::spin_loop();
                }
            }
            let now = Instant::now();
            let began = *began.get_or_insert(now);
            if deadline.is_some_and(|deadline| now >= deadline) {
                return attempt(waiter.has_turn());
            }
            if !waiter.sleep(parking::sleeper()) {
                std::thread::sleep(PAUSE);
            }
            while waiter.is_asleep(None) {
                let now = Instant::now();
                let mut until = deadline;
                if deadline.is_some_and(|deadline| now >= deadline) {
                    // Nobody woke it, and there may be something all the same.
                    return attempt(waiter.has_turn());
                }
                if matches!(overtakes, Overtakes::ForAWhile)
                    && !waiter.is_impatient()
                    && !cfg!(any(loom, shuttle))
                {
                    let late = began + PATIENCE;
                    if now >= late {
                        waiter.grow_impatient();
                    } else {
                        until = Some(until.map_or(late, |until| until.min(late)));
                    }
                }
                if waiter.is_light_sleeper() && !cfg!(any(loom, shuttle)) {
                    let nap = now + PATIENCE;
                    until = Some(until.map_or(nap, |until| until.min(nap)));
                    waiter.look();
                }
                parking::park(until.map(|until| until - now));
            }
            if let Some(answer) = attempt(waiter.has_turn()) {
                return Some(answer);
            }
        }
    }
}

/// The same for tasks.
impl Shared {
    /// As [`wait`](Self::wait), for as long as it takes. May be dropped at any time.
    async fn wait_async<R>(
        &self,
        lobby: &Lobby,
        need: usize,
        overtakes: Overtakes,
        there: impl Fn() -> usize,
        mut attempt: impl FnMut(bool) -> Option<R>,
    ) -> R {
        let since = match overtakes {
            Overtakes::Always => None,
            Overtakes::ForAWhile => Some(Instant::now()),
        };
        let mut waiter = Waiter::new(lobby, need, Kind::Task, since, there);
        let answer = poll_fn(|context| {
            if waiter.is_asleep(Some(Sleeper::Task(context.waker().clone()))) {
                return Poll::Pending;
            }
            if let Some(answer) = attempt(waiter.has_turn()) {
                return Poll::Ready(answer);
            }
            if !waiter.sleep(Sleeper::Task(context.waker().clone())) {
                context.waker().wake_by_ref();
            }
            Poll::Pending
        })
        .await;
        // As in `wait`.
        drop(waiter);
        answer
    }

    pub(crate) async fn send_async(&self, message: &[u8]) -> Result<u64, SendError> {
        let len = message.len();
        let attempt = |has_turn| {
            let mut write = Some(|slot: &mut [u8]| copy(slot, message));
            self.send_now(len, true, has_turn, &mut write)
        };
        if len > self.max_message() {
            return Err(SendError::TooLong { requested: len, limit: self.max_message() });
        }
        let lobby = &self.consumers.lobby.0;
        let room = || self.room();
        self.wait_async(lobby, frame_bytes(len), Overtakes::ForAWhile, room, |has_turn| {
            match attempt(has_turn) {
                Err(SendError::Full { .. }) => None,
                result => Some(result),
            }
        })
        .await
    }

    /// As [`receive`](Self::receive).
    pub(crate) async fn receive_async<R>(
        &self,
        mut take: impl FnMut() -> Result<R, RecvError>,
    ) -> Result<R, RecvError> {
        let lobby = &self.producers.lobby.0;
        let filled = || self.filled();
        self.wait_async(lobby, 1, Overtakes::Always, filled, |_| match take() {
            Err(RecvError::Empty) => None,
            result => Some(result),
        })
        .await
    }
}

/// Sending.
impl Shared {
    /// Sends a message of up to `len` bytes, which `write` writes; it returns how many, or nothing for all. What that is may take long or
    /// panic, unless `is_copy`: then it writes all.
    #[inline]
    pub(crate) fn send<W: Written>(
        &self,
        len: usize,
        patience: Patience,
        is_copy: bool,
        write: impl FnOnce(&mut [u8]) -> W,
    ) -> Result<u64, SendError> {
        if len > self.max_message() {
            return Err(SendError::TooLong { requested: len, limit: self.max_message() });
        }
        let mut write = Some(write);
        let mut attempt = |has_turn| self.send_now(len, is_copy, has_turn, &mut write);
        match attempt(false) {
            Err(full @ SendError::Full { .. }) => self.send_later(frame_bytes(len), patience, full, attempt),
            result => result,
        }
    }

    #[cold]
    #[inline(never)]
    fn send_later(
        &self,
        bytes: usize,
        patience: Patience,
        full: SendError,
        mut attempt: impl FnMut(bool) -> Result<u64, SendError>,
    ) -> Result<u64, SendError> {
        let lobby = &self.consumers.lobby.0;
        if lobby.pass_by() {
            match attempt(false) {
                Err(SendError::Full { .. }) => {}
                result => return result,
            }
        }
        let sent = self.wait(
            lobby,
            bytes,
            patience,
            Overtakes::ForAWhile,
            || self.room(),
            |has_turn| match attempt(has_turn) {
                Err(SendError::Full { .. }) => None,
                result => Some(result),
            },
        );
        sent.unwrap_or(match patience {
            Patience::Now => Err(full),
            _ => Err(SendError::TimedOut),
        })
    }

    #[inline]
    fn send_now<W: Written>(
        &self,
        len: usize,
        is_copy: bool,
        has_turn: bool,
        write: &mut Option<impl FnOnce(&mut [u8]) -> W>,
    ) -> Result<u64, SendError> {
        let bytes = frame_bytes(len);
        let mut places = self.producers.lock();
        // ORDER: Relaxed: it is set with the lock held (S1).
        if self.closed.load(Ordering::Relaxed) {
            return Err(SendError::Closed);
        }
        let capacity = self.frames.capacity();
        let mut room = capacity - self.frames.distance(places.limit, places.claimed);
        if room < bytes {
            places.limit = self.consumers.published();
            room = capacity - self.frames.distance(places.limit, places.claimed);
        }
        if room < bytes || !has_turn && self.consumers.lobby.0.is_impatient() {
            return Err(SendError::Full { requested: bytes, available: room });
        }
        let Some(write) = write.take() else { return Err(SendError::Closed) };
        if is_copy && len <= SHORT_BYTES {
            let is_next = Lane::is_complete(&places);
            // SAFETY: there is room for it.
            let claim = unsafe { self.producers.claim(&self.frames, &mut places, Header::done(len)) };
            write(self.slot(&claim));
            if is_next {
                self.producers.publish_all(&mut places);
                drop(places);
                self.call_receivers();
            }
            return Ok(claim.number);
        }
        // SAFETY: there is room for it.
        let claim = unsafe { self.producers.claim(&self.frames, &mut places, Header::open(len)) };
        drop(places);
        let number = claim.number;
        let mut open = Open { shared: self, header: Header::abandoned(len), claim };
        let written = write(open.shared.slot(&open.claim)).of(len);
        open.header = if written == len {
            Header::done(len)
        } else {
            assert!(written <= len, "{written} bytes written to room for {len}");
            // SAFETY: claimed above, and nothing of it is lent any more; compared above.
            unsafe { self.frames.shorten(open.claim.position, len, written) }
        };
        Ok(number)
    }

    /// Where the message of a frame goes that this thread has claimed, and completes behind the use of this.
    #[expect(clippy::mut_from_ref, reason = "the claim is exclusive, not the queue")]
    #[inline]
    fn slot<'a>(&'a self, claim: &'a Claim) -> &'a mut [u8] {
        let mut slot = self.frames.message(claim.position, claim.len, true);
        // SAFETY:
        // - valid and initialised: the frame is as long.
        // - exclusive: the frame is claimed and open, or the lock is held (N1), and this is called once for a claim. What was done
        //   through other addresses ended before (F2), and the fences of `Lane::lock` and `Lane::publish` stand in between.
        unsafe { slot.as_mut() }
    }
}

/// A frame that is being written, without the lock. Dropped before it is written, it is abandoned.
struct Open<'a> {
    shared: &'a Shared,
    claim: Claim,
    /// What becomes of it.
    header: Header,
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        let Self { shared, claim, header } = self;
        let mut places = shared.producers.lock();
        // SAFETY: claimed in `send_now`, and completed here only.
        let published =
            unsafe { shared.producers.complete(&shared.frames, &mut places, claim, Some(*header)) };
        shared.settle(&places);
        drop(places);
        if published {
            shared.call_receivers();
        }
    }
}

/// Receiving.
impl Shared {
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
        let lobby = &self.producers.lobby.0;
        let received = self.wait(
            lobby,
            1,
            patience,
            Overtakes::Always,
            || self.filled(),
            |_| match take() {
                Err(RecvError::Empty) => None,
                result => Some(result),
            },
        );
        received.unwrap_or(match patience {
            Patience::Now => Err(RecvError::Empty),
            _ => Err(RecvError::TimedOut),
        })
    }

    /// The header of the next message, with the consumers' lock held, of which `places` are. Abandoned frames are passed by.
    #[inline]
    fn next(&self, places: &mut Places) -> Result<Header, RecvError> {
        loop {
            if places.claimed == places.limit {
                places.limit = self.producers.published();
                if places.claimed == places.limit {
                    return self.nothing(places);
                }
            }
            // SAFETY: published by the producers, and the lock is held (N1, N2).
            let header = unsafe { self.frames.header(places.claimed) };
            if !header.is_abandoned() {
                return Ok(header);
            }
            self.skip(places, header);
        }
    }

    #[cold]
    fn nothing(&self, places: &mut Places) -> Result<Header, RecvError> {
        // ORDER: Acquire pairs with the Release in `settle`: all that was published is seen.
        if !self.over.load(Ordering::Acquire) {
            return Err(RecvError::Empty);
        }
        places.limit = self.producers.published();
        if places.claimed == places.limit { Err(RecvError::Closed) } else { self.next(places) }
    }

    /// Passes by the next frame: it is done.
    #[inline]
    fn skip(&self, places: &mut Places, header: Header) {
        let is_next = Lane::is_complete(places);
        self.consumers.pass(&self.frames, places, header.len());
        if is_next {
            self.consumers.publish_all(places);
        }
    }

    /// Takes the next message.
    #[inline]
    pub(crate) fn take(&self) -> Result<Taken<'_>, RecvError> {
        let mut places = self.consumers.lock();
        let before = places.claimed;
        let found = self.next(&mut places);
        let has_skipped = places.claimed != before;
        // SAFETY: published by the producers with this length (N2).
        let taken = found.map(|header| unsafe { self.take_next(&mut places, header) });
        drop(places);
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
    unsafe fn take_next(&self, places: &mut Places, header: Header) -> Taken<'_> {
        // SAFETY: the caller's promise.
        let mut claim = unsafe { self.consumers.claim(&self.frames, places, Header::open(header.len())) };
        // SAFETY: the caller's promise, and the frame is claimed.
        claim.len = unsafe { self.frames.len_of(claim.position, header) };
        Taken { shared: self, claim }
    }

    /// The bytes of a claim.
    #[inline]
    fn bytes<'a>(&'a self, claim: &'a Claim) -> &'a [u8] {
        let message = self.frames.message(claim.position, claim.len, false);
        // SAFETY:
        // - valid and initialised: the frame is as long.
        // - not written meanwhile: the frame is claimed and not complete, or the lock is held (N1). What was done through other addresses
        //   ended before (F2), and the fences of `Lane::lock` and `Lane::publish` stand in between.
        unsafe { message.as_ref() }
    }

    /// Copies the next message into `into`; its length and its number.
    #[inline]
    pub(crate) fn copy_next(&self, into: &mut [u8]) -> Result<(usize, u64), RecvError> {
        let mut places = self.consumers.lock();
        let before = places.claimed;
        let found = self.next(&mut places);
        let has_skipped = places.claimed != before;
        let fits = found.and_then(|header| {
            // SAFETY: published by the producers with this header, and the lock is held (N1, N2).
            let needed = unsafe { self.frames.len_of(places.claimed, header) };
            let available = into.len();
            Ok((header, into.get_mut(..needed).ok_or(RecvError::TooSmall { needed, available })?))
        });
        let (header, target) = match fits {
            Ok(fits) => fits,
            Err(error) => {
                drop(places);
                if has_skipped {
                    self.call_senders();
                }
                return Err(error);
            }
        };
        let (len, number) = (target.len(), places.number);
        if len <= SHORT_BYTES {
            let claim = Claim { position: places.claimed, len, number };
            copy(target, self.bytes(&claim));
            self.skip(&mut places, header);
            drop(places);
            self.call_senders();
            return Ok((len, number));
        }
        // SAFETY: published by the producers with this length (N2).
        let taken = unsafe { self.take_next(&mut places, header) };
        drop(places);
        if has_skipped {
            self.call_senders();
        }
        copy(target, taken.bytes());
        drop(taken);
        Ok((len, number))
    }
}

/// A message that was taken, whose place is given back when this is dropped. Whatever unwinds meanwhile: others' wakers do.
pub(crate) struct Taken<'a> {
    shared: &'a Shared,
    /// Of the consumers' lane, and not complete.
    claim: Claim,
}

impl Taken<'_> {
    #[inline]
    pub(crate) fn bytes(&self) -> &[u8] {
        self.shared.bytes(&self.claim)
    }

    pub(crate) fn number(&self) -> u64 {
        self.claim.number
    }
}

impl Drop for Taken<'_> {
    #[inline]
    fn drop(&mut self) {
        let Self { shared, claim } = self;
        let mut places = shared.consumers.lock();
        // SAFETY: claimed in `take_next`, and completed here only; what was lent of it borrowed this.
        let published = unsafe { shared.consumers.complete(&shared.frames, &mut places, claim, None) };
        drop(places);
        if published {
            shared.call_senders();
        }
    }
}
