//! The magazines of a thread's cache. Only a thread that has the magazines (`cache`, N1) may use
//! any of this, unless it says otherwise.

use core::cell::Cell;
use core::ptr::{self, NonNull};

use super::arrays::{Arrays, Slot};
use super::growth::{self, Evidence};
use super::{BLOCKS, CLASS_SHIFT, COLD, LAST_CLASS, NO_LAST, PUSH, ThreadCache, WARM_AFTER};
use crate::block::Block;
use crate::chain::Chain;
use crate::class::MAX_CLASSES;
use crate::sync::{AtomicUsize, CountU32, Ordering, RELEASE};

/// The magazine of one class.
pub(super) struct Magazine {
    /// How often a block was put in, its class, and the number of its blocks.
    pub(super) state: AtomicUsize,
    /// Of the cache's store, or of an array (`growth`); null without any.
    slots: Cell<*const Slot>,
    pub(super) evidence: Evidence,
    /// Slots that it may use. Written by who has the cache, and read by the thread before it knows
    /// that it has: what it read counts only when it finds that nobody had the cache since.
    limit: CountU32,
    /// Its state when `trim_idle` last looked; guarded by the lock of that.
    mark: Cell<usize>,
}

/// Magazines that have more than was needed for a time; see `ThreadCache::note_use`.
pub(crate) struct Unused {
    magazines: [Need; MAX_CLASSES],
    last_freed: bool,
}

/// What was taken out of a cache that had more than was needed.
pub(crate) struct Taken {
    /// Blocks that nobody needed.
    pub(crate) unused: Chain,
    /// Blocks for the depot, of any class.
    pub(crate) halves: Chain,
    /// Slots, to be freed when no cache is claimed.
    pub(crate) arrays: Arrays,
}

/// What was needed of a magazine between two looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Need {
    /// All of it, or nothing is known.
    All,
    /// No more than it had.
    Less,
    /// Nothing.
    None,
}

impl Magazine {
    /// Makes the magazine of a class, without slots.
    pub(super) fn empty(class: usize) -> Self {
        Self {
            state: AtomicUsize::new(class << CLASS_SHIFT),
            slots: Cell::new(ptr::null()),
            evidence: Evidence::none(),
            limit: CountU32::new(0),
            mark: Cell::new(0),
        }
    }

    /// Returns how many slots the magazine may use.
    #[inline(always)]
    pub(super) fn limit(&self) -> usize {
        // ORDER: Relaxed: whether it counts is said by the cache's `word`.
        self.limit.load(Ordering::Relaxed) as usize
    }

    pub(super) fn set_limit(&self, limit: usize) {
        // ORDER: Relaxed: the cache's `word` orders it, or it is the thread's own.
        self.limit.store(limit as u32, Ordering::Relaxed);
    }

    /// Returns the state. The caller has the cache, or wants a hint.
    fn state(&self) -> usize {
        // ORDER: Relaxed: who has the magazine has seen what the last one did.
        self.state.load(Ordering::Relaxed)
    }

    /// Stores the state. The caller has the cache.
    fn set_state(&self, state: usize) {
        // ORDER: Release, as in `pop`.
        self.state.store(state, RELEASE);
    }

    /// Returns the magazine's slots, if it has any.
    pub(super) fn slots(&self) -> Option<NonNull<Slot>> {
        NonNull::new(self.slots.get().cast_mut())
    }

    /// Puts its blocks into other slots, of which it uses `limit`, and returns the slots that it
    /// had.
    ///
    /// # Safety
    ///
    /// `slots` are `limit` slots that nobody else uses, as many as it has blocks at least.
    pub(super) unsafe fn move_to(
        &self,
        slots: NonNull<Slot>,
        limit: usize,
    ) -> Option<(NonNull<Slot>, usize)> {
        for index in 0..self.len() {
            // SAFETY: below the limit (N2), and the caller has the magazine.
            let block = unsafe { self.slot(index) }.get();
            // SAFETY: there are as many slots, which are nobody else's.
            let to = unsafe { slots.add(index) };
            // SAFETY: likewise.
            unsafe { to.as_ref() }.set(block);
        }
        let old = self.slots().zip(Some(self.limit()));
        self.slots.set(slots.as_ptr());
        self.set_limit(limit);
        old
    }

    /// Takes the slots of an empty magazine, and says how many it might use.
    pub(super) fn take_slots(&self) -> Option<(NonNull<Slot>, usize)> {
        let old = self.slots().zip(Some(self.limit()));
        self.slots.set(ptr::null());
        self.set_limit(0);
        old
    }

    /// Takes the newest block. The caller has the cache.
    #[inline(always)]
    fn take_newest(&self) -> Option<NonNull<Block>> {
        let last = self.len().checked_sub(1)?;
        // SAFETY: within the limit (N2), and the magazine is the caller's (N1).
        let block = unsafe { self.slot(last) }.get();
        self.set_state(self.state() - 1);
        NonNull::new(block.cast_mut())
    }

