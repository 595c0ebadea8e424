//! Waiting for a message or for room, as a thread or as a task.

use core::future::poll_fn;
use core::task::{Poll, ready};
use core::time::Duration;
use std::time::Instant;

use bufkit::{Coop, Waiter};

use super::Queue;
use crate::messages::wait_queue::{Kind, PATIENCE, PendingWait, WaitQueue};
use crate::parking;

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
    /// Makes the patience for so long from now on.
    pub(crate) fn of(timeout: Duration) -> Self {
        Instant::now().checked_add(timeout).map_or(Self::Forever, Self::Until)
    }
}

/// The error of an attempt of one side, and what to wait for after it.
pub(super) trait Refusal: Copy {
    /// The time is over.
    const TIMED_OUT: Self;
    /// Whether others go behind one that has waited for [`PATIENCE`], since they may need less and
    /// leave it nothing. Otherwise they all need the same.
    const GROWS_IMPATIENT: bool;

    /// Returns whether another attempt may succeed.
    fn is_for_now(self) -> bool;

    /// Returns where this side waits.
    fn wait_queue(queue: &Queue) -> &WaitQueue;

    /// Returns how much there is of what this side waits for, as far as to say whether it is at
    /// least `wanted`.
    fn available(queue: &Queue, wanted: usize) -> usize;
}

impl Queue {
    /// Waits after an attempt that was refused, until another is not. `attempt` is told whether it
    /// was woken to try, and so may overtake others.
    #[cold]
    #[inline(never)]
    pub(super) fn wait<R, E: Refusal>(
        &self,
        need: usize,
        patience: Patience,
        refused: E,
        mut attempt: impl FnMut(bool) -> Result<R, E>,
    ) -> Result<R, E> {
        let wait_queue = E::wait_queue(self);
        if E::GROWS_IMPATIENT && wait_queue.pass_by() {
            match attempt(false) {
                Err(error) if error.is_for_now() => {}
                result => return result,
            }
        }
        let deadline = match patience {
            Patience::Now => return Err(refused),
            Patience::Until(deadline) => Some(deadline),
            Patience::Forever => None,
        };
        let available = |wanted| E::available(self, wanted);
        let mut waiter = PendingWait::new(wait_queue, need, Kind::Thread, None, available);
        let answer = self.wait_as(&mut waiter, deadline, &mut attempt);
        // Here, and not at the end of the scope: it may wake others, and where a waker panics then,
        // a result that is returned already would be forgotten instead of dropped.
        drop(waiter);
        answer
    }

    fn wait_as<R, E: Refusal>(
        &self,
        waiter: &mut PendingWait<'_, impl Fn(usize) -> usize>,
        deadline: Option<Instant>,
        attempt: &mut impl FnMut(bool) -> Result<R, E>,
    ) -> Result<R, E> {
        let mut attempt = |has_turn| match attempt(has_turn) {
            Err(error) if error.is_for_now() => None,
            result => Some(result),
        };
        let mut began = None;
        loop {
            if waiter.begin_spinning() {
                for _ in 0..self.spins {
                    if waiter.sees()
                        && let Some(answer) = attempt(waiter.has_turn())
                    {
                        return answer;
                    }
                    core::hint::spin_loop();
                }
            }
            let now = Instant::now();
            let began = *began.get_or_insert(now);
            if deadline.is_some_and(|deadline| now >= deadline) {
                return attempt(waiter.has_turn()).unwrap_or(Err(E::TIMED_OUT));
            }
            if !waiter.sleep(parking::sleeper()) {
                std::thread::sleep(PAUSE);
            }
            while waiter.is_asleep(None) {
                let now = Instant::now();
                let mut until = deadline;
                if deadline.is_some_and(|deadline| now >= deadline) {
                    // Nobody woke it, and there may be something all the same.
                    return attempt(waiter.has_turn()).unwrap_or(Err(E::TIMED_OUT));
                }
                if E::GROWS_IMPATIENT && !waiter.is_impatient() && !cfg!(any(loom, shuttle)) {
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
                return answer;
            }
        }
    }

    /// Waits as [`wait`](Self::wait) does, for as long as it takes. The future may be dropped at
    /// any time.
    pub(super) async fn wait_async<R, E: Refusal>(
        &self,
        need: usize,
        mut attempt: impl FnMut(bool) -> Result<R, E>,
    ) -> Result<R, E> {
        let since = E::GROWS_IMPATIENT.then(Instant::now);
        let available = |wanted| E::available(self, wanted);
        let mut waiter = PendingWait::new(E::wait_queue(self), need, Kind::Task, since, available);
        let mut coop = Coop::default();
        let answer = poll_fn(|context| {
            ready!(coop.poll_proceed(context));
            if waiter.is_asleep(Some(Waiter::task(context.waker().clone()))) {
                return Poll::Pending;
            }
            match attempt(waiter.has_turn()) {
                Err(error) if error.is_for_now() => {}
                answer => {
                    coop.made_progress();
                    return Poll::Ready(answer);
                }
            }
            if !waiter.sleep(Waiter::task(context.waker().clone())) {
                context.waker().wake_by_ref();
            }
            Poll::Pending
        })
        .await;
        // As in `wait`.
        drop(waiter);
        answer
    }
}
