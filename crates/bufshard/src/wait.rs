//! Who waits for budget: a queue in which those in front go first, so that a large request is not overtaken by small ones.
//!
//! # Who may take memory
//!
//! A ticket is *asleep* when it has looked and has to be woken, and *called* from when it is woken until it looks. It may take memory when
//! nobody in front of it is asleep. So one that is asleep keeps those behind it from memory that it needs itself; one that was called
//! and does not look keeps nobody from anything, whether its executor is busy or it was forgotten.
//!
//! There is no clock here that calls anybody later. So whenever there is memory, all are called who could take it if those in front never
//! looked: from the front on, up to the first for whom there is not enough. Of those who answered their last call, `BACKUPS` at the most: a
//! release of one buffer does not wake everybody who waits for one. (Each is called once, and then at most once in `PATIENCE`, beyond
//! those.)
//!
//! Who is overtaken between its call and its look, `OFTEN` times, is waited for: for `TURN` from its next call on, those behind it look
//! again soon in place of taking memory.
//!
//! # Invariants
//!
//! - W1: while a ticket is in the queue, `count` is not 0 and every cache has its flag: releases free their memory, or leave it in a shard,
//!   and then look at `count`; who waits raises `count` and then looks for memory. Between the two steps of each stands a fence, so one of
//!   them sees the other.
//! - W2: each release, request and leave calls, before it gives up the lock for the last time, all from the first who is asleep on for whom
//!   there is memory and whose last call is unanswered so far, was not yet, or was long ago; and of the others `BACKUPS`. So while
//!   there is memory for the first who is asleep, there are `BACKUPS` who answered a call before, were called again, and have not
//!   looked yet. When one of them looks, takes memory or goes, that is the next such event. What this does not cover: all `BACKUPS` of them
//!   fall silent after they answered before, and from then on nobody releases, asks, looks or goes. Then those behind sleep, whatever memory
//!   there is, until the next such event. Nothing here could end that: there is no clock, and to call more of them at once moves the bound.
//!   A blocking request is such an event twice in each `PATIENCE`, so with one in the queue this lasts for `PATIENCE` and a half.
//! - W3: who was called and does not look for `PATIENCE` is taken out, at the next release, request, look or leave; if he looks after
//!   all, he comes back to his place. Who is asleep and first and has not looked for as long is called, enough memory or not.
//! - W4: the lock is held for a few instructions and a flag for each cache; no waker is cloned, dropped or woken, and no memory is taken or
//!   freed while it is held.

use alloc::collections::VecDeque;
use core::mem;
use core::ptr::NonNull;
use core::time::Duration;
use std::time::Instant;

use bufcore::strategy::Sleeper;

use crate::gate::{Entered, Gate};
use crate::node::Node;
use crate::shared::{Refs, Shared};
use crate::sync::{self, AtomicUsize, Ordering};

/// How long one who was called may take to look before he is taken for gone.
pub(crate) const PATIENCE: Duration =
    if cfg!(any(loom, shuttle)) { Duration::MAX } else { Duration::from_secs(1) };
/// How long those behind wait for one who was overtaken often.
const TURN: Duration = Duration::from_millis(100);
/// From how many calls in vain on that is.
const OFTEN: u32 = 16;
/// How many are called at once of those who answered before.
const BACKUPS: usize = if cfg!(any(loom, shuttle)) { 2 } else { 4 };
/// How many are woken between two looks at the queue.
const BATCH: usize = 8;

/// One that waits.
struct Ticket {
    number: u64,
    /// The least that its memory takes of the budget.
    need: usize,
    state: State,
    /// When it last looked, or was called.
    since: Instant,
    /// `Queue::puts` when it last looked everywhere.
    puts: Option<u64>,
    /// How often it was called.
    calls: u32,
    /// Whether it answered its last call.
    is_known: bool,
}

enum State {
    Asleep(Sleeper),
    Called,
    /// No ticket any more; what is in front or behind is not moved for it.
    Gone,
}

/// What happened to memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Event {
    /// Some was freed, or somebody asks.
    Freed,
    /// Some became idle where those who wait may have looked already.
    Put,
}

/// What one who waits is to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Look {
    /// It is another's turn.
    Wait,
    /// It is that of another who was overtaken often, and was just called.
    Soon,
    /// It is its turn; `all` says that there may be idle memory which it has not seen.
    Take { all: bool },
}

