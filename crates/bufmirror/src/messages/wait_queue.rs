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
//!   the first needs beyond what is kept for another (L4). This may become true by a change of one
//!   of the three: by making more of what is waited for, by going to sleep, or by no longer
//!   spinning. After such a change, the one that made it executes a full fence and then looks
//!   whether it is true. Several messages may be published by one change, and messages that are
//!   sent while a thread spins wake nobody. So a look wakes one task after the other. It ends when
//!   there is not enough for the next one beyond what is `promised` to tasks that were woken and
//!   have not been polled since. A thread that it wakes looks in turn when it ends spinning.
//! - L3: wakers, which are users' code, are cloned, called and dropped with no lock held, and after
//!   all that belongs to the change was changed. So is the allocator called.
//! - L4: at most one waiter for room has a reservation: the first, when it has waited for
//!   `PATIENCE`. Others go behind it, which `impatient` tells them. Whoever finds too little for
//!   the first gives it one. When it is woken, what it needs is kept for it, until it looks. The
//!   reservation ends with the wait, or when it has lapsed: its waiter was woken and has not looked
//!   for `PATIENCE`. Whoever ends it looks (L2).
//! - L5: a look that keeps something for a task that was woken, and leaves threads asleep, makes
//!   the first of them the guard, and calls its waker if it was not, but leaves it in the queue:
//!   it may have gone to sleep for ever. The guard sleeps for `PATIENCE` at most, and then ends the
//!   reservation if it has lapsed. It is the guard of one wake: after the next there is none.
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
//! With a task that has a reservation no thread is woken for what is kept, or it would overtake it
//! each time. That last look made a guard (L5). If the guard left since, it looked at its end, and
//! that was the last look. So the guard is there, and not all is quiet until the reservation has
//! ended. Where no thread sleeps there is no guard, for a task has no clock. A task gets what is
//! kept for another by a look after `PATIENCE`; by any look when all is free, since then nobody may
//! come who would look again; or when it is polled for another reason, since one that sleeps may
//! take what one that comes may.
//!
//! A thread that holds a message is not one that spins, for it may hold it for ever.

mod pending_wait;

use alloc::collections::VecDeque;
use core::mem;
use core::task::Waker;
use core::time::Duration;
use std::time::Instant;

use bufkit::Waiter;
use bufkit::sync::{AtomicBool, AtomicUsize, Ordering, fence};

pub(super) use self::pending_wait::PendingWait;
use crate::lock::{Lock, Locked};

/// How long somebody waits for room and lets others overtake who need less. Several time slices:
/// where there are more threads than processors, to wait for a few milliseconds is nothing special,
/// and a queue that all have to stand in costs two switches of threads for each message. In models,
/// which have no time, any moment is long enough.
pub(super) const PATIENCE: Duration = Duration::from_millis(if cfg!(shuttle) { 0 } else { 50 });
/// The bit of `state` that says that somebody sleeps.
const SLEEPERS: usize = 1;
/// One that spins, in `state`.
const SPINNER: usize = 2;
/// Of this number of looks that find too little, one looks at the clock as well.
const LOOKS_AT_CLOCK: usize = if cfg!(shuttle) { 1 } else { 16 };

/// One that sleeps.
struct WaitEntry {
    number: u64,
    sleeper: Waiter,
    need: usize,
    /// A thread continues soon when it was woken, and counts as one that spins. A task may not be
    /// polled.
    is_thread: bool,
    /// Since when it waits.
    since: Instant,
}

/// The waiter that others go behind (L4).
struct Reservation {
    number: u64,
    need: usize,
    /// When it was woken, if it was and has not looked since.
    woken: Option<Instant>,
    /// The number of the thread that sees to it that this ends, since then (L5).
    guard: Option<u64>,
}

impl Reservation {
    /// Returns whether its waiter was woken, and has not looked for too long (L4).
    fn is_lapsed(&self) -> bool {
        self.woken.is_some_and(|woken| woken.elapsed() >= PATIENCE)
    }
}

#[derive(Default)]
struct WaitEntries {
    entries: VecDeque<WaitEntry>,
    /// Threads among them.
    threads: usize,
    next: u64,
    reservation: Option<Reservation>,
    /// What tasks need that were woken, and neither polled nor dropped since (L2).
    promised: usize,
}

impl WaitEntries {
    /// Returns how much is kept for a waiter that was woken (L4).
    fn kept(&self) -> usize {
        self.reservation.as_ref().filter(|it| it.woken.is_some()).map_or(0, |it| it.need)
    }

    /// Returns how much others may take of what is there, of which there can be `all`.
    fn left_of(&self, available: usize, all: usize) -> usize {
        // When all is free and no thread sleeps, nobody may come who would look again.
        let kept = if available >= all && self.threads == 0 { 0 } else { self.kept() };
        available.saturating_sub(kept)
    }

    /// Makes the first thread the guard, if something is kept. Returns it, unless it was that
    /// before (L5).
    fn new_guard(&mut self) -> Option<Waiter> {
        let reservation = self.reservation.as_mut().filter(|it| it.woken.is_some())?;
        let first = self.entries.iter_mut().find(|entry| entry.is_thread)?;
        let before = reservation.guard.replace(first.number);
        // It leaves another one before it sleeps on.
        let awake = || Waiter::task(Waker::noop().clone());
        (before != Some(first.number)).then(|| mem::replace(&mut first.sleeper, awake()))
    }

    /// Takes an entry off, and notes that its owner is woken.
    fn call(&mut self, place: usize) -> Option<WaitEntry> {
        let entry = self.entries.remove(place)?;
        self.threads -= usize::from(entry.is_thread);
        if let Some(reservation) = self.reservation.as_mut().filter(|it| it.number == entry.number) {
            (reservation.woken, reservation.guard) = (Some(Instant::now()), None);
        }
        Some(entry)
    }
}

