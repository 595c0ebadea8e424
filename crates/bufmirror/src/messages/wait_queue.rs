//! The queue of those who wait: for a message, or for room.
//!
//! It counts what they wait for: messages that can be received, or bytes that are free. A waiter is
//! asleep until there are as many as it needs. A thread *spins* when it was woken, or never slept
//! yet, and is about to look. A task that was woken does not count as one that spins: it may not
//! be polled for long, or never.
//!
//! # Invariants
//!
//! - L1: the first bit of `state` says whether somebody sleeps; the others count the threads that
//!   spin. It is changed by whole operations only, and the bit only with the queue locked. `need`
//!   is what the first in the queue waits for.
//! - L2: somebody has to be woken when somebody sleeps, no thread spins, and there is as much as
//!   the first needs. This may become true by a change of one of the three: by making more of what
//!   is waited for, by going to sleep, or by no longer spinning. After such a change, the one that
//!   made it executes a full fence and then looks whether it is true. Several messages may be
//!   published by one change, and messages that are sent while a thread spins wake nobody. So a
//!   look wakes one task after the other. It ends when there is not enough for the next one beyond
//!   what is `promised` to tasks that were woken and have not been polled since. A thread that it
//!   wakes looks in turn when it ends spinning.
//! - L3: wakers, which are users' code, are cloned, called and dropped with no lock held, and after
//!   all that belongs to the change was changed. So is the allocator called.
//! - L4: at most one task has a reservation: it waits for so long that others go behind it, which
//!   `impatient` tells them. It ends with the task's wait, or when the task is not polled for
//!   `PATIENCE` after it was woken.
//!
//! # Why nobody is forgotten
//!
//! Fences of this kind have one order. Take the last of them, when all is quiet: each change comes
//! before its own fence, and so before the look that follows the last one. That look sees all of
//! them. If somebody had to be woken, it did so. If that was a thread, then it spins, and not all
//! was quiet. For a thread ends spinning by finding, by going to sleep again, or by giving up, and
//! each of these is a change after which it looks. If it was a task, its next poll or its drop is
//! such a change, too.
//!
//! A task that is not polled keeps no thread asleep: with a task, the first thread in the queue is
//! woken. And it keeps no other task asleep except for the one message that it was woken for: when
//! a look ends and tasks are asleep, all messages are promised. Each look wakes at least one that
//! there is enough for, promised or not, since a task may be forgotten. A promise ends when the
//! task is polled or dropped. When the next one goes to sleep, the promises are cut to the messages
//! that are left.
//!
//! A thread that holds a message is not one that spins, for it may hold it for ever.

mod pending_wait;
mod wait_entries;

use alloc::collections::VecDeque;

use bufkit::Waiter;
use bufkit::sync::{AtomicUsize, Ordering, fence};

pub(super) use self::pending_wait::PendingWait;
pub(super) use self::wait_entries::{Kind, PATIENCE};
use self::wait_entries::{Reservation, Standing, WaitEntries, WaitEntry};
use crate::lock::{Lock, Locked};

/// The bit of `state` that says that somebody sleeps.
const SLEEPERS: usize = 1;
/// One that spins, in `state`.
const SPINNER: usize = 2;
/// Of this number of looks that find too little, one looks at the clock as well.
const LOOKS_AT_CLOCK: usize = 16;

/// Those who wait for one thing.
pub(crate) struct WaitQueue {
    queue: Lock<WaitEntries>,
    /// Whether somebody sleeps, and how many spin (L1).
    state: AtomicUsize,
    /// What the first needs (L1).
    need: AtomicUsize,
    /// How many have waited for so long that others have to go behind them.
    impatient: AtomicUsize,
    /// Looks that found less than the first needs.
    unmet: AtomicUsize,
    /// As much as there can be.
    all: usize,
}

/// Executes the fence between a change and the look that follows it (L2).
#[inline]
fn full_fence() {
    // ORDER: SeqCst pairs with itself: of two threads that each change something and then look, one
    // sees what the other changed.
    fence(Ordering::SeqCst);
}

impl WaitQueue {
    /// Makes a queue for what there is at most `all` of.
    pub(crate) fn new(all: usize) -> Self {
        Self {
            queue: Lock::new(WaitEntries::default()),
            state: AtomicUsize::new(0),
            need: AtomicUsize::new(0),
            impatient: AtomicUsize::new(0),
            unmet: AtomicUsize::new(0),
            all,
        }
    }

    /// Wakes those who have to be woken, since something has become more. `there` says how much
    /// there is, as far as to say whether it is at least its argument.
    #[inline]
    pub(crate) fn call(&self, there: impl Fn(usize) -> usize) {
        self.look(there);
    }