struct Queue {
    /// By number.
    tickets: VecDeque<Ticket>,
    /// The number of the next ticket. Where a child begins with a queue of its own, it is none that a future has from before.
    next: u64,
    /// Those of `tickets` that are gone.
    gone: usize,
    /// No ticket with a lower number is asleep.
    asleep_from: u64,
    /// How often memory became idle.
    puts: u64,
    /// When to look for those who were called and did not look; none was called before that less `PATIENCE`.
    deadline: Option<Instant>,
    /// Whom those behind wait for, and since when.
    favoured: Option<(u64, Instant)>,
}

impl Default for Queue {
    fn default() -> Self {
        let next = u64::from(std::process::id()) << 32;
        let tickets = VecDeque::new();
        Self { tickets, next, gone: 0, asleep_from: 0, puts: 0, deadline: None, favoured: None }
    }
}

/// Some that are to be woken when the lock is given up.
#[derive(Default)]
struct Batch([Option<Sleeper>; BATCH]);

impl Batch {
    /// Room for one, if there is any.
    fn room(&mut self) -> Option<&mut Option<Sleeper>> {
        self.0.iter_mut().find(|place| place.is_none())
    }

    /// Wakes them all. A waker that panics has done what it was to do as well as it can.
    fn wake(self) {
        for sleeper in self.0.into_iter().flatten() {
            wake(sleeper);
        }
    }
}

/// Wakes one, whatever its waker does: releases at the end of a thread, and those behind, do not depend on it.
fn wake(sleeper: Sleeper) {
    // What the model checker finds is not to be caught.
    if cfg!(any(loom, shuttle)) {
        return sleeper.wake();
    }
    let wake = core::panic::AssertUnwindSafe(|| sleeper.wake());
    if let Err(payload) = std::panic::catch_unwind(wake) {
        // Its drop might panic too.
        mem::forget(payload);
    }
}

impl Ticket {
    /// Whether it is long ago that it looked, or was called.
    fn is_late(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.since) > PATIENCE
    }
}

impl Queue {
    /// Those who are not gone.
    fn live(&self) -> usize {
        self.tickets.len() - self.gone
    }

    /// Where a ticket is, or where it would be.
    fn place(&self, number: u64) -> Result<usize, usize> {
        let at = self.tickets.partition_point(|ticket| ticket.number < number);
        match self.tickets.get(at) {
            Some(ticket) if ticket.number == number && !matches!(ticket.state, State::Gone) => Ok(at),
            _ => Err(at),
        }
    }

    /// The first who is asleep.
    fn first_asleep(&mut self) -> Option<usize> {
        let from = self.tickets.partition_point(|ticket| ticket.number < self.asleep_from);
        let is_asleep = |at: &usize| matches!(self.tickets[*at].state, State::Asleep(_));
        let first = (from..self.tickets.len()).find(is_asleep);
        self.asleep_from = first.map_or(self.next, |at| self.tickets[at].number);
        first
    }

    /// Takes out those who were called and did not look for long.
    fn tidy(&mut self, now: Instant) {
        if self.deadline.is_none_or(|deadline| now < deadline) {
            return;
        }
        self.deadline = None;
        for at in 0..self.tickets.len() {
            let ticket = &mut self.tickets[at];
            if !matches!(ticket.state, State::Called) {
                continue;
            }
            if ticket.is_late(now) {
                ticket.state = State::Gone;
                self.gone += 1;
            } else {
                let since = ticket.since;
                self.look_after(since);
            }
        }
        self.compact();
    }

    /// One was called at that time.
    fn look_after(&mut self, since: Instant) {
        if let Some(end) = since.checked_add(PATIENCE) {
            self.deadline = Some(self.deadline.map_or(end, |deadline| deadline.min(end)));
        }
    }

    /// Takes a ticket out.
    fn remove(&mut self, at: usize) -> Option<Sleeper> {
        let state = mem::replace(&mut self.tickets[at].state, State::Gone);
        self.gone += 1;
        self.compact();
        match state {
            State::Asleep(sleeper) => Some(sleeper),
            State::Called | State::Gone => None,
        }
    }

    /// Forgets those who are gone, at the ends, and elsewhere when they are many.
    fn compact(&mut self) {
        let is_gone = |ticket: Option<&Ticket>| ticket.is_some_and(|it| matches!(it.state, State::Gone));
        while is_gone(self.tickets.front()) {
            self.tickets.pop_front();
            self.gone -= 1;
        }
        while is_gone(self.tickets.back()) {
            self.tickets.pop_back();
            self.gone -= 1;
        }
        if self.gone > self.tickets.len() / 2 {
            self.tickets.retain(|ticket| !matches!(ticket.state, State::Gone));
            self.gone = 0;
        }
    }

