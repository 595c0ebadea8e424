//! Trims: what takes idle memory out of the shards and of all threads' caches, and frees it.

use core::ptr::{self, NonNull};
use core::time::Duration;
use std::time::Instant;

use crate::cache::{NotHad, ThreadCache};
use crate::chain::Chain;
use crate::class;
use crate::counts::Why;
use crate::shared::Shared;
use crate::sync;

impl Shared {
    /// Frees idle memory until at most `target` bytes are reserved, or none is to be had: what is
    /// in the shards first, then the calling thread's cache, then those of others. `false` when a
    /// cache was not to be had. For holders of a handle.
    pub(crate) fn shrink(&self, target: usize) -> bool {
        let this = NonNull::from(self);
        let mut saw_all = true;
        for class in (0..self.settings.classes).rev() {
            let excess = self.reserved().saturating_sub(target);
            if excess == 0 {
                break;
            }
            let mut chain = Chain::new();
            saw_all &= self.depot.take_all(class, excess.div_ceil(class::bytes_of(class)), &mut chain);
            // SAFETY: the chain is ours, of this pool.
            unsafe { Self::free_chain(this, chain, Why::Trim) };
        }
        // The calling thread's first.
        let own = ThreadCache::find(self.id);
        let others = self.caches().filter(|cache| !own.is_some_and(|own| ptr::eq(own, *cache)));
        for cache in own.into_iter().chain(others) {
            if self.reserved() <= target {
                break;
            }
            // With somebody waiting, it is not enough to look from outside: what is put in may not
            // be seen yet.
            if cache.is_empty() && !self.is_waited_for() {
                continue;
            }
            match self.with_magazines(cache, own, |cache| self.take_excess(cache, target)) {
                // SAFETY: the chain is ours, of this pool.
                Ok(chain) => unsafe { Self::free_chain(this, chain, Why::Trim) },
                Err(NotHad::Busy) => saw_all = false,
                // It stays with its thread, until that has seen this, which then tells those who
                // wait.
                Err(NotHad::NoFence) => self.go_plain(),
            }
        }
        self.tell(own);
        saw_all
    }

    /// Frees what was not used since the last look, if that was `age` ago or more, and looks. For
    /// holders of a handle.
    pub(crate) fn shrink_idle(&self, age: Duration) {
        // Before the lock: it may call what is not ours.
        let own = ThreadCache::find(self.id);
        let Some(mut since) = sync::try_lock(&self.idle_since) else { return };
        let now = Instant::now();
        if since.is_some_and(|since| now.duration_since(since) < age) {
            return;
        }
        let is_first = since.replace(now).is_none();
        let mut idle = Chain::new();
        for class in 0..self.settings.classes {
            // Of a bin that was not looked at before, nothing is unused.
            idle.append(self.depot.take_unused(class));
        }
        for cache in self.caches() {
            if let Some(unused) = cache.note_use()
                && !is_first
            {
                match self.with_magazines(cache, own, |cache| cache.take_unused(&unused)) {
                    Ok(chain) => idle.append(chain),
                    Err(NotHad::Busy) => {}
                    Err(NotHad::NoFence) => self.go_plain(),
                }
            }
        }
        drop(since);
        // SAFETY: the chain is ours, of this pool.
        unsafe { Self::free_chain(NonNull::from(self), idle, Why::Trim) };
        self.tell(own);
    }

    /// Runs `f` with the magazines of a cache, the calling thread's `own` or another's. For holders
    /// of a handle.
    fn with_magazines<R>(
        &self,
        cache: &ThreadCache,
        own: Option<&ThreadCache>,
        f: impl FnOnce(&ThreadCache) -> R,
    ) -> Result<R, NotHad> {
        if !own.is_some_and(|own| ptr::eq(own, cache)) {
            return cache.claimed(f);
        }
        if !cache.enter() {
            return Err(NotHad::Busy);
        }
        let result = f(cache);
        cache.leave_open();
        Ok(result)
    }

    /// Takes blocks out of a cache, the largest first, as many as are over the target. For those
    /// who have the cache.
    fn take_excess(&self, cache: &ThreadCache, target: usize) -> Chain {
        let mut excess = self.reserved().saturating_sub(target);
        let mut chain = Chain::new();
        for class in (0..self.settings.classes).rev() {
            while excess > 0
                && let Some(block) = cache.take_one(class)
            {
                excess = excess.saturating_sub(class::bytes_of(class));
                // SAFETY: just taken.
                unsafe { chain.push(block) };
            }
        }
        chain
    }
}
