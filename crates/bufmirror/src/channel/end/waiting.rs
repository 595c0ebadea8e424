//! How an end waits: it looks for a while, then sleeps until the other end wakes it.

use core::task::{Context, Poll, ready};
use std::time::Instant;

use bufcore::strategy::Sleeper;
use bufcore::strategy::sync::Ordering;

use super::{End, Side};
use crate::channel::WaitError;
use crate::channel::header::SLEEPS;
use crate::parking;

/// How often an end that waits looks before it sleeps: less than a sleep and its end take.
const LOOKS: u32 = if cfg!(any(loom, shuttle)) { 0 } else { 64 };
/// As the part of the capacity for which an end that had to wait continues to wait while it comes.
const ENOUGH: usize = 4;
/// How long it lets the other one work in between: a look takes the position from the other
/// processor's cache, and slows it down.
const PAUSES: u32 = 4;
/// The longest that it does so: about a microsecond.
const MOST_PAUSES: u32 = 64;

impl<S: Side> End<S> {
    /// Says whom to wake when the other end moves or closes. The caller looks once more afterwards.
    fn arm(&self, sleeper: Sleeper) {
        self.core.link.arm(S::IS_PRODUCER, sleeper);
        // ORDER: Release pairs with the Acquire in `wake`.
        self.mine().state.0.fetch_or(SLEEPS, Ordering::Release);
        self.core.sleepers_fence();
    }

    /// Takes back what `arm` said.
    fn disarm(&self) {
        // ORDER: Relaxed: a late wake finds nobody, or wakes for nothing.
        self.mine().state.0.fetch_and(!SLEEPS, Ordering::Relaxed);
        self.core.link.disarm(S::IS_PRODUCER);
    }

    /// Looks whether `n` bytes are this end's, or never will be.
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

    /// Looks for `n` bytes for a while. Once they are there, it continues while each look finds
    /// more, up to a part of the ring: two ends that work at the same speed would otherwise meet at
    /// each message, and pass the cache lines that they share to and fro. It then looks less and
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

    /// Polls as `poll` does, for tasks.
    pub(crate) fn poll_task(&mut self, n: usize, cx: &Context<'_>) -> Poll<Result<(), WaitError>> {
        if !self.core.link.has_tasks() {
            return Poll::Ready(self.check(n).unwrap_or(Err(WaitError::NoTasks)));
        }
        ready!(self.coop.poll_proceed(cx));
        let polled = self.poll(n, || Sleeper::task(cx.waker().clone()));
        if polled.is_ready() {
            self.coop.made_progress();
        }
        polled
    }

    /// Asks the system whether the other end is still there.
    pub(crate) fn look_for_death(&mut self) {
        self.is_dead = self.core.link.is_dead(&self.other().state.0);
    }

    /// Blocks until `n` bytes are this end's, or until the moment `until`, if there is one.
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
