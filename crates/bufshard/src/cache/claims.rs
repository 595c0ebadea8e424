//! Claims: how others get at the magazines of a thread's cache without stopping the thread; and the
//! flags that they set.
//!
//! # Why a claim and a fast path never both go on
//!
//! The thread stores `intent` and loads `word`; the claimer changes `word` and loads `intent`; a
//! fence lies between the steps of each. The cases that are not plain:
//!
//! - A state that was read before a claim came and went: `CHANGED` stays in `word` until the
//!   thread's next slow path, and the state is not used.
//! - A claimer cannot make the announcement of an aborted operation true by storing a state: that
//!   thread reads a word with the claim or `CHANGED`, and its slow path announces anew.
//! - The block apart has no count, so the same may be announced twice in a row. A claimer that
//!   takes the second for the first overwrites it; its thread finds the claim, or `CHANGED`.
//! - `intent` is reset by an exchange for what was seen, never by a store: the thread may have
//!   announced anew.
//!
//! Where the system refuses the heavy fence, nothing is concluded, and the claim is given up. All
//! caches of the pool get `DISABLED` for good. A thread that finds it frees what is in its cache,
//! and keeps nothing from then on. So there is nothing for others to take.

use super::{
    CHANGED, CLAIMED, CLASS_MASK, CLASS_OF_BUSY, CLASS_OF_IDLE, CLASS_OF_LAST_IN, CLASS_OF_LAST_OUT,
    CLASS_SHIFT, CLOSED, DISABLED, FREE, IDLE, LAST_CLASS, NEVER, NO_LAST, ThreadCache, WAITED,
};
use crate::sync::{self, Ordering, RELEASE};

/// How often who claims a cache looks whether its thread has come to the end of what it is in the
/// midst of.
const LOOKS: usize = if cfg!(any(loom, shuttle)) { 1 } else { 200 };

/// Why a cache is not to be had.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ClaimError {
    /// Somebody else claims it, its thread is in the midst of something, or the pool is gone: to
    /// look again soon may help.
    Busy,
    /// The system refuses the fence: what is in the cache stays there until its thread frees it.
    NoFence,
}

impl ThreadCache {
    /// Returns what the thread announced last, if it is done with that. The caller has claimed the
    /// cache, or set a flag of it, and executed the fence.
    fn done(&self) -> Option<usize> {
        // ORDER: Acquire pairs with the Release in `begin` and `settle`: all that the thread did
        // before is seen.
        let intent = self.intent.load(Ordering::Acquire);
        let is_done = match intent >> CLASS_SHIFT & CLASS_MASK {
            CLASS_OF_IDLE => true,
            CLASS_OF_BUSY => false,
            // ORDER: Acquire pairs with the Release in `pop` and `push`, for all: what was
            // announced is done and seen.
            CLASS_OF_LAST_OUT => self.last_freed.load(Ordering::Acquire) & LAST_CLASS == NO_LAST,
            CLASS_OF_LAST_IN => self.last_freed.load(Ordering::Acquire) & LAST_CLASS != NO_LAST,
            class => self.magazines.get(class)?.state.load(Ordering::Acquire) == intent,
        };
        is_done.then_some(intent)
    }

    /// Returns whether the cache has no blocks, and gets none while somebody waits. The caller has
    /// set `WAITED` and executed the heavy fence, so that what the thread announces next finds the
    /// flag, and puts nothing in. Slow paths of then only take out.
    pub(crate) fn stays_empty(&self) -> bool {
        self.done().is_some() && self.is_empty()
    }

    /// Waits, not for long, until the thread is done with what it announced, and returns that. The
    /// caller keeps the bookkeeping.
    pub(super) fn rest(&self) -> Option<usize> {
        (0..LOOKS).find_map(|look| {
            if look > 0 {
                core::hint::spin_loop();
            }
            self.done()
        })
    }

    /// Runs `f` while the caller has the magazines, from another thread than the cache's; it calls
    /// nothing that is not ours. The caller holds a handle.
    ///
    /// # Errors
    ///
    /// When the cache is not to be had. Then nothing was done.
    pub(crate) fn claimed<R>(&self, f: impl FnOnce(&Self) -> R) -> Result<R, ClaimError> {
        // ORDER: Relaxed: compared only.
        let mut word = self.word.load(Ordering::Relaxed);
        loop {
            if word & (CLAIMED | CLOSED) != 0 {
                return Err(ClaimError::Busy);
            }
            if word & (DISABLED | FREE) == DISABLED {
                return Err(ClaimError::NoFence);
            }
            let marked = word | CLAIMED | CHANGED;
            // ORDER: Acquire pairs with the Release of the last one who had it; Release keeps
            // `unclaim`'s for those behind. What the fence orders is said there.
            let claimed = self.word.compare_exchange_weak(word, marked, Ordering::AcqRel, Ordering::Relaxed);
            match claimed {
                Ok(_) => break,
                Err(now) => word = now,
            }
        }
        // A cache that no thread has gets none while it is claimed.
        if !sync::heavy_fence(word & FREE != 0) {
            self.unclaim();
            return Err(ClaimError::NoFence);
        }
        let result = self.rest().map(|done| {
            self.touch();
            let result = f(self);
            // It need not agree with the state any more. By an exchange: the thread may have
            // announced something else since, which is not to be overwritten. (Of the block that is
            // apart it may have announced the same again, which then is: it finds the claim in
            // `word`, or `CHANGED`, and does without.)
            // ORDER: Release, as in `settle`: who claims the cache next sees what the thread and we
            // did. A failure publishes nothing.
            if done != IDLE {
                let _ = self.intent.compare_exchange(done, IDLE, Ordering::Release, Ordering::Relaxed);
            }
            result
        });
        self.unclaim();
        result.ok_or(ClaimError::Busy)
    }