/// Those who wait for one thing.
pub(crate) struct WaitQueue {
    entries: Lock<WaitEntries>,
    /// Whether somebody sleeps, and how many spin (L1).
    state: AtomicUsize,
    /// What the first needs (L1).
    need: AtomicUsize,
    /// Whether one has waited for so long that others have to go behind it (L4).
    impatient: AtomicBool,
    /// Looks that found less than the first needs.
    unmet: AtomicUsize,
    /// As much as there can be.
    all: usize,
}

impl WaitQueue {
    /// Makes a queue for what there is at most `all` of.
    pub(crate) fn new(all: usize) -> Self {
        Self {
            entries: Lock::new(WaitEntries::default()),
            state: AtomicUsize::new(0),
            need: AtomicUsize::new(0),
            impatient: AtomicBool::new(false),
            unmet: AtomicUsize::new(0),
            all,
        }
    }

    /// Looks, after a change (L2), and wakes those who have to be woken. `there` says how much
    /// there is, as far as to say whether it is at least its argument.
    #[inline]
    pub(crate) fn look(&self, there: impl Fn(usize) -> usize) {
        // ORDER: SeqCst pairs with itself: of two threads that each change something and then look,
        // one sees what the other changed (L2).
        fence(Ordering::SeqCst);
        // ORDER: Acquire pairs with the Release in `renew`: who sees that somebody sleeps sees what
        // the first needs.
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
        let mut queue = self.entries.lock();
        // ORDER: Relaxed: the bit is of the lock; a thread that has begun to spin meanwhile looks
        // afterwards (L2).
        if self.state.load(Ordering::Relaxed) != SLEEPERS {
            return false;
        }
        self.end_reservation(&mut queue, Reservation::is_lapsed);
        let Some(need) = queue.entries.front().map(|first| first.need) else { return false };
        let available = there(need);
        let is_left = queue.left_of(available, self.all) >= need;
        let Some(first) = is_left.then(|| queue.call(0)).flatten() else {
            let guard = queue.new_guard();
            drop(queue);
            if let Some(guard) = guard {
                guard.wake_caught();
            }
            return false;
        };
        let mut second = None;
        if !first.is_thread {
            queue.promised = queue.promised.saturating_add(need);
            let left = queue.left_of(available, self.all);
            // A thread as well, since the task may not be polled.
            if queue.threads > 0
                && let Some(place) = queue.entries.iter().position(|entry| entry.is_thread)
                && left >= queue.entries[place].need
            {
                second = queue.call(place);
            }
        }
        let spinners = if first.is_thread || second.is_some() { SPINNER } else { 0 };
        let guard = if spinners == 0 { queue.new_guard() } else { None };
        self.renew(&queue, spinners.wrapping_sub(SLEEPERS), spinners);
        let next = queue.entries.front().filter(|_| spinners == 0);
        let wanted = next.map(|next| next.need.saturating_add(queue.kept().max(queue.promised)));
        let is_enough = wanted.is_some_and(|wanted| there(wanted) >= wanted);
        drop(queue);
        // Wakers are users' code.
        if let Some(guard) = guard {
            guard.wake_caught();
        }
        if let Some(second) = second {
            second.sleeper.wake_caught();
        }
        first.sleeper.wake_caught();
        is_enough
    }

    /// Notes that there is too little for the first, if somebody sleeps. Once that was first for
    /// long, others go behind it. Who needs the least that there can be is overtaken by nobody.
    fn too_little(&self) {
        // ORDER: Relaxed: a count.
        if cfg!(loom) || !self.unmet.fetch_add(1, Ordering::Relaxed).is_multiple_of(LOOKS_AT_CLOCK) {
            return;
        }
        let mut queue = self.entries.lock();
        let WaitEntries { entries, reservation: reservation @ None, .. } = &mut *queue else { return };
        if let Some(&WaitEntry { number, need, since, .. }) = entries.front()
            && need > 1
            && since.elapsed() >= PATIENCE
        {
            *reservation = Some(Reservation { number, need, woken: None, guard: None });
            // ORDER: Relaxed: late, somebody overtakes once more.
            self.impatient.store(true, Ordering::Relaxed);
        }
    }

    /// Ends the reservation if it is one that ends; says whether it was.
    fn end_reservation(&self, queue: &mut WaitEntries, ends: impl FnOnce(&Reservation) -> bool) -> bool {
        let ends = queue.reservation.as_ref().is_some_and(ends);
        if ends {
            queue.reservation = None;
            // ORDER: Relaxed: the fence of the look that follows orders it for those who are woken.
            self.impatient.store(false, Ordering::Relaxed);
        }
        ends
    }

    /// Notes that one found too little, which may be for the sake of a waiter that was woken and
    /// does not look. Says whether others need not go behind that one any more.
    #[cold]
    pub(crate) fn pass_by(&self, there: impl Fn(usize) -> usize) -> bool {
        self.too_little();
        let has_lapsed =
            self.is_impatient() && self.end_reservation(&mut self.entries.lock(), Reservation::is_lapsed);
        if has_lapsed {
            // What was kept is for those who sleep, too.
            self.look(there);
        }
        has_lapsed
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

    /// Returns whether others have to go behind somebody who has waited for long.
    #[inline]
    pub(crate) fn is_impatient(&self) -> bool {
        // ORDER: Relaxed: late, somebody overtakes once more.
        self.impatient.load(Ordering::Relaxed)
    }
}
