//! The queue of requests that wait for budget. Those in front go first, so that a large request is
//! not overtaken by small ones.
//!
//! # Which tickets may take memory
//!
//! A ticket is *asleep* when it has looked and has to be woken, and *called* from when it is woken
//! until it looks. It may take memory when no ticket in front of it is asleep. So a ticket that is
//! asleep keeps those behind it from memory that it needs itself. A ticket that was called and does
//! not look keeps no other from anything, whether its executor is busy or it was forgotten.
//!
//! There is no clock here that calls a ticket later. So whenever there is memory, all tickets are
//! called that could take it if those in front never looked. The calls go from the front on, up to
//! the first ticket for which there is not enough, and which has looked for what is idle since some
//! became so the last time. Of those that answered their last call, at most `BACKUPS` are called: a
//! release of one buffer does not wake all that wait for one. (Each is called once, and then at
//! most once in `PATIENCE`, beyond those.)
//!
//! A ticket that was overtaken between its call and its look `OFTEN` times is waited for. For
//! `TURN` from its next call on, those behind it look again soon in place of taking memory.
//!
//! # Invariants
//!
//! - W1: while a ticket is in the queue, `count` is not 0 and every cache has its flag. Releases
//!   free their memory, or leave it in a shard, and then look at `count`; a request that waits
//!   raises `count` and then looks for memory. Between the two steps of each there is a fence, so
//!   one of them sees the other.
//! - W2: each release, request and leave calls tickets before it gives up the lock for the last
//!   time. It begins with the first that is asleep. Of those for which there is memory, it calls
//!   all whose last call is unanswered so far, was long ago, or never was, and `BACKUPS` of the
//!   others. So while there is memory for the first that is asleep, there are `BACKUPS` tickets
//!   that answered a call before, were called again, and have not looked yet. When one of them
//!   looks, takes memory or goes, that is the next such event.
//!
//!   One case is not covered. All `BACKUPS` of them fall silent after they answered before, and
//!   from then on there is no release, request, look or leave. Then those behind sleep, whatever
//!   memory there is, until the next such event. Nothing here could end that: there is no clock,
//!   and to call more of them at once moves the bound. A blocking request is such an event twice in
//!   each `PATIENCE`, so with one in the queue this lasts for `PATIENCE` and a half.
//! - W3: a ticket that was called and does not look for `PATIENCE` is taken out, at the next
//!   release, request, look or leave. If it looks after all, it comes back to its place. A ticket
//!   that is asleep and first and has not looked for as long is called, enough memory or not.
//! - W4: the lock is held for a few instructions and a flag for each cache. No waker is cloned,
//!   dropped or woken, and no memory is taken or freed while it is held.

mod batch;
mod queue;

pub(crate) use self::batch::Batch;
pub(crate) use self::queue::{Event, Look, PATIENCE, Queue};
use crate::sync::{AtomicUsize, Ordering};

use bufkit::sync::{Mutex, MutexGuard, lock};

/// The queue of a pool.
pub(crate) struct WaitQueue {
    queue: Mutex<Queue>,
    /// Tickets in the queue.
    count: AtomicUsize,
}

impl WaitQueue {
    pub(crate) fn new() -> Self {
        Self { queue: Mutex::default(), count: AtomicUsize::new(0) }
    }

    /// Returns whether somebody waits.
    pub(crate) fn any(&self) -> bool {
        // ORDER: Relaxed: who has to know has executed the fence before (W1); to others it is a
        // hint.
        self.count.load(Ordering::Relaxed) != 0
    }

    /// Locks the queue (W4).
    pub(crate) fn lock(&self) -> MutexGuard<'_, Queue> {
        lock(&self.queue)
    }

    /// Says how many tickets are in the queue. Returns whether somebody waits now where nobody did,
    /// or nobody where somebody did.
    pub(crate) fn note(&self, live: usize) -> bool {
        // ORDER: Relaxed, for both: the lock orders those who write it. Late, it costs those who
        // see it a look at the queue; for W1 there is a fence behind.
        let before = self.count.load(Ordering::Relaxed);
        self.count.store(live, Ordering::Relaxed);
        (before == 0) != (live == 0)
    }
}