    /// Ends a claim.
    fn unclaim(&self) {
        // ORDER: Release pairs with the Acquire in `begin`, `enter`, `adopt` and `claimed`: who has
        // the magazines next sees what was done.
        self.word.fetch_and(!CLAIMED, RELEASE);
    }

    /// Makes a cache that no thread has the calling thread's.
    pub(crate) fn adopt(&self) -> bool {
        // ORDER: Relaxed: a look that saves the exchange.
        let word = self.word.load(Ordering::Relaxed);
        if word & FREE == 0 || word & (CLAIMED | CLOSED) != 0 {
            return false;
        }
        // ORDER: Acquire pairs with the Release of `end_of_thread` and `unclaim`: the cache is as
        // it was left.
        let own = word & !(FREE | CHANGED);
        self.word.compare_exchange(word, own, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// Returns whether a thread could take the cache.
    pub(crate) fn is_free(&self) -> bool {
        // ORDER: Relaxed: a hint.
        self.word.load(Ordering::Relaxed) & (FREE | CLOSED) == FREE
    }

    /// Returns whether releases are to free their memory. The caller is between `enter` and
    /// `leave`: a thread that sets the flag later finds this one at work.
    pub(crate) fn is_waited(&self) -> bool {
        // ORDER: Relaxed: the fences of `enter` and of who sets it order it.
        self.word.load(Ordering::Relaxed) & WAITED != 0
    }

    /// Sets or takes back the flag that makes releases go the slow path.
    pub(crate) fn set_waited(&self, waited: bool) {
        // ORDER: Relaxed, for both: the fence that follows orders it, and who reads it late is
        // found out by `rest`.
        if waited {
            self.word.fetch_or(WAITED, Ordering::Relaxed);
        } else {
            self.word.fetch_and(!WAITED, Ordering::Relaxed);
        }
    }

    /// Makes the thread keep nothing from when it next finds the flag.
    pub(crate) fn disable(&self) {
        // ORDER: Relaxed: a thread that reads it late keeps its blocks that much longer.
        self.word.fetch_or(DISABLED, Ordering::Relaxed);
    }

    /// Returns whether the thread is to keep nothing, and has not freed yet what it kept. Only the
    /// cache's thread calls it.
    pub(crate) fn is_to_be_emptied(&self) -> bool {
        // ORDER: Relaxed: the thread looks again with each slow path.
        self.word.load(Ordering::Relaxed) & DISABLED != 0 && self.last_freed_class() != NEVER as usize
    }

    /// Notes that the thread has freed what it kept, and keeps nothing. The caller is between
    /// `enter_to_take` and `leave`.
    pub(crate) fn set_emptied(&self) {
        // ORDER: Relaxed: the caller has the cache; `leave` publishes it.
        self.last_freed.store(NEVER, Ordering::Relaxed);
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::super::BUSY;
    use super::*;
    use crate::ShardPool;

    /// A thread that announces a slow path while it is claimed may look at `word` when the claim is
    /// over: the next one has to see what it announced.
    #[test]
    fn what_a_thread_announces_meanwhile_stays() {
        let pool = ShardPool::new().expect("settings are right");
        drop(pool.acquire(100));
        drop(pool.acquire(100));
        let cache = pool.shared().caches().next().expect("this thread's");
        // ORDER: Relaxed: one thread.
        let announce = |cache: &ThreadCache| cache.intent.store(BUSY, Ordering::Relaxed);
        if cache.claimed(announce) == Err(ClaimError::NoFence) {
            return;
        }
        // ORDER: Relaxed, as above.
        assert_eq!(cache.intent.load(Ordering::Relaxed), BUSY);
        assert_eq!(cache.claimed(|_| ()), Err(ClaimError::Busy));
        cache.settle();
        assert_eq!(cache.claimed(|_| ()), Ok(()));
    }
    /// A claim takes a fence, and its thread's next slow path. Of a thousand threads most have
    /// nothing that one who waits could take.
    #[test]
    fn who_waits_claims_no_empty_cache() {
        let pool = ShardPool::builder().max_bytes(100_000).build().expect("settings are right");
        let here = pool.acquire(100).expect("room");
        let there = std::thread::spawn({
            let pool = pool.clone();
            move || pool.acquire(80_000).expect("room")
        });
        let there = there.join().expect("it acquires");
        assert!(pool.acquire_timeout(80_000, core::time::Duration::ZERO).is_err());
        // ORDER: Relaxed: the other thread has ended.
        let is_claimed = |cache: &ThreadCache| cache.word.load(Ordering::Relaxed) & CHANGED != 0;
        assert!(!pool.shared().caches().any(is_claimed) || !sync::has_heavy_fence());
        drop((here, there));
    }
}
