//! What both ends are: a position of its own, and a look at the other's.
//!
//! ```text
//!  positions      read (consumer's)            written (producer's)          read + capacity
//!                   |  filled: the consumer's     |  free: the producer's      |
//!                   |                             |                            |
//!  each end knows   how far the other was when it last looked, so that most calls read and write nothing that is shared but the own
//!                   position, and that is one plain store
//! ```
//!
//! # Invariants
//!
//! - C1: a position counts the bytes that its end has moved past, modulo 2^64 or 2^32, from 0; it is stored by its end alone.
//!   `written - read` is at most the capacity.
//! - C2: an end touches the bytes from its position on, as many as it knows to be its own: the consumer those that are written and not
//!   yet read, the producer all others. The other end touches none of these before this one's position has gone past them.
//! - C3: what was done with bytes is ordered before the store of the position (Release), and what is done by the other end after its
//!   load (Acquire).
//! - C4: bytes come to be used through their other address only where `at` is taken back, and there
//!   [`end_of_addresses`] stands in between. Between threads, C3 orders them, whichever address they use.
//! - C5: who goes to sleep says so in its state, then looks at the other's position and state; who moves its position or closes looks at
//!   the other's state afterwards. Between the two steps of each is a fence, so not both miss the other. The one of the end that moves
//!   may be the compiler's alone, as long as the system executes the other for both (`fences`). Where the system does so no more, both
//!   ends execute their own from then on (`Core::go_plain`).

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::marker::PhantomData;
use core::ptr::NonNull;
use core::task::{Context, Poll};
use core::time::Duration;
use std::time::Instant;

use bufcore::strategy::Sleeper;
use bufcore::strategy::fences;
use bufcore::strategy::sync::{AtomicBool, AtomicU32, AtomicUsize, Ordering, RELEASE};

use super::WaitError;
use crate::map::Mirror;
use crate::parking;
use crate::sync::end_of_addresses;

/// How often an end that waits looks before it sleeps: less than a sleep and its end take.
const LOOKS: u32 = if cfg!(any(loom, shuttle)) { 0 } else { 64 };
/// As the part of the capacity for which an end that had to wait goes on waiting while it comes.
const ENOUGH: usize = 4;
/// How long it lets the other one work in between: a look takes the position from the other processor's cache, and slows it down.
const PAUSES: u32 = 4;
/// The longest that it does so: about a microsecond.
const MOST_PAUSES: u32 = 64;
/// After how long every processor has done what it had begun, and sees what was stored before: that takes less than a microsecond.
const SETTLED: Duration = Duration::from_millis(1);

/// On cache lines of its own: pairs of lines come together on many processors.
#[repr(C, align(128))]
#[derive(Default)]
pub(crate) struct Padded<T>(pub(crate) T);

/// The end sleeps, or is about to: it is to be woken.
pub(crate) const SLEEPS: u32 = 1;
/// The end is gone.
pub(crate) const CLOSED: u32 = 2;

/// What is seen of one end by the other.
#[repr(C)]
#[derive(Default)]
pub(crate) struct Half {
    /// C1.
    pub(crate) position: Padded<AtomicUsize>,
    /// `SLEEPS` and `CLOSED`, and a flag of `shared::link`'s. Apart from the position, because it changes rarely and is read by the
    /// other end all the time.
    pub(crate) state: Padded<AtomicU32>,
}

/// What is seen of both.
#[repr(C)]
#[derive(Default)]
pub(crate) struct Header {
    pub(crate) producer: Half,
    pub(crate) consumer: Half,
}

/// What lies between the ends, beside the ring: threads of one process, or two processes. Asked when an end has to sleep or be woken.
pub(crate) trait Link: Send + Sync {
    /// Where the header is, as long as the link lives. Other processes may write there, whatever they like.
    fn header(&self) -> NonNull<Header>;

    /// Whether fences that concern only this process do not do.
    fn is_plain(&self) -> bool;

    /// Whether tasks can be woken, or threads only.
    fn has_tasks(&self) -> bool;

    /// Remembers whom to wake; `producer` says for which end.
    fn arm(&self, producer: bool, sleeper: Sleeper);

    /// Forgets it.
    fn disarm(&self, producer: bool);

    /// Sleeps until this end is woken, for as long as `limit` at the most, or for no reason. `state` is the end's own.
    fn sleep(&self, state: &AtomicU32, limit: Option<Duration>);

    /// Wakes the end, of which `state` is.
    fn wake(&self, producer: bool, state: &AtomicU32);

    /// Whether the other end is gone without a word.
    fn is_dead(&self, state: &AtomicU32) -> bool;

    /// Whether this end is this process's, and not a copy that a fork made of another's.
    fn is_ours(&self) -> bool;
}