    /// Takes the `count` oldest blocks, or all, and adds them to `chain`. The caller has the cache.
    pub(super) fn take_oldest(&self, count: usize, chain: &mut Chain) {
        let len = self.len();
        let count = count.min(len);
        for index in 0..len {
            // SAFETY: below the limit (N2), and the caller has the magazine.
            let block = unsafe { self.slot(index) }.get();
            if index < count {
                if let Some(block) = NonNull::new(block.cast_mut()) {
                    // SAFETY: taken, as the state says below.
                    unsafe { chain.push(block) };
                }
            } else {
                // SAFETY: likewise.
                unsafe { self.slot(index - count) }.set(block);
            }
        }
        self.set_state(self.state() - count);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of blocks in the magazine.
    pub(super) fn len(&self) -> usize {
        self.state() & BLOCKS
    }

    /// Returns the slot `index`.
    ///
    /// # Safety
    ///
    /// `index` is below the limit, and the caller has the magazine while it uses the slot.
    #[inline(always)]
    pub(super) unsafe fn slot(&self, index: usize) -> &Cell<*const Block> {
        // SAFETY: each magazine has `limit` slots from there on.
        let slot = unsafe { self.slots.get().add(index) };
        // SAFETY: they are the magazine's until it gives them up, which only who has it does.
        unsafe { &*slot }
    }
}

impl ThreadCache {
    /// Takes a block as `pop` does. The caller is between `enter` and `leave`, or has claimed the
    /// cache.
    pub(crate) fn take_one(&self, class: usize) -> Option<NonNull<Block>> {
        if self.last_freed_class() == class { self.take_last_freed() } else { self.take_of_magazine(class) }
    }

    /// Takes the newest block of a magazine.
    fn take_of_magazine(&self, class: usize) -> Option<NonNull<Block>> {
        self.magazines.get(class)?.take_newest()
    }

    /// Returns the class of the block that is apart, or a number beyond all classes.
    pub(super) fn last_freed_class(&self) -> usize {
        // ORDER: Relaxed: who has the cache has seen what the last one did; for others a hint.
        (self.last_freed.load(Ordering::Relaxed) & LAST_CLASS) as usize
    }

    /// Takes the block that is apart.
    fn take_last_freed(&self) -> Option<NonNull<Block>> {
        if self.last_freed_class() >= MAX_CLASSES {
            return None;
        }
        let block = self.last_freed_block.get();
        // ORDER: Release, as in `pop`. No other store comes between: the caller has the cache.
        self.last_freed.fetch_or(NO_LAST, RELEASE);
        NonNull::new(block.cast_mut())
    }

    /// Puts a block in as `push` does; returns `false` when the magazine is full. The caller is
    /// between `enter` and `leave`.
    ///
    /// # Safety
    ///
    /// As for [`push`](Self::push).
    pub(crate) unsafe fn put_one(&self, class: usize, block: NonNull<Block>) -> bool {
        let Some(magazine) = self.magazines.get(class) else { return false };
        let len = magazine.len();
        if len >= magazine.limit() {
            return false;
        }
        // SAFETY: `len` is below the limit, and the magazine is the caller's (N1).
        unsafe { magazine.slot(len) }.set(block.as_ptr());
        magazine.set_state(magazine.state().wrapping_add(PUSH));
        true
    }

    /// Returns whether it is time for `put_apart`, once. Only the cache's thread calls it.
    pub(crate) fn is_warm_now(&self) -> bool {
        let is_warm = self.cold_for.get() == 0;
        if is_warm {
            self.cold_for.set(WARM_AFTER);
        }
        is_warm
    }

    /// Puts a block apart; the one that is there goes to its magazine. Returns `false` when that
    /// has no room. The caller is between `enter` and `leave`.
    ///
    /// # Safety
    ///
    /// As for [`push`](Self::push).
    pub(crate) unsafe fn put_apart(&self, class: usize, block: NonNull<Block>) -> bool {
        let last_class = self.last_freed_class();
        if let Some(last) = self.take_last_freed() {
            // SAFETY: just taken.
            if !unsafe { self.put_one(last_class, last) } {
                // ORDER: Relaxed: the caller has the cache.
                self.last_freed.fetch_and(!NO_LAST | last_class as u32, Ordering::Relaxed);
                return false;
            }
        }
        self.last_freed_block.set(block.as_ptr());
        // ORDER: Relaxed, as above.
        let last_freed = self.last_freed.load(Ordering::Relaxed);
        self.last_freed.store(last_freed & !(LAST_CLASS | COLD) | class as u32, RELEASE);
        true
    }

