//! Trims: what takes idle memory out of the shards and of all threads' caches, and frees it.

use core::ptr::{self, NonNull};
use core::time::Duration;
use std::time::Instant;

use bufkit::sync::try_lock;

use crate::cache::{Arrays, ClaimError, ThreadCache};
use crate::chain::Chain;
use crate::class;
use crate::counts::Why;
use crate::shared::Shared;
use crate::sync;

/// What becomes of the slots of magazines that are emptied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Slots {
    /// They stay with their thread, which will want them again.
    Stay,
    /// They go as well, so that other threads may have as many.
    Go,
}

impl Shared {
    /// Frees idle blocks until those that there are have at most `target` bytes of pages, or none
    /// is to be had: what is in the shards first, then the calling thread's cache, then those of
    /// others. `slots` says what becomes of those of the magazines that this empties. Returns
    /// `false` when it has not looked at all there is: a cache was not to be had, or so much was
    /// free already, which another may take meanwhile. The caller holds a handle.
    pub(crate) fn shrink(&self, target: usize, slots: Slots) -> bool {
        let all = || if self.held() > target { usize::MAX } else { 0 };
        if target == 0 {
            return self.shrink_by(slots, target, all).0;
        }
        let (saw_all, freed) = self.shrink_by(slots, target, || self.held().saturating_sub(target));
        // Blocks of slabs that are in use otherwise bring no page: then all go.
        if !saw_all || freed == 0 {
            return saw_all;
        }
        self.shrink_by(slots, target, all).0
    }

    /// Frees as many bytes of idle blocks as `excess` says, and asks again on the way. Returns
    /// whether it looked at all there is, and how many blocks went.
    fn shrink_by(&self, slots: Slots, target: usize, excess: impl Fn() -> usize) -> (bool, usize) {
        let this = NonNull::from(self);
        let (mut saw_all, mut freed) = (true, 0);
        for class in (0..self.settings.classes).rev() {
            let excess = excess();
            if excess == 0 {
                saw_all &= target == 0;
                break;
            }
            let mut chain = Chain::new();
            saw_all &= self.depot.take_all(class, excess.div_ceil(class::bytes_of(class)), &mut chain);
            freed += chain.len();
            // SAFETY: the chain is ours, of this pool.
            unsafe { Self::free_chain(this, chain, Why::Trim) };
        }
        // The calling thread's first.
        let own = ThreadCache::find(self.id);
        let others = self.caches().filter(|cache| !own.is_some_and(|own| ptr::eq(own, *cache)));
        let are_all_slots = slots == Slots::Go && target == 0;
        let mut is_fenced = None;
        for cache in own.into_iter().chain(others) {
            let excess = excess();
            if excess == 0 && !are_all_slots {
                saw_all &= target == 0;
                break;
            }
            let has_slots = are_all_slots && cache.has_slots();
            if !has_slots && self.is_empty_for_all(cache, &mut is_fenced) {
                continue;
            }
            match self.with_magazines(cache, own, |cache| self.take_excess(cache, excess, target, slots)) {
                Ok((chain, arrays)) => {
                    drop(arrays);
                    freed += chain.len();
                    // SAFETY: the chain is ours, of this pool.
                    unsafe { Self::free_chain(this, chain, Why::Trim) };
                }
                Err(ClaimError::Busy) => saw_all = false,
                // It stays with its thread, until that has seen this and frees it.
                Err(ClaimError::NoFence) => self.disable_caches(),
            }
        }
        (saw_all, freed)
    }

    /// Returns whether there is nothing in a cache, by a look from outside. With somebody waiting,
    /// its thread puts nothing in later, either: all caches have their flag by then, and one fence
    /// is enough for all of them.
    pub(crate) fn is_empty_for_all(&self, cache: &ThreadCache, is_fenced: &mut Option<bool>) -> bool {
        if !self.is_waited_for() {
            return cache.is_empty();
        }
        *is_fenced.get_or_insert_with(|| sync::heavy_fence(false)) && cache.stays_empty()
    }