/// What the ends share, in one process.
pub(crate) struct Core {
    mirror: Mirror,
    link: Box<dyn Link>,
    /// Whether those who do not sleep need a fence of their own each time. Set, it stays so.
    is_plain: AtomicBool,
}

impl Core {
    pub(crate) fn new(mirror: Mirror, link: impl Link + 'static) -> Arc<Self> {
        let is_plain = link.is_plain() || !fences::has_heavy();
        Arc::new(Self { mirror, link: Box::new(link), is_plain: AtomicBool::new(is_plain) })
    }

    /// The fence of an end that sleeps, between its two steps (C5).
    fn sleepers_fence(&self) {
        // ORDER: Acquire pairs with the Release in `go_plain`: what the end that set it moved before, without a fence, is seen.
        if !fences::heavy(self.is_plain.load(Ordering::Acquire)) {
            self.go_plain();
        }
    }

    /// Goes on without the system's fence: it was there when the channel was made, and is refused now, as by a sandbox that was closed
    /// meanwhile. The other end may be between its two steps, without a fence. It has taken both when this returns, and what it stored is
    /// seen; its next move comes with a fence.
    #[cold]
    fn go_plain(&self) {
        // ORDER: Release pairs with the Acquire in `sleepers_fence`.
        self.is_plain.store(true, Ordering::Release);
        fences::full();
        std::thread::sleep(SETTLED);
        fences::full();
    }
}

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
    /// Whether the other end's position made no sense when this one looked, which happens between processes only. Set, it stays so.
    /// Atomic for looks by shared borrows.
    is_corrupt: AtomicBool,
    /// Whether the other end was found to be gone without a word.
    is_dead: bool,
    /// Whether this end has said that it is done.
    is_over: bool,
    /// Whether bytes of this end's may differ at their two addresses: they were lent to be changed in place where nothing is mapped. Those
    /// that count are the ones at the addresses from `at` on.
    is_changed: bool,
    side: PhantomData<S>,
}

// SAFETY: an end has its bytes alone (C2), as a `&mut [u8]` would; what it shares is atomic or locked.
unsafe impl<S: Side> Send for End<S> {}
// SAFETY: a shared end gives out nothing but numbers.
unsafe impl<S: Side> Sync for End<S> {}