    /// Takes all blocks of a magazine.
    fn take_magazine(&self, class: usize) -> Chain {
        let mut chain = Chain::new();
        while let Some(block) = self.take_of_magazine(class) {
            // SAFETY: just taken.
            unsafe { chain.push(block) };
        }
        chain
    }

    /// Takes all blocks of a class.
    pub(super) fn take_all(&self, class: usize) -> Chain {
        let mut chain = self.take_magazine(class);
        if self.last_freed_class() == class
            && let Some(block) = self.take_last_freed()
        {
            // SAFETY: just taken.
            unsafe { chain.push(block) };
        }
        chain
    }

    /// Counts the cache's blocks of a class, as far as can be seen at this moment without stopping
    /// its thread. The caller holds a handle.
    pub(crate) fn count(&self, class: usize) -> usize {
        self.magazines.get(class).map_or(0, Magazine::len) + usize::from(self.last_freed_class() == class)
    }

    /// Returns whether the cache has no blocks, at some moment. The caller holds a handle.
    pub(crate) fn is_empty(&self) -> bool {
        self.last_freed_class() >= MAX_CLASSES && self.magazines.iter().all(Magazine::is_empty)
    }

    /// Returns whether any magazine has slots, at some moment. The caller holds a handle.
    pub(crate) fn has_slots(&self) -> bool {
        self.magazines.iter().any(|magazine| magazine.limit() > 0)
    }

    /// Returns how many blocks of a class a trip to the depot brings, with the one that is asked
    /// for.
    pub(crate) fn wanted(&self, class: usize) -> usize {
        let limit = self.magazines.get(class).map_or(0, Magazine::limit);
        limit.clamp(1, growth::batch(class))
    }

    /// Returns what takes the newest blocks of a class, as many as a trip to the depot takes away.
    pub(crate) fn unwanted(&self, class: usize) -> impl FnMut() -> Option<NonNull<Block>> {
        let magazine = self.magazines.get(class);
        let mut left = magazine.map_or(0, |magazine| magazine.len().min(growth::batch(class)));
        move || {
            left = left.checked_sub(1)?;
            magazine?.take_newest()
        }
    }

    /// Returns a number that changes when the cache is used, as far as can be seen without stopping
    /// its thread. The caller holds a handle.
    pub(crate) fn uses(&self) -> usize {
        // ORDER: Relaxed: a count.
        let last_freed = self.last_freed.load(Ordering::Relaxed) as usize;
        self.magazines.iter().map(Magazine::state).fold(last_freed, usize::wrapping_add)
    }

    /// Notes how often each magazine was used, and returns which had more than was needed since the
    /// last note; `None` when there are none. `look` is the number of this look. The caller has the
    /// lock of the marks, and a handle.
    pub(crate) fn note_use(&self, look: u32) -> Option<Unused> {
        let mut unused = [Need::All; MAX_CLASSES];
        for (magazine, need) in self.magazines.iter().zip(&mut unused) {
            let state = magazine.state();
            if magazine.mark.replace(state) == state && magazine.limit() > 0 {
                *need = Need::None;
            } else if magazine.is_halved_by(look) {
                *need = Need::Less;
            }
        }
        // ORDER: Relaxed: a hint, and a count.
        let last_freed = self.last_freed.load(Ordering::Relaxed);
        let is_last_unused =
            self.last_freed_mark.replace(last_freed) == last_freed && self.last_freed_class() < MAX_CLASSES;
        let is_any = is_last_unused || unused.iter().any(|need| *need != Need::All);
        is_any.then_some(Unused { magazines: unused, last_freed: is_last_unused })
    }

    /// Takes what is in magazines that were not used until the note and since, with their slots,
    /// and half of what is in those that had more than was needed. The caller has the magazines,
    /// and the lock of the marks.
    pub(crate) fn take_unused(&self, unused: &Unused, look: u32) -> Taken {
        let (mut chain, mut halves, mut arrays) = (Chain::new(), Chain::new(), Arrays::new());
        for (class, magazine) in self.magazines.iter().enumerate() {
            match unused.magazines[class] {
                Need::None if magazine.mark.get() == magazine.state() => {
                    chain.append(self.take_magazine(class));
                    arrays.extend(self.narrow(class));
                    magazine.mark.set(magazine.state());
                }
                Need::Less => {
                    self.halve(class, look, &mut halves);
                    magazine.mark.set(magazine.state());
                }
                _ => {}
            }
        }
        // ORDER: Relaxed: the caller has the cache.
        if unused.last_freed
            && self.last_freed_mark.get() == self.last_freed.load(Ordering::Relaxed)
            && let Some(block) = self.take_last_freed()
        {
            // SAFETY: just taken.
            unsafe { chain.push(block) };
        }
        Taken { unused: chain, halves, arrays }
    }
}