    /// Looks, after a change (L2).
    #[inline]
    fn look(&self, there: impl Fn(usize) -> usize) {
        full_fence();
        // ORDER: Acquire pairs with the Release in `sleep` and `remove`: who sees that somebody
        // sleeps sees what the first needs.
        if self.state.load(Ordering::Acquire) == SLEEPERS {
            self.wake_first(there);
        }
    }

    #[cold]
    #[inline(never)]
    fn wake_first(&self, there: impl Fn(usize) -> usize) {
        // ORDER: Relaxed: who changes it looks again afterwards (L2).
        let need = self.need.load(Ordering::Relaxed);
        if there(need) < need {
            return self.too_little();
        }
        while self.wake_next(&there) {}
    }

    /// Wakes the first, and returns whether there is enough for the next one as well (L2).
    fn wake_next(&self, there: impl Fn(usize) -> usize) -> bool {
        let mut queue = self.queue.lock();
        // ORDER: Relaxed: the bit is of the lock; a thread that has begun to spin meanwhile looks
        // afterwards (L2).
        if self.state.load(Ordering::Relaxed) != SLEEPERS {
            return false;
        }
        let Some(need) = queue.entries.front().map(|first| first.need) else { return false };
        let available = there(need);
        // When all is free, nobody may come who would look again.
        let kept = if available >= self.all { 0 } else { queue.reserved() };
        let is_enough = |entry: &WaitEntry| available.saturating_sub(kept) >= entry.need;
        let first = if queue.entries.front().is_some_and(is_enough) { queue.call(0) } else { None };
        let Some(first) = first else { return false };
        // A thread as well, since the task may not be polled.
        let is_thread = |entry: &WaitEntry| entry.kind == Kind::Thread;
        let place = if first.kind == Kind::Task && queue.threads > 0 && !first.kind.spins_when_woken() {
            queue.entries.iter().position(is_thread)
        } else {
            None
        };
        let place = place.filter(|&place| queue.entries.get(place).is_some_and(is_enough));
        let second = place.and_then(|place| queue.call(place));
        let spinners = if first.kind.spins_when_woken() || second.is_some() { SPINNER } else { 0 };
        if first.kind == Kind::Task {
            queue.promised = queue.promised.saturating_add(first.need);
        }
        self.renew(&queue, spinners.wrapping_sub(SLEEPERS), spinners);
        let next = queue.entries.front().filter(|_| spinners == 0);
        let wanted = next.map(|next| next.need.saturating_add(kept.max(queue.promised)));
        let is_enough = wanted.is_some_and(|wanted| there(wanted) >= wanted);
        drop(queue);
        // The thread first: a waker may panic.
        if let Some(second) = second {
            second.sleeper.wake();
        }
        if is_enough {
            first.sleeper.wake_caught();
        } else {
            first.sleeper.wake();
        }
        is_enough
    }