    /// Calls one who is asleep. `false` when there is no room for it in the batch.
    fn call_one(&mut self, at: usize, now: Instant, batch: &mut Batch) -> bool {
        let Some(room) = batch.room() else { return false };
        let ticket = &mut self.tickets[at];
        if let State::Asleep(sleeper) = mem::replace(&mut ticket.state, State::Called) {
            *room = Some(sleeper);
        }
        ticket.since = now;
        ticket.calls = ticket.calls.saturating_add(1);
        if ticket.calls > OFTEN
            && self.favoured.is_none_or(|(number, since)| number > ticket.number || is_over(since, now))
        {
            self.favoured = Some((ticket.number, now));
        }
        self.look_after(now);
        true
    }

    /// Calls those who could take memory, of which `free` bytes of the budget are left; `known` counts those who answered before. `false`
    /// when there are more of them than the batch has room for.
    fn call(
        &mut self,
        free: usize,
        event: Event,
        now: Instant,
        known: &mut usize,
        batch: &mut Batch,
    ) -> bool {
        let Some(first) = self.first_asleep() else { return true };
        for at in first..self.tickets.len() {
            let ticket = &self.tickets[at];
            if !matches!(ticket.state, State::Asleep(_)) {
                continue;
            }
            let is_late = ticket.is_late(now);
            if ticket.need > free && event != Event::Put && !is_late {
                // Those behind are to leave it what there is.
                break;
            }
            let is_known = ticket.is_known && !is_late;
            if is_known && *known == BACKUPS {
                break;
            }
            if !self.call_one(at, now, batch) {
                return false;
            }
            *known += usize::from(is_known);
        }
        true
    }

    /// Calls those in front of a ticket who have not looked for long. `false` as for `call`.
    fn call_late(&mut self, number: u64, now: Instant, batch: &mut Batch) -> bool {
        while let Some(first) = self.first_asleep()
            && self.tickets[first].number < number
            && self.tickets[first].is_late(now)
        {
            if !self.call_one(first, now, batch) {
                return false;
            }
        }
        true
    }

    /// What a ticket is to do that looks now.
    fn turn(&mut self, number: u64, now: Instant) -> Look {
        if self.first_asleep().is_some_and(|first| self.tickets[first].number < number) {
            return Look::Wait;
        }
        if self.favoured.is_some_and(|(other, since)| other < number && !is_over(since, now)) {
            return Look::Soon;
        }
        let puts = self.puts;
        let Ok(at) = self.place(number) else { return Look::Wait };
        let before = self.tickets[at].puts.replace(puts);
        Look::Take { all: before != Some(puts) }
    }
}

/// Whether one who was called then is waited for no more.
fn is_over(since: Instant, now: Instant) -> bool {
    now.saturating_duration_since(since) > TURN
}

/// The queue of a pool.
pub(crate) struct Waiters {
    queue: Gate<Queue>,
    /// Tickets in the queue.
    count: AtomicUsize,
}

impl Waiters {
    pub(crate) fn new() -> Self {
        Self { queue: Gate::new(), count: AtomicUsize::new(0) }
    }

    /// Whether somebody waits.
    pub(crate) fn any(&self) -> bool {
        // ORDER: Relaxed: who has to know has executed the fence before (W1); to others it is a hint.
        self.count.load(Ordering::Relaxed) != 0
    }
}

impl Shared {
    /// Says how many are in the queue, and gives the caches their flags, or takes them back.
    fn note_waiting(&self, queue: &Entered<'_, Queue>) {
        let live = queue.live();
        // ORDER: Relaxed, for both: the lock orders those who write it. Late, it costs those who see it a look at the queue; for W1 there
        // is a fence behind.
        let before = self.waiters.count.load(Ordering::Relaxed);
        self.waiters.count.store(live, Ordering::Relaxed);
        if (before == 0) != (live == 0) {
            self.nodes().for_each(|node| node.set_waited(live > 0));
        }
    }

    /// Memory was freed, or became idle: calls those who wait for it, if there are any.
    ///
    /// # Safety
    ///
    /// The pool's bookkeeping is there. Wakers run in this: what keeps it may be gone afterwards, unless it is the caller's own.
    pub(crate) unsafe fn notify(this: NonNull<Self>, event: Event) {
        sync::full_fence();
        // SAFETY: the caller's promise.
        if unsafe { this.as_ref() }.waiters.any() {
            // SAFETY: likewise.
            unsafe { Self::call(this, event) };
        }
    }

