//! Waiting for a message or for room, as a thread or as a task.

use core::future::poll_fn;
use core::task::{Poll, ready};
use core::time::Duration;
use std::time::Instant;

use bufkit::{Coop, Waiter};

use super::Queue;
use crate::messages::wait_queue::{PATIENCE, PendingWait, WaitQueue};
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

/// The error of an attempt of one side.
pub(crate) trait Refusal: Copy {
    /// Whether it is the senders' side, which waits for room, or that of those who wait for
    /// messages.
    const SENDS: bool;
    /// The timeout has ended.
    const TIMED_OUT: Self;

    /// Returns whether another attempt may succeed.
    fn is_for_now(self) -> bool;
}

impl Queue {
    /// Returns where a side waits, and how much there is of what it waits for, as far as to say
    /// whether it is at least the argument.
    fn waits(&self, sends: bool) -> (&WaitQueue, impl Fn(usize) -> usize + Copy) {
        let side = if sends { &self.consumers } else { &self.producers };
        (&side.wait_queue, move |wanted| if sends { self.room() } else { self.messages(wanted) })
    }

    /// Returns whether there is less than `need` of what a side waits for, although all that the
    /// other side has claimed is published: both at one moment.
    fn lacks(&self, sends: bool, need: usize) -> bool {
        let (own, other) = match sends {
            true => (&self.producers, &self.consumers),
            false => (&self.consumers, &self.producers),
        };
        // Held, so that the other side is at most a capacity ahead: its positions do not come round
        // again. In this order: what is published is no less at the second look.
        let _own = own.lock();
        other.is_settled() && need > if sends { self.room() } else { self.filled() }
    }

    /// Attempts for the last time, after one that was refused. While a copy of the other side is
    /// under way, what came after that may be there, and cannot be had yet: a message whose `send`
    /// has returned, or the room of one that was copied out. So this does not give up before.
    fn attempt_last<R, E: Refusal>(
        &self,
        need: usize,
        refused: E,
        mut attempt: impl FnMut() -> Option<Result<R, E>>,
    ) -> Result<R, E> {
        let other = if E::SENDS { &self.consumers } else { &self.producers };
        for n in 0.. {
            if self.lacks(E::SENDS, need) {
                break;
            }
            let before = other.resting(&self.frames);
            if let Some(answer) = attempt() {
                return answer;
            }
            // Nothing was claimed or published during the attempt, and nothing was being copied.
            if before.is_some() && before == other.resting(&self.frames) {
                break;
            }
            parking::pause(n);
        }
        Err(refused)
    }

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
        let (wait_queue, available) = self.waits(E::SENDS);
        let mut attempt = |has_turn| match attempt(has_turn) {
            Err(error) if error.is_for_now() => None,
            result => Some(result),
        };
        if wait_queue.pass_by(available)
            && let Some(answer) = attempt(false)
        {
            return answer;
        }
        let deadline = match patience {
            Patience::Now => return self.attempt_last(need, refused, || attempt(false)),
            Patience::Until(deadline) => Some(deadline),
            Patience::Forever => None,
        };
        let mut waiter = PendingWait::new(wait_queue, need, true, available);
        let answer = 'waiting: loop {
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                // Nobody woke it, and there may be something all the same.
                break self.attempt_last(need, E::TIMED_OUT, || attempt(waiter.has_turn));
            }
            if waiter.is_asleep(Some(parking::sleeper())) {
                // A task was woken and may not look, with nobody else to notice it.
                let nap = waiter.is_guard().then_some(PATIENCE);
                if nap.is_some() {
                    wait_queue.pass_by(available);
                }
                parking::park(left.into_iter().chain(nap).min());
                continue;
            }
            if waiter.begin_spinning() {
                for _ in 0..=self.spins {
                    if waiter.sees()
                        && let Some(answer) = attempt(waiter.has_turn)
                    {
                        break 'waiting answer;
                    }
                    core::hint::spin_loop();
                }
            }
            if !waiter.sleep(parking::sleeper()) {
                std::thread::sleep(PAUSE);
            }
        };
        // Here, and not at the end of the scope: it may wake others, and where a waker panics then,
        // a result that is returned already would be forgotten instead of dropped.
        drop(waiter);
        answer
    }

    /// Waits as [`wait`](Self::wait) does, for as long as it takes. The future may be dropped at
    /// any time.
    pub(crate) async fn wait_async<R, E: Refusal>(
        &self,
        need: usize,
        mut attempt: impl FnMut(bool) -> Result<R, E>,
    ) -> Result<R, E> {
        let (wait_queue, available) = self.waits(E::SENDS);
        let mut waiter = PendingWait::new(wait_queue, need, false, available);
        let mut coop = Coop::default();
        let answer = poll_fn(|context| {
            ready!(coop.poll_proceed(context));
            if waiter.is_asleep(Some(Waiter::task(context.waker().clone()))) && !waiter.sees_asleep() {
                return Poll::Pending;
            }
            match attempt(waiter.has_turn) {
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