    /// Frees what was not used since the last look, if that was `age` ago or more, and looks. The
    /// caller holds a handle.
    pub(crate) fn shrink_idle(&self, age: Duration) {
        // Before the lock: it may call what is not ours.
        let own = ThreadCache::find(self.id);
        let Some(mut since) = try_lock(&self.idle_since) else { return };
        let now = Instant::now();
        if since.is_some_and(|since| now.duration_since(since) < age) {
            return;
        }
        let is_first = since.replace(now).is_none();
        let look = self.begin_look();
        let (mut idle, mut halves, mut arrays) = (Chain::new(), Chain::new(), Arrays::new());
        for cache in self.caches() {
            if let Some(unused) = cache.note_use(look)
                && !is_first
            {
                match self.with_magazines(cache, own, |cache| cache.take_unused(&unused, look)) {
                    Ok(taken) => {
                        idle.append(taken.unused);
                        halves.append(taken.halves);
                        arrays.append(taken.arrays);
                    }
                    Err(ClaimError::Busy) => {}
                    Err(ClaimError::NoFence) => self.disable_caches(),
                }
            }
        }
        let are_halves = !halves.is_empty();
        let rest = self.put_halves(halves);
        for class in 0..self.settings.classes {
            // Of a bin that was not looked at before, nothing is unused. What was put into it just
            // now counts as there since this look.
            idle.append(self.depot.take_unused(class));
        }
        drop(since);
        drop(arrays);
        let held = self.held();
        // SAFETY: the chain is ours, of this pool.
        unsafe { Self::free_chain(NonNull::from(self), idle, Why::Trim) };
        // What it had was not used either.
        self.heap.trim_unused(held.saturating_sub(self.held()));
        if are_halves {
            // SAFETY: the handle keeps the pool; the rest is ours, of this pool.
            unsafe { Self::after_put(NonNull::from(self), rest, self.keep_for_waiters()) };
        }
    }

    /// Puts blocks of any class into the shards, which know at the next look whether they were
    /// needed, and returns those that they have no room for. To be followed by `after_put`.
    fn put_halves(&self, mut halves: Chain) -> Chain {
        let mut rest = Chain::new();
        while let Some(block) = halves.pop() {
            // SAFETY: a block of the chain is valid.
            let class = unsafe { block.as_ref() }.class();
            let mut block = Some(block);
            rest.append(self.put(0, class, || block.take()));
        }
        rest
    }

    /// Runs `f` with the magazines of a cache, the calling thread's `own` or another's. The caller
    /// holds a handle.
    fn with_magazines<R>(
        &self,
        cache: &ThreadCache,
        own: Option<&ThreadCache>,
        f: impl FnOnce(&ThreadCache) -> R,
    ) -> Result<R, ClaimError> {
        if !own.is_some_and(|own| ptr::eq(own, cache)) {
            return cache.claimed(f);
        }
        if !cache.enter_to_take() {
            return Err(ClaimError::Busy);
        }
        let result = f(cache);
        cache.leave_open();
        Ok(result)
    }

    /// Frees what is in the calling thread's cache, once, if the thread is to keep nothing.
    ///
    /// # Safety
    ///
    /// A handle or a block keeps the bookkeeping. User code runs in this, in which the cache may go
    /// unless a handle keeps the pool.
    #[cold]
    pub(crate) unsafe fn empty_disabled(this: NonNull<Self>, cache: &ThreadCache) {
        if !cache.is_to_be_emptied() || !cache.enter_to_take() {
            return;
        }
        // SAFETY: the caller's promise.
        let (chain, arrays) = unsafe { this.as_ref() }.take_excess(cache, usize::MAX, 0, Slots::Go);
        cache.set_emptied();
        if cache.leave() {
            cache.drain_closed();
        }
        drop(arrays);
        // SAFETY: the chain is ours, of this pool.
        unsafe { Self::free_chain(this, chain, Why::Trim) };
    }

    /// Takes `excess` bytes of blocks out of a cache, the largest first; and slots. The caller has
    /// the cache.
    fn take_excess(
        &self,
        cache: &ThreadCache,
        mut excess: usize,
        target: usize,
        slots: Slots,
    ) -> (Chain, Arrays) {
        let (mut chain, mut arrays) = (Chain::new(), Arrays::new());
        for class in (0..self.settings.classes).rev() {
            while excess > 0
                && let Some(block) = cache.take_one(class)
            {
                excess = excess.saturating_sub(class::bytes_of(class));
                // SAFETY: just taken.
                unsafe { chain.push(block) };
            }
            if slots == Slots::Go && (excess > 0 || target == 0) {
                arrays.extend(cache.narrow(class));
            }
        }
        (chain, arrays)
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use crate::ShardPool;

    /// Another request may take what was free already. Who waits then has to look at the rest: no
    /// release tells him of it.
    #[test]
    fn who_had_enough_has_not_looked_at_all() {
        let pool = ShardPool::builder().max_bytes(100_000).build().expect("settings are right");
        drop((pool.acquire(5_000), pool.acquire(20_000)));
        let shared = pool.shared();
        let held = shared.held();
        assert!(!shared.shrink(held, Slots::Stay));
        assert!(!shared.shrink(held - 1, Slots::Stay), "the larger one is enough");
        assert!(shared.held() > 0 && shared.shrink(0, Slots::Stay));
        assert_eq!(shared.held(), 0);
    }
}
