//! Who waits: for a message, or for room.
//!
//! What is waited for is counted in bytes: those that can be received, or those that are free. Who waits is asleep until there are as many
//! as it needs, or *seeks*: it was woken, or never slept yet, and is about to look.
//!
//! # Invariants
//!
//! - L1: the first bit of `state` says whether somebody sleeps; the others count those who seek. It is changed by whole operations only,
//!   and the bit only with the queue locked. `need` is what the first in the queue waits for.
//! - L2: somebody has to be woken when somebody sleeps, nobody seeks, and there is as much as the first needs. Whoever changes one of
//!   the three so that this may have become true, by making more of what is waited for, by going to sleep, or by no longer seeking,
//!   executes a full fence and then looks whether it is true.
//!
//! # Why nobody is forgotten
//!
//! Fences of this kind have one order. Take the last of them, when all is quiet: each change comes before its own fence, and so before
//! the look that follows the last one. That look sees all of them. If somebody had to be woken, it did so: then there is one who seeks,
//! and not all was quiet. Who seeks, ends so: by finding, by going to sleep again, or by giving up, and each of these is a change
//! after which somebody looks. So there is one thread on its way for each sleeper that has to be woken, and never two for the same
//! message.
//!
//! A thread that holds a message is not one that seeks, for it may hold it for ever.

use alloc::collections::VecDeque;

use bufcore::strategy::Sleeper;
use bufcore::strategy::sync::{AtomicUsize, Ordering, fence};

use crate::lock::{Lock, Locked};

/// The bit of `state` that says that somebody sleeps.
const SLEEPERS: usize = 1;
/// One that seeks, in `state`.
const SEEKER: usize = 2;

/// One that sleeps.
struct Ticket {
    number: u64,
    sleeper: Sleeper,
    need: usize,
}

#[derive(Default)]
struct Queue {
    tickets: VecDeque<Ticket>,
    next: u64,
}

/// Those who wait for one thing.
pub(crate) struct Lobby {
    queue: Lock<Queue>,
    /// Whether somebody sleeps, and how many seek (L1).
    state: AtomicUsize,
    /// What the first needs (L1).
    need: AtomicUsize,
    /// How many have waited for so long that others have to go behind them.
    impatient: AtomicUsize,
}

/// The fence between a change and the look that follows it (L2).
#[inline]
fn full_fence() {
    if !cfg!(bufworks_broken = "nofence") {
        // ORDER: SeqCst pairs with itself: of two threads that each change something and then look, one sees what the other changed.
        fence(Ordering::SeqCst);
    }
}

impl Lobby {
    pub(crate) fn new() -> Self {
        Self {
            queue: Lock::new(Queue::default()),
            state: AtomicUsize::new(0),
            need: AtomicUsize::new(0),
            impatient: AtomicUsize::new(0),
        }
    }

    /// Something has become more: wakes who has to be woken. `there` says how much there is.
    #[inline]
    pub(crate) fn call(&self, there: impl Fn() -> usize) {
        if cfg!(bufworks_broken = "nowake") {
            return;
        }
        self.look(there);
    }

    /// Looks, after a change (L2).
    #[inline]
    fn look(&self, there: impl Fn() -> usize) {
        full_fence();
        // ORDER: Acquire pairs with the Release in `sleep` and `remove`: who sees that somebody sleeps sees what the first needs.
        if self.state.load(Ordering::Acquire) == SLEEPERS {
            self.wake_first(there);
        }
    }

    #[cold]
    #[inline(never)]
    fn wake_first(&self, there: impl Fn() -> usize) {
        // ORDER: Relaxed: who changes it looks again afterwards (L2).
        if there() < self.need.load(Ordering::Relaxed) {
            return;
        }
        let mut queue = self.queue.lock();
        // ORDER: Relaxed: the bit is of the lock; who has begun to seek meanwhile looks afterwards (L2).
        let is_wanted = self.state.load(Ordering::Relaxed) == SLEEPERS
            && queue.tickets.front().is_some_and(|first| there() >= first.need);
        let called = if is_wanted { queue.tickets.pop_front() } else { None };
        if called.is_some() {
            self.renew(&queue, SEEKER.wrapping_sub(SLEEPERS), SEEKER);
        }
        drop(queue);
        if let Some(ticket) = called {
            ticket.sleeper.wake();
        }
    }

    /// After a change of the queue: says what the first needs, and adds one of two to the state, as the queue is empty or not.
    #[inline]
    fn renew(&self, queue: &Locked<'_, Queue>, if_empty: usize, if_not: usize) {
        let first = queue.tickets.front();
        // ORDER: Relaxed: the Release below, and the fence after that, publish it.
        self.need.store(first.map_or(0, |first| first.need), Ordering::Relaxed);
        let change = if first.is_none() { if_empty } else { if_not };
        // ORDER: Release pairs with the Acquire in `look`.
        self.state.fetch_add(change, Ordering::Release);
    }

    /// Begins to seek without having slept, unless somebody does already: one is enough.
    fn begin_to_seek(&self) -> bool {
        // ORDER: Relaxed: what it finds it finds by other means; whom it keeps from being woken is looked after when it ends (L2).
        let state = self.state.load(Ordering::Relaxed);
        state < SEEKER
            && self
                .state
                .compare_exchange(state, state + SEEKER, Ordering::Relaxed, Ordering::Relaxed)
                .is_ok()
    }

