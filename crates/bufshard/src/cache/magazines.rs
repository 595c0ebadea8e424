//! The magazines of a thread's cache. Only a thread that has the magazines (`cache`, N1) may use
//! any of this, unless it says otherwise.

use alloc::vec::Vec;
use core::cell::Cell;
use core::ptr::{self, NonNull};

use super::{HOT_CLASS, NO_HOT, ThreadCache};
use crate::block::Block;
use crate::chain::Chain;
use crate::class::MAX_CLASSES;
use crate::settings::Settings;
use crate::sync::{AtomicU32, Ordering, RELEASE};

/// The magazine of one class.
pub(super) struct Magazine {
    /// Blocks that were ever taken out.
    pub(super) popped: AtomicU32,
    /// Blocks that were ever put in.
    pub(super) pushed: AtomicU32,
    /// Slots.
    pub(super) limit: u32,
    slots: *const Cell<*const Block>,
}

/// What the magazines of a cache point into.
pub(super) type Slots = Vec<Cell<*const Block>>;

/// Magazines that were not used for a time; see `ThreadCache::note_use`.
pub(crate) struct Unused {
    magazines: [bool; MAX_CLASSES],
    hot: bool,
}

impl Magazine {
    /// Blocks in it.
    fn len(&self) -> u32 {
        // ORDER: Relaxed, for both: who has the magazine has seen what the last one did.
        self.pushed.load(Ordering::Relaxed).wrapping_sub(self.popped.load(Ordering::Relaxed))
    }

    /// How often it was used, wrapping around.
    fn uses(&self) -> u32 {
        // ORDER: Relaxed, for both: a count.
        self.pushed.load(Ordering::Relaxed).wrapping_add(self.popped.load(Ordering::Relaxed))
    }

    /// The slot `index`.
    ///
    /// # Safety
    ///
    /// `index` is below the limit, and the caller has the magazine while it uses the slot.
    #[inline(always)]
    pub(super) unsafe fn slot(&self, index: u32) -> &Cell<*const Block> {
        // SAFETY: each magazine has `limit` slots from there on.
        let slot = unsafe { self.slots.add(index as usize) };
        // SAFETY: they live as long as the cache.
        unsafe { &*slot }
    }
}

/// The magazines of a new cache, and their slots; `None` when there is no memory.
pub(super) fn empty(settings: &Settings) -> Option<([Magazine; MAX_CLASSES], Slots)> {
    let limits: [u32; MAX_CLASSES] = core::array::from_fn(|class| settings.thread_limit(class) as u32);
    let total = limits.iter().map(|&limit| limit as usize).sum();
    let mut slots = Slots::new();
    slots.try_reserve_exact(total).ok()?;
    slots.resize_with(total, || Cell::new(ptr::null()));
    let mut rest = slots.as_ptr();
    let magazines = limits.map(|limit| {
        let slots = rest;
        rest = rest.wrapping_add(limit as usize);
        Magazine { popped: AtomicU32::new(0), pushed: AtomicU32::new(0), limit, slots }
    });
    Some((magazines, slots))
}

impl ThreadCache {
    /// As `pop`, between `enter` and `leave` or for who claims the cache.
    pub(crate) fn take_one(&self, class: usize) -> Option<NonNull<Block>> {
        if self.hot_class() == class { self.take_hot() } else { self.take_of_magazine(class) }
    }

    /// The newest block of a magazine.
    pub(crate) fn take_of_magazine(&self, class: usize) -> Option<NonNull<Block>> {
        let magazine = self.magazines.get(class)?;
        let len = magazine.len();
        if len == 0 {
            return None;
        }
        // SAFETY: `len` is at most the limit (N2), and the magazine is the caller's (N1).
        let block = unsafe { magazine.slot(len - 1) }.get();
        // ORDER: Relaxed: only who has the magazine reads it.
        let popped = magazine.popped.load(Ordering::Relaxed);
        // ORDER: Release, as in `pop`.
        magazine.popped.store(popped.wrapping_add(1), RELEASE);
        NonNull::new(block.cast_mut())
    }

    /// The class of the block that is apart, or more than all classes.
    pub(super) fn hot_class(&self) -> usize {
        // ORDER: Relaxed: who has the cache has seen what the last one did; for others a hint.
        (self.hot.load(Ordering::Relaxed) & HOT_CLASS) as usize
    }

