//! Who waits for budget: a queue in which the first alone may take memory, so that a large request is not overtaken by small ones.
//!
//! # Invariants
//!
//! - W1: while somebody waits, `count` is not 0 and every cache has its flag: releases free their memory, or leave it in a shard, and then
//!   look at `count`; who waits raises `count` and then looks for memory. Between the two steps of each stands a fence, so one of them sees
//!   the other.
//! - W2: the first in the queue was woken since the last release that it has not seen, or is about to look. Who leaves the front wakes
//!   the next. One that was woken and does not look for `PATIENCE`, because its future was forgotten or its executor is stuck, goes to
//!   the end of the queue when somebody else asks or something is released.
//! - W3: the lock is held for a few instructions and a flag for each cache; no waker is cloned, dropped or woken, and no memory is freed
//!   while it is held.

use alloc::collections::VecDeque;
use core::time::Duration;
use std::time::Instant;

use bufcore::strategy::Sleeper;

use crate::node::Node;
use crate::shared::Shared;
use crate::sync::{self, AtomicUsize, MutexGuard, Ordering};

/// How long the first may take to look, once it was woken, before it lets others pass.
pub(crate) const PATIENCE: Duration = if cfg!(loom) { Duration::MAX } else { Duration::from_secs(1) };

/// One that waits.
struct Ticket {
    number: u64,
    /// `None` once it was woken, until it looks again.
    sleeper: Option<Sleeper>,
    /// When that was.
    woken: Instant,
}

impl Ticket {
    /// Whether it was woken, and has not looked for long.
    fn is_late(&self, now: Instant) -> bool {
        self.sleeper.is_none() && now.saturating_duration_since(self.woken) > PATIENCE
    }
}

#[derive(Default)]
struct Queue {
    tickets: VecDeque<Ticket>,
    next: u64,
}

impl Queue {
    /// Sends those who are late to the end.
    fn pass_by(&mut self, now: Instant) {
        for _ in 0..self.tickets.len() {
            if !self.tickets.front().is_some_and(|first| first.is_late(now)) {
                return;
            }
            // No allocation, since one goes before the other comes.
            self.tickets.rotate_left(1);
        }
    }
}

/// The queue of a pool.
pub(crate) struct Waiters {
    queue: sync::Mutex<Queue>,
    /// Tickets in the queue.
    count: AtomicUsize,
}

impl Waiters {
    pub(crate) fn new() -> Self {
        Self { queue: sync::Mutex::new(Queue::default()), count: AtomicUsize::new(0) }
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        // Nothing that is done under the lock panics.
        sync::lock(&self.queue)
    }

    /// Whether somebody waits.
    pub(crate) fn any(&self) -> bool {
        // ORDER: Relaxed: who has to know has executed the fence before (W1); to others it is a hint.
        self.count.load(Ordering::Relaxed) != 0
    }

    /// Memory was freed, or became idle where who waits may have looked already: wakes the first in the queue, if there is one.
    pub(crate) fn notify(&self) {
        if !cfg!(bufworks_broken = "nowake") {
            sync::full_fence();
        }
        if self.any() {
            self.wake_first();
        }
    }

    #[cold]
    fn wake_first(&self) {
        let now = Instant::now();
        let mut queue = self.lock();
        queue.pass_by(now);
        let sleeper = queue.tickets.front_mut().and_then(|first| {
            let sleeper = first.sleeper.take()?;
            first.woken = now;
            Some(sleeper)
        });
        drop(queue);
        if let Some(sleeper) = sleeper {
            sleeper.wake();
        }
    }

    /// Whether there are some in the queue, and none of them waits for anything but to be dropped, as it seems.
    fn are_all_late(&self) -> bool {
        let now = Instant::now();
        self.lock().tickets.iter().all(|ticket| ticket.is_late(now))
    }

    /// Whether new memory is for somebody who waits.
    pub(crate) fn have_claims(&self) -> bool {
        self.any() && !self.are_all_late()
    }
}

impl Shared {
    /// Joins the queue. `None` when there is no memory for it. For holders of a handle.
    pub(crate) fn join_queue(&self, sleeper: Sleeper) -> Option<u64> {
        let mut queue = self.waiters.lock();
        if queue.tickets.try_reserve(1).is_err() {
            drop(queue);
            drop(sleeper);
            return None;
        }
        let number = queue.next;
        queue.next += 1;
        queue.tickets.push_back(Ticket { number, sleeper: Some(sleeper), woken: Instant::now() });
        // ORDER: Relaxed: the fence below orders it (W1).
        if self.waiters.count.fetch_add(1, Ordering::Relaxed) == 0 {
            self.nodes().for_each(|node| node.set_waited(true));
        }
        drop(queue);
        sync::full_fence();
        Some(number)
    }

    /// Says whom to wake from now on, and whether it is this ticket's turn.
    pub(crate) fn renew(&self, number: u64, sleeper: Sleeper) -> bool {
        let mut queue = self.waiters.lock();
        queue.pass_by(Instant::now());
        let is_first = queue.tickets.front().is_some_and(|ticket| ticket.number == number);
        let ticket = queue.tickets.iter_mut().find(|ticket| ticket.number == number);
        let old = ticket.and_then(|ticket| ticket.sleeper.replace(sleeper));
        drop(queue);
        drop(old);
        // What is released from here on wakes it; what was before, it finds.
        sync::full_fence();
        is_first
    }

    /// Leaves the queue, served or not, and wakes the next.
    pub(crate) fn leave_queue(&self, number: u64) {
        let mut queue = self.waiters.lock();
        let place = queue.tickets.iter().position(|ticket| ticket.number == number);
        let old = place.and_then(|place| queue.tickets.remove(place));
        if old.is_some() {
            // ORDER: Relaxed: late, it costs those who see it a look at the queue.
            if self.waiters.count.fetch_sub(1, Ordering::Relaxed) == 1 {
                self.nodes().for_each(|node| node.set_waited(false));
            }
        }
        let was_first = place == Some(0);
        drop(queue);
        drop(old);
        if was_first {
            self.waiters.wake_first();
        }
    }

    /// Gives a new cache its flag. Once it is on the list.
    pub(crate) fn flag_new(&self, node: &Node) {
        let queue = self.waiters.lock();
        if !queue.tickets.is_empty() {
            node.set_waited(true);
        }
        drop(queue);
    }
}