    fn end_seeking(&self, there: impl Fn() -> usize) {
        // ORDER: Relaxed: the fence in `look` orders it.
        self.state.fetch_sub(SEEKER, Ordering::Relaxed);
        self.look(there);
    }

    /// Joins the queue, at its front or at its end. `None` when there is no memory for it.
    fn sleep(
        &self,
        sleeper: Sleeper,
        need: usize,
        standing: Standing,
        there: impl Fn() -> usize,
    ) -> Option<u64> {
        let mut queue = self.queue.lock();
        if queue.tickets.try_reserve(1).is_err() {
            drop(queue);
            drop(sleeper);
            return None;
        }
        let number = queue.next;
        queue.next += 1;
        let was_empty = queue.tickets.is_empty();
        let ticket = Ticket { number, sleeper, need };
        if standing.has_slept {
            queue.tickets.push_front(ticket)
        } else {
            queue.tickets.push_back(ticket)
        }
        let rises = if was_empty { SLEEPERS } else { 0 };
        let falls = if standing.seeks { SEEKER } else { 0 };
        self.renew(&queue, 0, rises.wrapping_sub(falls));
        drop(queue);
        self.look(there);
        Some(number)
    }

    /// Leaves the queue. `false` when it was woken before.
    fn remove(&self, number: u64) -> bool {
        let mut queue = self.queue.lock();
        let place = queue.tickets.iter().position(|ticket| ticket.number == number);
        let ticket = place.and_then(|place| queue.tickets.remove(place));
        if ticket.is_some() {
            self.renew(&queue, SLEEPERS.wrapping_neg(), 0);
        }
        drop(queue);
        ticket.is_some()
    }

    /// Says whom to wake from now on. `false` when it was woken before.
    fn replace(&self, number: u64, sleeper: Sleeper) -> bool {
        let mut queue = self.queue.lock();
        let ticket = queue.tickets.iter_mut().find(|ticket| ticket.number == number);
        let old = ticket.map(|ticket| core::mem::replace(&mut ticket.sleeper, sleeper));
        drop(queue);
        old.is_some()
    }

    fn has(&self, number: u64) -> bool {
        self.queue.lock().tickets.iter().any(|ticket| ticket.number == number)
    }

    /// Whether others have to go behind somebody who has waited for long.
    #[inline]
    pub(crate) fn is_impatient(&self) -> bool {
        // ORDER: Relaxed: late, somebody overtakes once more.
        self.impatient.load(Ordering::Relaxed) != 0
    }
}

/// How somebody stands who is not asleep.
#[derive(Clone, Copy, Default)]
struct Standing {
    /// Is counted as one that seeks.
    seeks: bool,
    /// Was first in the queue already.
    has_slept: bool,
}

/// One that waits. Dropped, it waits no longer, and passes on what it was woken for.
pub(crate) struct Waiter<'a, T: Fn() -> usize> {
    lobby: &'a Lobby,
    /// Says how much there is of what it waits for.
    there: T,
    need: usize,
    standing: Standing,
    /// Its number in the queue, while it is there, as far as it knows.
    asleep: Option<u64>,
    is_impatient: bool,
}

impl<'a, T: Fn() -> usize> Waiter<'a, T> {
    /// One that waits for `need` bytes.
    pub(crate) fn new(lobby: &'a Lobby, need: usize, there: T) -> Self {
        Self { lobby, there, need, standing: Standing::default(), asleep: None, is_impatient: false }
    }

    /// Begins to seek, if nobody does; `true` if it does now.
    pub(crate) fn begin_to_seek(&mut self) -> bool {
        if !self.standing.seeks && self.asleep.is_none() {
            self.standing.seeks = self.lobby.begin_to_seek();
        }
        self.standing.seeks
    }

    /// Whether there is as much as it needs, as far as can be seen.
    pub(crate) fn sees(&self) -> bool {
        (self.there)() >= self.need
    }

    /// Whether it came to its turn by the queue.
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
        self.lobby.impatient.fetch_add(1, Ordering::Relaxed);
    }

    /// Goes to sleep, or to the front of the sleepers if it was first before; may be woken at once. `false` when there is no memory.
    pub(crate) fn sleep(&mut self, sleeper: Sleeper) -> bool {
        debug_assert!(self.asleep.is_none());
        self.asleep = self.lobby.sleep(sleeper, self.need, self.standing, &self.there);
        if self.asleep.is_some() {
            self.standing.seeks = false;
        }
        self.asleep.is_some()
    }

    /// Whether it is still asleep; with a new sleeper, that is whom to wake from now on.
    pub(crate) fn is_asleep(&mut self, sleeper: Option<Sleeper>) -> bool {
        let Some(number) = self.asleep else { return false };
        let is = match sleeper {
            Some(sleeper) => self.lobby.replace(number, sleeper),
            None => self.lobby.has(number),
        };
        if !is {
            self.asleep = None;
            self.standing = Standing { seeks: true, has_slept: true };
        }
        is
    }
}

impl<T: Fn() -> usize> Drop for Waiter<'_, T> {
    fn drop(&mut self) {
        if self.is_impatient {
            // ORDER: Relaxed: the fence that follows orders it for those who are woken.
            self.lobby.impatient.fetch_sub(1, Ordering::Relaxed);
        }
        match self.asleep {
            // The next may need less.
            Some(number) if self.lobby.remove(number) => self.lobby.look(&self.there),
            Some(_) => self.lobby.end_seeking(&self.there),
            None if self.standing.seeks => self.lobby.end_seeking(&self.there),
            None => {}
        }
    }
}
