//! Ends that sleep and are woken: threads and tasks of one process, or two processes.

pub(crate) mod ends;
pub(crate) mod header;
pub(crate) mod io;
mod pieces;
mod threads;
pub(crate) mod transport;
pub(crate) mod wait_error;
mod waiting;

use alloc::sync::Arc;
use core::fmt;
use core::marker::PhantomData;
use core::ptr::NonNull;

use bufkit::sync::{AtomicBool, AtomicUsize, Ordering};
use bufkit::{Coop, sync::fences};

use self::header::{CLOSED, Half, Header, SLEEPS};
use self::transport::Core;
use super::end::{Access, ChannelState, End};

/// The shared state of two ends that wake each other, as one end holds it.
///
/// It is on separate cache lines: two ends that are adjacent in memory, such as those that
/// `channel` returns, would otherwise pass one line to and fro with each message.
#[repr(align(128))]
pub struct Waking<A: Access> {
    core: Arc<Core>,
    /// As in `core`.
    header: NonNull<Header>,
    /// Whether the other end's position made no sense when this one read it, which happens between
    /// processes only. Set, it stays so. Atomic for looks by shared borrows.
    is_corrupt: AtomicBool,
    /// Whether the other end was found to be gone without a word.
    is_dead: bool,
    /// Whether this end has said that it is done.
    is_over: bool,
    /// For tasks.
    coop: Coop,
    access: PhantomData<A>,
}

impl<A: Access> Waking<A> {
    #[inline(always)]
    fn half(&self, producer: bool) -> &Half {
        // SAFETY: the transport, which `core` keeps, has it there (`Transport`).
        let header = unsafe { self.header.as_ref() };
        header.half(producer)
    }

    #[cold]
    #[inline(never)]
    fn wake(&self, producer: bool) {
        let half = self.half(producer);
        // ORDER: Acquire pairs with the Release in `arm`; the lock would do, too.
        if half.state.0.fetch_and(!SLEEPS, Ordering::Acquire) & SLEEPS == 0 {
            return;
        }
        self.core.transport.wake(producer, &half.state.0);
    }
}

impl<A: Access> fmt::Debug for Waking<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Waking").finish_non_exhaustive()
    }
}

// SAFETY:
// - threads: the core is `Send` and `Sync`, as its transport is; the header is atomics, at an
//   address that stays (`Transport`).
// - positions: fields of the header; others may store there, so they are not this program's.
// - mapped: what the mirror says.
unsafe impl<A: Access> ChannelState for Waking<A> {
    type Access = A;
    const CAN_BE_MAPPED: bool = true;
    const IS_OURS: bool = false;

    #[inline(always)]
    fn position(&self, producer: bool) -> &AtomicUsize {
        &self.half(producer).position.0
    }

    #[inline(always)]
    fn is_mapped(&self) -> bool {
        self.core.mirror.is_mapped()
    }

    #[inline(always)]
    fn note_corrupt(&self) {
        // ORDER: Relaxed: it is this end's own, for the next call.
        self.is_corrupt.store(true, Ordering::Relaxed);
    }

    #[inline(always)]
    fn is_over(&self) -> bool {
        self.is_over
    }

    #[inline(always)]
    fn moved(&self, producer: bool) {
        // ORDER: Relaxed: an end that sets it waits until it is seen here.
        if self.core.is_plain.load(Ordering::Relaxed) {
            fences::full();
        } else {
            fences::light();
        }
        // ORDER: Relaxed: the fences order it (C5).
        if self.half(!producer).state.0.load(Ordering::Relaxed) & SLEEPS != 0 {
            self.wake(!producer);
        }
    }

    fn close(&self, producer: bool) {
        // ORDER: Release pairs with the Acquire in `is_closed`.
        self.half(producer).state.0.fetch_or(CLOSED, Ordering::Release);
        self.moved(producer);
    }

    #[inline]
    fn is_closed(&self, producer: bool, asks: bool) -> bool {
        let state = &self.half(!producer).state.0;
        let is_dead = if asks && !A::LENDS { self.core.transport.is_dead(state) } else { self.is_dead };
        // ORDER: Acquire pairs with the Release in `close`: who sees that the end is gone sees its
        // last position.
        self.is_over || is_dead || state.load(Ordering::Acquire) & CLOSED != 0
    }
}

impl<const PRODUCER: bool, A: Access> End<PRODUCER, Waking<A>> {
    /// Makes an end that continues where the header says that it was.
    pub(crate) fn new(core: &Arc<Core>) -> Self {
        let (base, capacity) = (core.mirror.base(), core.mirror.capacity());
        let channel = Waking {
            core: Arc::clone(core),
            header: core.transport.header(),
            is_corrupt: AtomicBool::new(false),
            is_dead: false,
            is_over: false,
            coop: Coop::default(),
            access: PhantomData,
        };
        // ORDER: Relaxed: it was stored by this thread, or by an end that was there before, whose
        // process has ended.
        let position = channel.position(PRODUCER).load(Ordering::Relaxed);
        // SAFETY:
        // - valid: the mirror's (M1), which the channel keeps.
        // - exclusive: each core is made for one end, or for one of each side; between processes
        //   there is a lock for each side (S2), and the unsafe calls have their callers' promise.
        unsafe { Self::over(channel, base, capacity, position) }
    }

    /// Returns whether the memory is mapped twice. Otherwise each byte is copied once more when it
    /// is written.
    ///
    /// ```
    /// let (producer, consumer) = bufmirror::channel(4096)?;
    /// assert_eq!(producer.is_mapped(), consumer.is_mapped()); // one ring
    /// if !producer.is_mapped() {
    ///     eprintln!("this system does not map memory twice: the channel copies more");
    /// }
    /// # Ok::<(), bufmirror::ConfigError>(())
    /// ```
    #[must_use]
    pub fn is_mapped(&self) -> bool {
        self.channel.is_mapped()
    }
}
