//! Waiting for a message or for room, as a thread or as a task.

use core::future::poll_fn;
use core::task::{Poll, ready};
use core::time::Duration;
use std::time::Instant;

use bufkit::{Coop, Waiter};

use super::Queue;
use crate::messages::wait_queue::{Kind, PATIENCE, WaitEntry, WaitQueue};
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

/// Whether one that waits lets others pass.
#[derive(Debug, Clone, Copy)]
pub(super) enum Overtakes {
    /// It does, since they all need the same.
    Always,
    /// For so long as [`PATIENCE`], since they may need less and leave it nothing.
    ForAWhile,
}

impl Queue {
    /// Waits until `attempt` has an answer; it is told whether it may overtake nobody, and was
    /// woken to try. Returns `None` when the time is over.
    pub(super) fn wait<R>(
        &self,
        wait_queue: &WaitQueue,
        need: usize,
        patience: Patience,
        overtakes: Overtakes,
        there: impl Fn(usize) -> usize,
        mut attempt: impl FnMut(bool) -> Option<R>,
    ) -> Option<R> {
        let deadline = match patience {
            Patience::Now => return None,
            Patience::Until(deadline) => Some(deadline),
            Patience::Forever => None,
        };
        let mut waiter = WaitEntry::new(wait_queue, need, Kind::Thread, None, there);
        let answer = self.wait_as(&mut waiter, deadline, overtakes, &mut attempt);
        // Here, and not at the end of the scope: it may wake others, and where a waker panics then,
        // a result that is returned already would be forgotten instead of dropped.
        drop(waiter);
        answer
    }

    fn wait_as<R>(
        &self,
        waiter: &mut WaitEntry<'_, impl Fn(usize) -> usize>,
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

    /// Waits as [`wait`](Self::wait) does, for as long as it takes. The future may be dropped at
    /// any time.
    pub(super) async fn wait_async<R>(
        &self,
        wait_queue: &WaitQueue,
        need: usize,
        overtakes: Overtakes,
        there: impl Fn(usize) -> usize,
        mut attempt: impl FnMut(bool) -> Option<R>,
    ) -> R {
        let since = match overtakes {
            Overtakes::Always => None,
            Overtakes::ForAWhile => Some(Instant::now()),
        };
        let mut waiter = WaitEntry::new(wait_queue, need, Kind::Task, since, there);
        let mut coop = Coop::default();
        let answer = poll_fn(|context| {
            ready!(coop.poll_proceed(context));
            if waiter.is_asleep(Some(Waiter::task(context.waker().clone()))) {
                return Poll::Pending;
            }
            if let Some(answer) = attempt(waiter.has_turn()) {
                coop.made_progress();
                return Poll::Ready(answer);
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