    /// Notes that there is too little for somebody who sleeps: a task cannot say by itself that it
    /// has waited for too long.
    fn too_little(&self) {
        // ORDER: Relaxed: a count.
        if !self.unmet.fetch_add(1, Ordering::Relaxed).is_multiple_of(LOOKS_AT_CLOCK)
            || cfg!(any(loom, shuttle))
        {
            return;
        }
        let mut queue = self.queue.lock();
        let WaitEntries { entries, reservation: reservation @ None, .. } = &mut *queue else { return };
        if let Some(WaitEntry { number, need, since: Some(since), .. }) = entries.front()
            && since.elapsed() >= PATIENCE
        {
            *reservation = Some(Reservation { number: *number, need: *need, woken: None });
            // ORDER: Relaxed: late, somebody overtakes once more.
            self.impatient.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Ends the reservation of a task that was woken and not polled for long (L4), or that of the
    /// task `number`; says whether there was one.
    fn end_reservation(&self, number: Option<u64>) -> bool {
        if !self.is_impatient() {
            return false;
        }
        let mut queue = self.queue.lock();
        let ends = queue.reservation.as_ref().is_some_and(|it| match number {
            Some(number) => it.number == number,
            None => it.woken.is_some_and(|woken| woken.elapsed() >= PATIENCE),
        });
        if ends {
            queue.reservation = None;
            // ORDER: Relaxed: the fence of the look that follows orders it for those who are woken.
            self.impatient.fetch_sub(1, Ordering::Relaxed);
        }
        ends
    }

    /// Lets others pass a task that was woken and is not polled; says whether somebody may pass now
    /// who might not before.
    #[cold]
    pub(crate) fn pass_by(&self) -> bool {
        self.end_reservation(None)
    }

    /// Renews what the first needs, after a change of the queue. Adds one of two numbers to the
    /// state, as the queue is empty or not.
    #[inline]
    fn renew(&self, queue: &Locked<'_, WaitEntries>, if_empty: usize, if_not: usize) {
        let first = queue.entries.front();
        // ORDER: Relaxed: the Release below, and the fence after that, publish it.
        self.need.store(first.map_or(0, |first| first.need), Ordering::Relaxed);
        let change = if first.is_none() { if_empty } else { if_not };
        // ORDER: Release pairs with the Acquire in `look`.
        self.state.fetch_add(change, Ordering::Release);
    }

    /// Begins to spin without having slept, unless somebody does already: one is enough.
    fn begin_spinning(&self) -> bool {
        // ORDER: Relaxed: what it finds it finds by other means; whom it keeps from being woken is
        // looked after when it ends (L2).
        let state = self.state.load(Ordering::Relaxed);
        state < SPINNER
            && self
                .state
                .compare_exchange(state, state + SPINNER, Ordering::Relaxed, Ordering::Relaxed)
                .is_ok()
    }

    fn end_spinning(&self, there: impl Fn(usize) -> usize) {
        // ORDER: Relaxed: the fence in `look` orders it.
        self.state.fetch_sub(SPINNER, Ordering::Relaxed);
        self.look(there);
    }

    /// Joins the queue, at its front or at its end, under the number that it has or a new one.
    /// Returns `None` when there is no memory for it. To be followed by a look.
    fn sleep(
        &self,
        number: Option<u64>,
        mut entry: WaitEntry,
        standing: Standing,
        there: impl Fn(usize) -> usize,
    ) -> Option<u64> {
        let mut queue = self.queue.lock();
        while queue.entries.len() == queue.entries.capacity() {
            // The allocator is called without the lock (L3).
            let room = (2 * queue.entries.len()).max(4);
            drop(queue);
            let mut larger = VecDeque::new();
            larger.try_reserve_exact(room).ok()?;
            queue = self.queue.lock();
            if larger.capacity() > queue.entries.len() {
                larger.append(&mut queue.entries);
                core::mem::swap(&mut larger, &mut queue.entries);
            }
            drop(queue);
            drop(larger);
            queue = self.queue.lock();
        }
        let number = number.unwrap_or(queue.next);
        queue.next += 1;
        entry.number = number;
        queue.threads += usize::from(entry.kind == Kind::Thread);
        // What others took is promised no more: a task that was forgotten does not answer.
        queue.promised = queue.promised.min(there(queue.promised));
        if let Some(reservation) = queue.reservation.as_mut().filter(|it| it.number == number) {
            reservation.woken = None;
        }
        let was_empty = queue.entries.is_empty();
        if standing.has_slept {
            queue.entries.push_front(entry);
        } else {
            queue.entries.push_back(entry);
        }
        let rises = if was_empty { SLEEPERS } else { 0 };
        let falls = if standing.spinning { SPINNER } else { 0 };
        self.renew(&queue, 0, rises.wrapping_sub(falls));
        Some(number)
    }

    /// Leaves the queue, with the entry. Returns `None` when it was woken before.
    fn remove(&self, number: u64, kind: Kind, need: usize) -> Option<WaitEntry> {
        let mut queue = self.queue.lock();
        let place = queue.entries.iter().position(|entry| entry.number == number);
        let entry = place.and_then(|place| queue.call(place));
        if entry.is_some() {
            self.renew(&queue, SLEEPERS.wrapping_neg(), 0);
        } else if kind == Kind::Task {
            queue.keep_promise(need);
        }
        entry
    }

    /// Says whom to wake from now on, for a task. Returns `false` when it was woken before.
    fn replace(&self, number: u64, need: usize, mut sleeper: Waiter) -> bool {
        let mut queue = self.queue.lock();
        let entry = queue.entries.iter_mut().find(|entry| entry.number == number);
        let is_asleep = entry.is_some();
        if let Some(entry) = entry {
            core::mem::swap(&mut entry.sleeper, &mut sleeper);
        } else {
            queue.keep_promise(need);
        }
        drop(queue);
        // The old one, or the new one: not under the lock either.
        drop(sleeper);
        is_asleep
    }

    fn has(&self, number: u64) -> bool {
        self.queue.lock().entries.iter().any(|entry| entry.number == number)
    }

    /// Returns whether others have to go behind somebody who has waited for long.
    #[inline]
    pub(crate) fn is_impatient(&self) -> bool {
        // ORDER: Relaxed: late, somebody overtakes once more.
        self.impatient.load(Ordering::Relaxed) != 0
    }
}