impl<S: Side> End<S> {
    /// An end that goes on where the header says that it was.
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
            side,
        };
        // ORDER: Relaxed: it was stored by this thread, or by an end that was there before, whose process has ended.
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
        // SAFETY: the link, which `core` keeps, has it there. It is atomics only, so whoever writes to it, it is valid.
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

    /// The `len` bytes from the position on, which are known to be this end's.
    #[inline(always)]
    pub(crate) fn window(&self, len: usize) -> NonNull<[u8]> {
        debug_assert!(len <= self.known && self.at < self.capacity);
        // SAFETY: `at` is less than the capacity, of which the memory has twice as much (M1).
        let start = unsafe { self.base.add(self.at) };
        NonNull::slice_from_raw_parts(start, len)
    }

    /// How many bytes are known to be this end's, without a look at the other.
    #[inline(always)]
    pub(crate) fn known(&self) -> usize {
        self.known
    }

    /// Whether `n` bytes are this end's; looks at the other only if they are not known to be.
    #[inline(always)]
    pub(crate) fn has(&mut self, n: usize) -> bool {
        n <= self.known || n <= self.look()
    }

    /// How many of `n` bytes are this end's.
    #[inline(always)]
    pub(crate) fn up_to(&mut self, n: usize) -> usize {
        if self.has(n) { n } else { self.known }
    }

    /// How many bytes are this end's.
    #[inline]
    pub(crate) fn look(&mut self) -> usize {
        self.known = self.count();
        self.known
    }

    /// How many bytes are this end's, for those who only want to know: 0 when the other end's position makes no sense.
    #[inline(always)]
    pub(crate) fn count(&self) -> usize {
        // ORDER: Acquire pairs with the store in `advance`: what the other end did with the bytes happened before (C3).
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

    /// Gives the next `n` bytes, which are known to be this end's, to the other end, and wakes it if it sleeps.
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

    /// After `at` was taken back: makes the bytes that are known to be this end's at `at` what they were in the second half. Those that the
    /// other end has given meanwhile were not changed.
    #[cold]
    #[inline(never)]
    fn bring_down(&mut self) {
        self.is_changed = false;
        // SAFETY:
        // - `at` was not less than the capacity a moment ago, and so far from there the bytes that are known end before twice the
        //   capacity, because `at` was less than the capacity before and they were no more than that.
        // - these bytes are this end's (C2), at both addresses, and nothing of them is lent: `&mut self`.
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

    /// Says whom to wake when the other end moves or closes. The caller looks once more afterwards.
    fn arm(&self, sleeper: Sleeper) {
        self.core.link.arm(S::IS_PRODUCER, sleeper);
        // ORDER: Release pairs with the Acquire in `wake`.
        self.mine().state.0.fetch_or(SLEEPS, Ordering::Release);
        self.core.sleepers_fence();
    }

    /// Takes that back.
    fn disarm(&self) {
        // ORDER: Relaxed: a late wake finds nobody, or wakes for nothing.
        self.mine().state.0.fetch_and(!SLEEPS, Ordering::Relaxed);
        self.core.link.disarm(S::IS_PRODUCER);
    }

    /// Whether the other end is gone, or this one is done. Bytes that the other one wrote before may be there still.
    #[inline]
    pub(crate) fn is_closed(&self) -> bool {
        self.is_over || self.is_dead || self.has_closed()
    }

    /// Whether the other end went in good order.
    #[inline]
    fn has_closed(&self) -> bool {
        // ORDER: Acquire pairs with the Release in `drop`: who sees that the end is gone sees its last position.
        self.other().state.0.load(Ordering::Acquire) & CLOSED != 0
    }

    /// Whether `n` bytes are this end's, or never will be.
    fn check(&mut self, n: usize) -> Option<Result<(), WaitError>> {
        // Before the look at the position, which is then the last one.
        let is_closed = self.is_closed();
        if self.has(n) && !(S::IS_PRODUCER && is_closed) {
            return Some(Ok(()));
        }
        // ORDER: Relaxed: as where it is set. Models have no other processes.
        if !cfg!(any(loom, shuttle)) && self.is_corrupt.load(Ordering::Relaxed) {
            return Some(Err(WaitError::Corrupt));
        }
        if n > self.capacity {
            return Some(Err(WaitError::TooLong { requested: n, capacity: self.capacity }));
        }
        is_closed.then_some(Err(WaitError::Closed { requested: n, available: self.known }))
    }

    /// Waits for `n` bytes, as a task or as a thread that parks when this is pending.
    fn poll(&mut self, n: usize, sleeper: impl FnOnce() -> Sleeper) -> Poll<Result<(), WaitError>> {
        if let Some(result) = self.check(n) {
            return Poll::Ready(result);
        }
        self.arm(sleeper());
        match self.check(n) {
            Some(result) => {
                self.disarm();
                Poll::Ready(result)
            }
            None => Poll::Pending,
        }
    }

    /// Looks for `n` bytes for a while. Once they are there, it goes on while each look finds more, up to a part of the ring: two ends that
    /// work at the same speed would otherwise meet at each message, and pass the cache lines that they share to and fro. It then looks less and
    /// less often, because each look takes the position away from the end that moves it.
    fn look_for(&mut self, n: usize) -> Option<Result<(), WaitError>> {
        if self.has(n) {
            return self.check(n);
        }
        let enough = n.max(self.capacity / ENOUGH);
        let mut before = 0;
        let mut pauses = PAUSES;
        for _ in 0..LOOKS {
            let known = self.look();
            if known >= n {
                if known >= enough || known == before {
                    break;
                }
                pauses = MOST_PAUSES.min(2 * pauses);
            }
            before = known;
            for _ in 0..pauses {
                core::hint::spin_loop();
            }
        }
        self.check(n)
    }

    /// As `poll`, for tasks.
    pub(crate) fn poll_task(&mut self, n: usize, cx: &Context<'_>) -> Poll<Result<(), WaitError>> {
        if !self.core.link.has_tasks() {
            return Poll::Ready(self.check(n).unwrap_or(Err(WaitError::NoTasks)));
        }
        self.poll(n, || Sleeper::Task(cx.waker().clone()))
    }

    /// Asks the system whether the other end is still there.
    pub(crate) fn look_for_death(&mut self) {
        self.is_dead = self.core.link.is_dead(&self.other().state.0);
    }

    /// Blocks until `n` bytes are this end's; `until` a moment, if there is one.
    pub(crate) fn wait(&mut self, n: usize, until: Option<Instant>) -> Result<(), WaitError> {
        if self.is_dead {
            // It may have come back.
            self.look_for_death();
        }
        if let Some(result) = self.look_for(n) {
            return result;
        }
        loop {
            if let Poll::Ready(result) = self.poll(n, parking::sleeper) {
                return result;
            }
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                self.disarm();
                return Err(WaitError::TimedOut { requested: n, available: self.known });
            }
            self.core.link.sleep(&self.mine().state.0, left);
            self.look_for_death();
        }
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
    /// Whether `close` was called.
    pub(crate) fn is_over(&self) -> bool {
        self.is_over
    }

    /// No byte is this end's any more, and the other end knows.
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
