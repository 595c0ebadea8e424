//! One that waits, a thread or a task, in the queue or on its way.

use alloc::collections::VecDeque;
use core::mem;
use std::time::Instant;

use bufkit::Waiter;
use bufkit::sync::Ordering;

use super::{SLEEPERS, SPINNER, WaitEntry, WaitQueue};

/// One that waits. Dropped, it waits no longer, and passes on what it was woken for.
pub(crate) struct PendingWait<'a, T: Fn(usize) -> usize> {
    queue: &'a WaitQueue,
    /// Says how much there is of what it waits for, as [`WaitQueue::look`] asks.
    there: T,
    need: usize,
    is_thread: bool,
    /// Is counted as one that spins.
    is_spinning: bool,
    /// Whether it came to its turn by the queue.
    pub(crate) has_turn: bool,
    /// Its number, and since when it waits, once it has slept.
    slept: Option<(u64, Instant)>,
    /// Whether it is in the queue, as far as it knows.
    is_asleep: bool,
}

impl<'a, T: Fn(usize) -> usize> PendingWait<'a, T> {
    /// Makes a waiter, a thread or a task, for `need` bytes of room, or for a message.
    pub(crate) fn new(queue: &'a WaitQueue, need: usize, is_thread: bool, there: T) -> Self {
        let (is_spinning, has_turn, slept, is_asleep) = (false, false, None, false);
        Self { queue, there, need, is_thread, is_spinning, has_turn, slept, is_asleep }
    }

    /// Begins to spin, unless another one does that was not woken: one is enough. `true` if it
    /// spins now. For threads that are awake.
    pub(crate) fn begin_spinning(&mut self) -> bool {
        let state = &self.queue.state;
        // ORDER: Relaxed: what it finds it finds by other means; whom it keeps from being woken is
        // looked after when it ends (L2).
        let seen = state.load(Ordering::Relaxed);
        self.is_spinning = self.is_spinning
            || seen < SPINNER
                && state.compare_exchange(seen, seen + SPINNER, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        self.is_spinning
    }

    /// Returns whether there is as much as it needs, as far as can be seen.
    pub(crate) fn sees(&self) -> bool {
        (self.there)(self.need) >= self.need
    }

    /// Returns whether there is as much as it needs, or may be, where it sleeps and is polled for
    /// another reason. Who was woken for what is there may never take it.
    #[cold]
    pub(crate) fn sees_asleep(&self) -> bool {
        self.queue.pass_by(&self.there) || self.sees()
    }

    /// Goes to sleep, in front of those who came later; may be woken at once. Who sleeps already
    /// sleeps on. Returns `false` when there is no memory.
    pub(crate) fn sleep(&mut self, sleeper: Waiter) -> bool {
        if self.is_asleep {
            return true;
        }
        let since = self.slept.map_or_else(Instant::now, |(_, since)| since);
        let mut larger = VecDeque::new();
        let mut queue = self.queue.entries.lock();
        while queue.entries.len() == queue.entries.capacity() {
            if larger.capacity() > queue.entries.len() {
                larger.append(&mut queue.entries);
                mem::swap(&mut larger, &mut queue.entries);
                break;
            }
            // The allocator is called without the lock (L3).
            let room = (2 * queue.entries.len()).max(4);
            drop(queue);
            if larger.try_reserve_exact(room).is_err() {
                return false;
            }
            queue = self.queue.entries.lock();
        }
        let number = self.slept.map_or(queue.next, |(number, _)| number);
        self.slept = Some((number, since));
        queue.next += 1;
        queue.threads += usize::from(self.is_thread);
        // What others took is promised no more: a task that was forgotten does not answer.
        queue.promised = queue.promised.min((self.there)(queue.promised));
        if let Some(reservation) = queue.reservation.as_mut().filter(|it| it.number == number) {
            reservation.woken = None;
        }
        let rises = if queue.entries.is_empty() { SLEEPERS } else { 0 };
        let falls = if self.is_spinning { SPINNER } else { 0 };
        let entry = WaitEntry { number, sleeper, need: self.need, is_thread: self.is_thread, since };
        // Several may have been woken, and go to sleep again in any order.
        let place = queue.entries.partition_point(|other| other.number < number);
        queue.entries.insert(place, entry);
        self.queue.renew(&queue, 0, rises.wrapping_sub(falls));
        drop(queue);
        (self.is_asleep, self.is_spinning) = (true, false);
        // Last, since it may call others' wakers.
        self.queue.look(&self.there);
        true
    }

    /// Returns whether it is still asleep. If there is a new sleeper, that is the one to wake from
    /// now on.
    pub(crate) fn is_asleep(&mut self, mut sleeper: Option<Waiter>) -> bool {
        let Some((number, _)) = self.slept.filter(|_| self.is_asleep) else { return false };
        let mut queue = self.queue.entries.lock();
        if let Some(entry) = queue.entries.iter_mut().find(|entry| entry.number == number) {
            if let Some(sleeper) = &mut sleeper {
                mem::swap(&mut entry.sleeper, sleeper);
            }
        } else {
            (self.is_asleep, self.has_turn, self.is_spinning) = (false, true, self.is_thread);
            if !self.is_thread {
                // It may have ended before.
                queue.promised = queue.promised.saturating_sub(self.need);
            }
        }
        drop(queue);
        // The old one, or the new one: not under the lock either (L3).
        drop(sleeper);
        self.is_asleep
    }

    /// Returns whether it has to see whether a reservation has lapsed (L5).
    pub(crate) fn is_guard(&self) -> bool {
        let Some((number, _)) = self.slept.filter(|_| self.queue.is_impatient()) else { return false };
        let queue = self.queue.entries.lock();
        queue.reservation.as_ref().is_some_and(|it| it.woken.is_some() && it.guard == Some(number))
    }
}

impl<T: Fn(usize) -> usize> Drop for PendingWait<'_, T> {
    fn drop(&mut self) {
        // Dropped last: its waker is the user's, and the others are looked after whatever it does.
        let left;
        if let Some((number, _)) = self.slept {
            if self.is_asleep {
                let mut queue = self.queue.entries.lock();
                let place = queue.entries.iter().position(|entry| entry.number == number);
                left = place.and_then(|place| queue.call(place));
                if left.is_some() {
                    self.is_asleep = false;
                    self.queue.renew(&queue, SLEEPERS.wrapping_neg(), 0);
                }
            }
            // If it was woken before, what it was woken for is nobody's.
            self.is_asleep(None);
            if self.queue.is_impatient() {
                let queue = &mut self.queue.entries.lock();
                self.queue.end_reservation(queue, |it| it.number == number);
            }
        }
        if self.is_spinning {
            // ORDER: Relaxed: the fence in `look` orders it.
            self.queue.state.fetch_sub(SPINNER, Ordering::Relaxed);
        }
        if self.is_spinning || self.slept.is_some() {
            // The next may need less, or may have what this one was woken for.
            self.queue.look(&self.there);
        }
    }
}
