//! One pool that a keeper watches: when it is looked at, and what is done then.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::any::TypeId;
use core::task::Waker;
use core::time::Duration;
use std::time::Instant;

use super::trim::WeakPool;
use crate::PressureLevel;
use bufcore::author::catch_user_panic;
use bufkit::Trim;

/// How many times the usual pause a pool with memory may be left alone.
///
/// What is released to a thread's cache wakes nobody. So a pool that is not empty is looked at from
/// time to time, although nothing changed.
pub(super) const PAUSES: u32 = 8;

/// What all looks of one moment have in common.
pub(super) struct Pass<'a> {
    pub(super) now: Instant,
    pub(super) level: PressureLevel,
    /// The keeper's settings.
    pub(super) purge_delay: Duration,
    pub(super) max_sleep: Duration,
    /// Wakes the keeper, if something can.
    pub(super) waker: Option<&'a Waker>,
}

/// A pool, as a look left it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Seen {
    uses: usize,
    reserved: usize,
    idle: usize,
}

/// A pool that is watched.
pub(super) struct Watched {
    pool: Box<dyn WeakPool>,
    id: Option<(TypeId, usize)>,
    seen: Option<Seen>,
    /// When it was looked at; `None` for a new one.
    looked: Option<Instant>,
    /// From one look to the next.
    pause: Duration,
}

/// Returns the time so long after `now`, or less where the clock does not go so far.
pub(super) fn later(now: Instant, mut pause: Duration) -> Instant {
    loop {
        if let Some(time) = now.checked_add(pause) {
            return time;
        }
        pause /= 2;
    }
}

impl Watched {
    pub(super) fn new(pool: Box<dyn WeakPool>) -> Self {
        Self { id: pool.id(), pool, seen: None, looked: None, pause: Duration::ZERO }
    }

    /// Returns whether the pool is one of these.
    pub(super) fn is_among(&self, others: &[Self]) -> bool {
        self.id.is_some() && others.iter().any(|other| other.id == self.id)
    }

    /// Takes off a list what is not to stay.
    pub(super) fn forget_unless(list: &mut Vec<Self>, mut stays: impl FnMut(&mut Self) -> bool) {
        let mut index = 0;
        while let Some(watched) = list.get_mut(index) {
            if stays(watched) {
                index += 1;
            } else {
                let gone = list.swap_remove(index);
                // Users' code again.
                let _dropped = catch_user_panic(|| drop(gone));
            }
        }
    }

    /// Returns when the pool is to be looked at.
    pub(super) fn next(&self, now: Instant) -> Instant {
        self.looked.map_or(now, |looked| later(looked, self.pause))
    }

    /// Lets the pool wait no longer than usual, since it may have changed.
    pub(super) fn hurry(&mut self, purge_delay: Duration) {
        self.pause = self.pause.min(purge_delay);
    }

    /// Frees what was not used, and decides when to come back. Returns `false` when the pool has
    /// ended, or its own code panicked.
    pub(super) fn pass(&mut self, look: &Pass<'_>) -> bool {
        let (before, pause) = (self.seen, self.pause);
        let mut after = None;
        let found = catch_user_panic(|| {
            self.pool.with(&mut |pool| after = Some(look.trim(pool, before, pause)));
        });
        let (Some(()), Some((seen, pause))) = (found, after) else { return false };
        (self.seen, self.looked, self.pause) = (Some(seen), Some(look.now), pause);
        true
    }
}

impl Pass<'_> {
    /// Trims a pool. Returns what is left, and the pause until the next look.
    fn trim(&self, pool: &mut dyn Trim, before: Option<Seen>, pause: Duration) -> (Seen, Duration) {
        let usual = match self.level {
            PressureLevel::Medium => self.purge_delay / 2,
            _ => self.purge_delay,
        };
        match self.level {
            PressureLevel::High => pool.trim(),
            // The pool's own clock read a little later in the last look than the keeper's. It has
            // not to find this look too early for that.
            _ => pool.trim_idle(usual - usual / 8),
        }
        let stats = pool.stats().unwrap_or_default();
        let seen = Seen { uses: pool.uses(), reserved: stats.reserved_bytes, idle: stats.idle_bytes };
        if before != Some(seen) {
            return (seen, usual);
        }
        let pause = pause.max(usual).saturating_mul(2).min(self.max_sleep.max(usual));
        // Asked for first, and looked at once more then.
        let wakes = self.waker.is_some_and(|waker| pool.wake_when_grown(waker));
        let is_empty = seen.reserved == 0 && pool.stats().is_some_and(|stats| stats.reserved_bytes == 0);
        let max_sleep = if wakes && is_empty { pause } else { usual.saturating_mul(PAUSES) };
        (seen, pause.min(max_sleep))
    }
}
