//! One that waits, a thread or a task, in the queue or on its way.

use std::time::Instant;

use bufkit::Waiter;
use bufkit::sync::Ordering;

use super::WaitQueue;
use super::wait_entries::{Kind, Standing, WaitEntry};

/// One that waits. Dropped, it waits no longer, and passes on what it was woken for.
pub(crate) struct PendingWait<'a, T: Fn(usize) -> usize> {
    queue: &'a WaitQueue,
    /// Says how much there is of what it waits for, as [`WaitQueue::call`] asks.
    there: T,
    need: usize,
    kind: Kind,
    /// Since when it waits, if it is a task that does not let others pass for ever.
    since: Option<Instant>,
    standing: Standing,
    /// Its number, once it has slept.
    number: Option<u64>,
    /// Whether it is in the queue, as far as it knows.
    is_asleep: bool,
    is_impatient: bool,
}

impl<'a, T: Fn(usize) -> usize> PendingWait<'a, T> {
    /// Makes a waiter for `need` bytes of room, or for a message.
    pub(crate) fn new(
        queue: &'a WaitQueue,
        need: usize,
        kind: Kind,
        since: Option<Instant>,
        there: T,
    ) -> Self {
        Self {
            queue,
            there,
            need,
            kind,
            since,
            standing: Standing::default(),
            number: None,
            is_asleep: false,
            is_impatient: false,
        }
    }

    /// Begins to spin, if nobody does; `true` if it does now. For threads.
    pub(crate) fn begin_spinning(&mut self) -> bool {
        if !self.standing.spinning && !self.is_asleep {
            self.standing.spinning = self.queue.begin_spinning();
        }
        self.standing.spinning
    }

    /// Returns whether there is as much as it needs, as far as can be seen.
    pub(crate) fn sees(&self) -> bool {
        (self.there)(self.need) >= self.need
    }

    /// Returns whether it came to its turn by the queue.
    pub(crate) fn has_turn(&self) -> bool {
        self.standing.has_slept
    }

    pub(crate) fn is_impatient(&self) -> bool {
        self.is_impatient
    }

    /// Lets others go behind it, from now on. Once.
    pub(crate) fn grow_impatient(&mut self) {
        debug_assert!(!self.is_impatient);
        self.is_impatient = true;
        // ORDER: Relaxed: late, somebody overtakes once more.
        self.queue.impatient.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns whether it has to look from time to time, asleep. A task has a reservation, and
    /// there may be nobody else to notice that it is not polled.
    pub(crate) fn is_light_sleeper(&self) -> bool {
        // ORDER: Relaxed: it is asked again.
        self.queue.impatient.load(Ordering::Relaxed) > usize::from(self.is_impatient)
    }

    /// Looks, asleep, whether somebody has to be woken: perhaps this one.
    pub(crate) fn look(&self) {
        self.queue.pass_by();
        self.queue.look(&self.there);
    }

    /// Goes to sleep, or to the front of the sleepers if it was first before; may be woken at once.
    /// Returns `false` when there is no memory.
    pub(crate) fn sleep(&mut self, sleeper: Waiter) -> bool {
        debug_assert!(!self.is_asleep);
        let entry = WaitEntry { number: 0, sleeper, need: self.need, kind: self.kind, since: self.since };
        let number = self.queue.sleep(self.number, entry, self.standing, &self.there);
        self.is_asleep = number.is_some();
        if self.is_asleep {
            self.number = number;
            self.standing.spinning = false;
            // Last, since it may call others' wakers.
            self.queue.look(&self.there);
        }
        self.is_asleep
    }

    /// Returns whether it is still asleep. If there is a new sleeper, that is the one to wake from
    /// now on.
    pub(crate) fn is_asleep(&mut self, sleeper: Option<Waiter>) -> bool {
        let Some(number) = self.number.filter(|_| self.is_asleep) else { return false };
        let is = match sleeper {
            Some(sleeper) => self.queue.replace(number, self.need, sleeper),
            None => self.queue.has(number),
        };
        if !is {
            self.is_asleep = false;
            self.standing = Standing { spinning: self.kind.spins_when_woken(), has_slept: true };
        }
        is
    }
}

impl<T: Fn(usize) -> usize> Drop for PendingWait<'_, T> {
    fn drop(&mut self) {
        if self.is_impatient {
            // ORDER: Relaxed: the fence that follows orders it for those who are woken.
            self.queue.impatient.fetch_sub(1, Ordering::Relaxed);
        }
        let Some(number) = self.number else {
            if self.standing.spinning {
                self.queue.end_spinning(&self.there);
            }
            return;
        };
        // Dropped last: its waker is the user's, and the others are looked after whatever it does.
        let entry = if self.is_asleep { self.queue.remove(number, self.kind, self.need) } else { None };
        self.queue.end_reservation(Some(number));
        let spinning =
            self.standing.spinning || self.is_asleep && entry.is_none() && self.kind.spins_when_woken();
        if spinning {
            self.queue.end_spinning(&self.there);
        } else {
            // The next may need less, or may have what a task was woken for.
            self.queue.look(&self.there);
        }
    }
}