    /// The block that is apart.
    pub(super) fn take_hot(&self) -> Option<NonNull<Block>> {
        if self.hot_class() >= MAX_CLASSES {
            return None;
        }
        let block = self.hot_block.get();
        // ORDER: Release, as in `pop`. No other store comes between: the caller has the cache.
        self.hot.fetch_or(NO_HOT, RELEASE);
        NonNull::new(block.cast_mut())
    }

    /// As `push`, between `enter` and `leave`; gives the block back when the magazine is full.
    ///
    /// # Safety
    ///
    /// As for [`push`](Self::push).
    pub(crate) unsafe fn put_one(&self, class: usize, block: NonNull<Block>) -> bool {
        let Some(magazine) = self.magazines.get(class) else { return false };
        let len = magazine.len();
        if len >= magazine.limit {
            return false;
        }
        // SAFETY: `len` is below the limit, and the magazine is the caller's (N1).
        unsafe { magazine.slot(len) }.set(block.as_ptr());
        // ORDER: Relaxed: only who has the magazine reads it.
        let pushed = magazine.pushed.load(Ordering::Relaxed);
        // ORDER: Release, as in `pop`.
        magazine.pushed.store(pushed.wrapping_add(1), RELEASE);
        true
    }

    /// All blocks of a magazine.
    pub(super) fn take_magazine(&self, class: usize) -> Chain {
        let mut chain = Chain::new();
        while let Some(block) = self.take_of_magazine(class) {
            // SAFETY: just taken.
            unsafe { chain.push(block) };
        }
        chain
    }

    /// All blocks of a class.
    pub(super) fn take_all(&self, class: usize) -> Chain {
        let mut chain = self.take_magazine(class);
        if self.hot_class() == class
            && let Some(block) = self.take_hot()
        {
            // SAFETY: just taken.
            unsafe { chain.push(block) };
        }
        chain
    }

    /// Blocks of a class in it, as far as can be seen at this moment without stopping its thread.
    /// For holders of a handle.
    pub(crate) fn count(&self, class: usize) -> usize {
        let Some(magazine) = self.magazines.get(class) else { return 0 };
        // The two counters are not read at once: while the thread is at work, their difference may
        // be any.
        let len = if magazine.len() <= magazine.limit { magazine.len() } else { 0 };
        len as usize + usize::from(self.hot_class() == class)
    }

    /// Whether there is nothing in it, at some moment. For holders of a handle.
    pub(crate) fn is_empty(&self) -> bool {
        self.hot_class() >= MAX_CLASSES && self.magazines.iter().all(|magazine| magazine.len() == 0)
    }

    /// Notes how often each magazine was used, and returns which were not used since the last note;
    /// `None` when none of those has anything in it. For who has the lock of `idle_marks`, and a
    /// handle.
    pub(crate) fn note_use(&self) -> Option<Unused> {
        let mut unused = [false; MAX_CLASSES];
        for ((magazine, mark), unused) in self.magazines.iter().zip(&self.idle_marks).zip(&mut unused) {
            let uses = magazine.uses();
            *unused = mark.replace(uses) == uses && magazine.len() > 0;
        }
        // ORDER: Relaxed: a hint, and a count.
        let hot = self.hot.load(Ordering::Relaxed);
        let is_hot_unused = self.hot_mark.replace(hot) == hot && self.hot_class() < MAX_CLASSES;
        (is_hot_unused || unused.contains(&true)).then_some(Unused { magazines: unused, hot: is_hot_unused })
    }

    /// Takes what is in magazines that were not used until the note and since. For those who have
    /// the magazines, and the lock of `idle_marks`.
    pub(crate) fn take_unused(&self, unused: &Unused) -> Chain {
        let mut chain = Chain::new();
        for (class, (magazine, mark)) in self.magazines.iter().zip(&self.idle_marks).enumerate() {
            if unused.magazines[class] && mark.get() == magazine.uses() {
                chain.append(self.take_all(class));
                mark.set(magazine.uses());
            }
        }
        // ORDER: Relaxed: the caller has the cache.
        if unused.hot
            && self.hot_mark.get() == self.hot.load(Ordering::Relaxed)
            && let Some(block) = self.take_hot()
        {
            // SAFETY: just taken.
            unsafe { chain.push(block) };
        }
        chain
    }
}
