//! Requests that wait for budget, and what the pool does for them: it joins them to the wait queue,
//! sets the caches' flags, and calls them.

use alloc::collections::VecDeque;
use core::mem;
use core::ptr::NonNull;
use core::time::Duration;
use std::time::Instant;

use bufkit::Waiter;
use bufkit::sync::MutexGuard;

use super::{CoreRef, Shared};
use crate::cache::ThreadCache;
use crate::sync;
use crate::wait_queue::{Batch, Event, Look, Queue};

impl Shared {
    /// Says how many are in the queue, and gives the caches their flags, or takes them back.
    fn note_waiting(&self, queue: &MutexGuard<'_, Queue>) {
        let live = queue.live();
        if self.wait_queue.note(live) {
            self.caches().for_each(|cache| cache.set_waited(live > 0));
        }
    }

    /// Calls those who wait for memory, if there are any, because some was freed or became idle.
    ///
    /// # Safety
    ///
    /// The pool's bookkeeping is there. Wakers run in this: what keeps it may be gone afterwards,
    /// unless it is the caller's own.
    pub(crate) unsafe fn notify(this: NonNull<Self>, event: Event) {
        sync::full_fence();
        // SAFETY: the caller's promise.
        if unsafe { this.as_ref() }.wait_queue.any() {
            // SAFETY: likewise.
            unsafe { Self::call(this, event) };
        }
    }

    /// Calls those who wait and could be served. Returns whether anybody is in the queue.
    ///
    /// # Safety
    ///
    /// As for [`notify`](Self::notify).
    #[cold]
    unsafe fn call(this: NonNull<Self>, event: Event) -> bool {
        // SAFETY: the caller's promise. It keeps the pool whatever the wakers do.
        let _kept = unsafe { CoreRef::add(this) };
        // SAFETY: kept, as above.
        let shared = unsafe { this.as_ref() };
        let mut known = 0;
        let mut is_first = true;
        loop {
            let mut batch = Batch::default();
            let now = Instant::now();
            let mut queue = shared.wait_queue.lock();
            if mem::take(&mut is_first) && event == Event::Put {
                queue.note_put();
            }
            queue.tidy(now);
            let is_done = queue.call(event, shared.room(), now, &mut known, &mut batch);
            shared.note_waiting(&queue);
            let is_waited_for = queue.live() > 0;
            drop(queue);
            batch.wake();
            if is_done {
                return is_waited_for;
            }
        }
    }

    /// Returns whether new memory is for somebody who waits. The caller holds a handle.
    pub(crate) fn has_claims(&self) -> bool {
        // SAFETY: the handle keeps the pool.
        self.wait_queue.any() && unsafe { Self::call(NonNull::from(self), Event::Freed) }
    }

    /// Says whom to wake from now on, and what to do until then. Joins the queue where there is no
    /// ticket yet, or none any more. Returns `None` when there is no memory for it. The caller
    /// holds a handle.
    pub(crate) fn look(&self, ticket: &mut Option<u64>, need: usize, sleeper: Waiter) -> Option<Look> {
        let mut sleeper = Some(sleeper);
        let mut old = None;
        // Dropped last, with what was replaced.
        let mut spare = VecDeque::new();
        let look = loop {
            let mut batch = Batch::default();
            let now = Instant::now();
            let mut queue = self.wait_queue.lock();
            queue.tidy(now);
            let number = queue.number(*ticket);
            if let Err(wanted) = queue.make_room(number, &mut spare) {
                drop(queue);
                spare = VecDeque::new();
                spare.try_reserve_exact(wanted).ok()?;
                continue;
            }
            old = queue.join(ticket, need, sleeper.take(), now).or(old);
            let is_done = queue.call_late(number, now, &mut batch);
            let look = queue.turn(number, now);
            self.note_waiting(&queue);
            drop(queue);
            batch.wake();
            if is_done {
                break look;
            }
        };
        // A release from here on wakes it; it finds what was released before.
        sync::full_fence();
        drop(old);
        Some(look)
    }

    /// Tells those who wait what a refused request gave back. The caller holds a handle.
    pub(crate) fn note_returned(&self, number: u64) {
        // SAFETY: the handle keeps the pool.
        unsafe { Self::call(NonNull::from(self), Event::Returned(number)) };
    }

    /// Notes that a request could not look everywhere.
    pub(crate) fn note_unseen(&self, number: u64) {
        self.wait_queue.lock().note_unseen(number);
    }

    /// Leaves the queue, served or not, and calls those who could be served then.
    pub(crate) fn leave_queue(&self, number: u64) {
        let mut queue = self.wait_queue.lock();
        let old = queue.leave(number);
        self.note_waiting(&queue);
        drop(queue);
        if self.wait_queue.any() {
            // SAFETY: the handle that the future borrows keeps the pool.
            unsafe { Self::call(NonNull::from(self), Event::Freed) };
        }
        drop(old);
    }

    /// Returns how long the first in the queue has been waiting.
    pub(crate) fn longest_wait(&self) -> Option<Duration> {
        if !self.wait_queue.any() {
            return None;
        }
        self.wait_queue.lock().longest_wait(Instant::now())
    }

    /// Takes the flag of a new cache back, if nobody waits. Once it is on the list.
    pub(crate) fn flag_new(&self, cache: &ThreadCache) {
        let queue = self.wait_queue.lock();
        cache.set_waited(queue.live() > 0);
        drop(queue);
    }
}
