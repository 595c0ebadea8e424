//! The transport of the ends: what lies between them, and what they share.

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::ptr::NonNull;
use core::time::Duration;

use bufkit::Waiter;
use bufkit::sync::fences;
use bufkit::sync::{AtomicBool, AtomicU32, Ordering};

use super::header::Header;
use crate::map::Mirror;

/// After how long every processor has done what it had begun, and sees what was stored before: that
/// takes less than a microsecond.
const SETTLED: Duration = Duration::from_millis(1);

/// What lies between the ends, beside the ring: threads of one process, or two processes. Asked
/// when an end has to sleep or be woken.
///
/// # Safety
///
/// [`header`](Self::header) returns the same address at each call. A [`Header`] is there as long as
/// the transport lives, also if the transport is moved, and is accessed by atomics alone.
pub(crate) unsafe trait Transport: Send + Sync {
    /// Returns where the header is. Other processes may write there, whatever they like.
    fn header(&self) -> NonNull<Header>;

    /// Returns whether both ends are in this process: then its own fences are enough, and tasks can
    /// wait.
    fn is_in_process(&self) -> bool;

    /// Remembers whom to wake, where the header is not enough; `producer` says for which end.
    fn arm(&self, _producer: bool, _sleeper: Waiter) {}

    /// Forgets it.
    fn disarm(&self, _producer: bool) {}

    /// Sleeps until this end is woken, for `limit` at most, or for no reason.
    /// `state` is the end's own.
    fn sleep(&self, state: &AtomicU32, limit: Option<Duration>);

    /// Wakes the end, of which `state` is.
    fn wake(&self, producer: bool, state: &AtomicU32);

    /// Returns whether the other end, of which `state` is, is gone without a word.
    fn is_dead(&self, _state: &AtomicU32) -> bool {
        false
    }
}

/// What the ends share, in one process.
pub(crate) struct Core {
    pub(super) mirror: Mirror,
    pub(super) transport: Box<dyn Transport>,
    /// Whether those who do not sleep need a fence of their own each time. Set, it stays so.
    pub(super) is_plain: AtomicBool,
}

impl Core {
    pub(crate) fn new(mirror: Mirror, transport: impl Transport + 'static) -> Arc<Self> {
        let is_plain = !transport.is_in_process() || !fences::has_heavy();
        Arc::new(Self { mirror, transport: Box::new(transport), is_plain: AtomicBool::new(is_plain) })
    }

    /// Executes the fence of an end that sleeps, between its two steps (C5).
    pub(super) fn sleepers_fence(&self) {
        // ORDER: Acquire pairs with the Release in `go_plain`: what the end that set it moved
        // before, without a fence, is seen.
        if !fences::heavy(self.is_plain.load(Ordering::Acquire)) {
            self.go_plain();
        }
    }

    /// Continues without the system's fence: it was there when the channel was made, and is refused
    /// now, as by a sandbox that was closed meanwhile. The other end may be between its two steps,
    /// without a fence. It has taken both when this returns, and what it stored is seen; its next
    /// move comes with a fence.
    #[cold]
    fn go_plain(&self) {
        // ORDER: Release pairs with the Acquire in `sleepers_fence`.
        self.is_plain.store(true, Ordering::Release);
        fences::full();
        std::thread::sleep(SETTLED);
        fences::full();
    }
}