    /// Calls those who wait and could be served. Whether anybody is in the queue.
    ///
    /// # Safety
    ///
    /// As for [`notify`](Self::notify).
    #[cold]
    unsafe fn call(this: NonNull<Self>, event: Event) -> bool {
        // SAFETY: the caller's promise.
        unsafe { this.as_ref() }.keepers.add_ref();
        // SAFETY: the reference from above, which keeps the pool whatever the wakers do.
        let _kept = unsafe { Refs::new(this, 1) };
        // SAFETY: kept, as above.
        let shared = unsafe { this.as_ref() };
        let mut known = 0;
        let mut is_first = true;
        loop {
            let mut batch = Batch::default();
            let now = Instant::now();
            let mut queue = shared.waiters.queue.lock();
            if mem::take(&mut is_first) && event == Event::Put {
                queue.puts += 1;
            }
            queue.tidy(now);
            let is_done = queue.call(shared.free(), event, now, &mut known, &mut batch);
            shared.note_waiting(&queue);
            let is_waited_for = queue.live() > 0;
            drop(queue);
            batch.wake();
            if is_done {
                return is_waited_for;
            }
        }
    }

    /// Whether new memory is for somebody who waits. For holders of a handle.
    pub(crate) fn has_claims(&self) -> bool {
        // SAFETY: the handle keeps the pool.
        self.waiters.any() && unsafe { Self::call(NonNull::from(self), Event::Freed) }
    }

    /// Says whom to wake from now on, and what to do until then. Joins the queue where there is no ticket yet, or none any more. `None`
    /// when there is no memory for it. For holders of a handle.
    pub(crate) fn look(&self, ticket: &mut Option<u64>, need: usize, sleeper: Sleeper) -> Option<Look> {
        let mut sleeper = Some(sleeper);
        let mut old = None;
        // Dropped last, with what was replaced.
        let mut spare = VecDeque::new();
        let look = loop {
            let mut batch = Batch::default();
            let now = Instant::now();
            let mut queue = self.waiters.queue.lock();
            queue.tidy(now);
            let number = ticket.unwrap_or(queue.next);
            let place = queue.place(number);
            if place.is_err() && queue.tickets.len() == queue.tickets.capacity() {
                if spare.capacity() <= queue.tickets.len() {
                    let wanted = (2 * queue.tickets.len()).max(4);
                    drop(queue);
                    spare = VecDeque::new();
                    spare.try_reserve_exact(wanted).ok()?;
                    continue;
                }
                mem::swap(&mut queue.tickets, &mut spare);
                queue.tickets.append(&mut spare);
            }
            if ticket.replace(number).is_none() {
                queue.next += 1;
            }
            let at = place.unwrap_or_else(|at| {
                let state = State::Called;
                let new = Ticket { number, need, state, since: now, puts: None, calls: 0, is_known: false };
                queue.tickets.insert(at, new);
                at
            });
            if let Some(sleeper) = sleeper.take() {
                let ticket = &mut queue.tickets[at];
                ticket.is_known |= place.is_ok() && matches!(ticket.state, State::Called);
                ticket.since = now;
                old = Some(mem::replace(&mut ticket.state, State::Asleep(sleeper)));
                queue.asleep_from = queue.asleep_from.min(number);
                if queue.favoured.is_some_and(|(favoured, _)| favoured == number) {
                    queue.favoured = None;
                }
            }
            let is_done = queue.call_late(number, now, &mut batch);
            let look = queue.turn(number, now);
            self.note_waiting(&queue);
            drop(queue);
            batch.wake();
            if is_done {
                break look;
            }
        };
        // What is released from here on wakes it; what was before, it finds.
        sync::full_fence();
        drop(old);
        Some(look)
    }

    /// Leaves the queue, served or not, and calls those who could be served then.
    pub(crate) fn leave_queue(&self, number: u64) {
        let mut queue = self.waiters.queue.lock();
        let place = queue.place(number);
        let old = place.ok().and_then(|at| queue.remove(at));
        if queue.favoured.is_some_and(|(favoured, _)| favoured == number) {
            queue.favoured = None;
        }
        self.note_waiting(&queue);
        drop(queue);
        if self.waiters.any() {
            // SAFETY: the handle that the future borrows keeps the pool.
            unsafe { Self::call(NonNull::from(self), Event::Freed) };
        }
        drop(old);
    }

    /// Gives a new cache its flag. Once it is on the list.
    pub(crate) fn flag_new(&self, node: &Node) {
        let queue = self.waiters.queue.lock();
        if queue.live() > 0 {
            node.set_waited(true);
        }
        drop(queue);
    }
}
