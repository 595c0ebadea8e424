//! A thread's cache of shards for one pool: which one it carves from, which others it has, and
//! where it finds one that fits.
//!
//! # Who uses a cache
//!
//! The thread that has it, while it holds a handle of the pool, in an acquire. Without a handle, in
//! a release or at the thread's end, the pool may be dropped on another thread at the same moment;
//! so it enters first, and who finds the cache closed leaves it alone:
//!
//! ```text
//!            take                 enter                 leave
//!   FREE ──────────> HELD ──────────────────> BUSY ──────────> HELD
//!    ^                 │ pool's end             │ pool's end
//!    │ thread's end    v                        v
//!    └─── (BUSY)     CLOSED, by the pool     CLOSED, and `leave` gives the shards up
//! ```
//!
//! # Invariants
//!
//! - N1: `current`, the list and the spares are disjoint; all are owned by the cache's thread.
//! - N2: nothing is out of a spare, and it starts at its first byte.
//! - N3: except for `state`, only whoever has the cache as above uses it.
//! - N4: the allocator, which is others' code and may end the pool or the thread's use of it, is
//!   not called between `enter` and `leave`, nor while a list of the cache is walked. Shards that
//!   are to be freed wait in a chain.

pub(crate) mod local;
mod refill;

use core::cell::Cell;
use core::ptr::{self, NonNull};

use bufcore::strategy::sync::{AtomicU32, AtomicUsize, Ordering};
use bufcore::strategy::threads::Cache;
use bufcore::strategy::{Link, Listed};

use crate::shard::{Chain, Shard};
use crate::shared::{Refs, Shared};

/// No thread has it; it has no shards.
const FREE: u32 = 0;
/// A thread has it.
const HELD: u32 = 1;
/// A thread has it and is at work in it without a handle of the pool.
const BUSY: u32 = 2;
/// The pool is gone.
const CLOSED: u32 = 3;

/// A cache.
#[repr(C)]
pub(crate) struct ThreadCache {
    /// What the thread's lists know of it. First, so that its address is the cache's.
    _head: Cache,
    state: AtomicU32,
    /// Valid as long as the cache is (`shared`, P1).
    shared: NonNull<Shared>,
    /// The thread's token.
    token: AtomicUsize,
    /// The next of all caches of the pool.
    all_next: Link<ThreadCache>,
    /// The shard that is being carved, or null.
    current: Cell<*const Shard>,
    /// Where the search goes on in the circular list of the others; null when there are none.
    cursor: Cell<*const Shard>,
    /// Shards with nothing in them (N2).
    spares: Cell<*const Shard>,
    spare_count: Cell<usize>,
    /// `Shared::trims` at the last look.
    trims: Cell<usize>,
    /// Stands for the fields above, to the model checker, and for the cache as others see it.
    #[cfg(all(test, loom))]
    shadow: buftest::models::Shadow,
    #[cfg(all(test, loom))]
    life: buftest::models::Shadow,
}

// SAFETY: one field.
unsafe impl Listed for ThreadCache {
    fn link(&self) -> &Link<Self> {
        &self.all_next
    }
}

impl ThreadCache {
    /// A cache that the thread with that token has.
    pub(crate) fn new(shared: NonNull<Shared>, id: usize, token: usize) -> Self {
        Self {
            _head: Cache::new(id, &local::METHODS),
            state: AtomicU32::new(HELD),
            shared,
            token: AtomicUsize::new(token),
            all_next: Link::default(),
            current: Cell::new(ptr::null()),
            cursor: Cell::new(ptr::null()),
            spares: Cell::new(ptr::null()),
            spare_count: Cell::new(0),
            trims: Cell::new(0),
            #[cfg(all(test, loom))]
            shadow: buftest::models::Shadow::default(),
            #[cfg(all(test, loom))]
            life: buftest::models::Shadow::default(),
        }
    }

    fn shared(&self) -> &Shared {
        // SAFETY: valid as long as the cache is.
        unsafe { self.shared.as_ref() }
    }

    /// Makes a cache that no thread has the calling thread's.
    pub(crate) fn take(&self, token: usize) -> bool {
        #[cfg(all(test, loom))]
        self.life.read();
        // ORDER: Relaxed: a look that saves the exchange.
        if self.state.load(Ordering::Relaxed) != FREE {
            return false;
        }
        // ORDER: Acquire pairs with the Release of `end_of_thread`: the fields are as that thread
        // left them.
        let taken = self.state.compare_exchange(FREE, HELD, Ordering::Acquire, Ordering::Relaxed).is_ok();
        if taken {
            #[cfg(all(test, loom))]
            self.shadow.write();
            // ORDER: Relaxed: only this thread reads it.
            self.token.store(token, Ordering::Relaxed);
        }
        taken
    }

    /// Whether the pool is gone.
    pub(crate) fn is_closed(&self) -> bool {
        // ORDER: Relaxed: nothing of the cache is used then.
        self.state.load(Ordering::Relaxed) == CLOSED
    }

    /// Begins work on the cache, by its thread, without a handle of the pool. `false` when the pool
    /// is gone.
    pub(crate) fn enter(&self) -> bool {
        // ORDER: Relaxed: what is in the cache this thread wrote itself. A failure ends the work.
        let entered = self.state.compare_exchange(HELD, BUSY, Ordering::Relaxed, Ordering::Relaxed);
        #[cfg(all(test, loom))]
        if entered.is_ok() {
            self.shadow.write();
        }
        entered.is_ok()
    }

    /// Ends the work that `enter` began. The shards that it returns are the caller's, for
    /// [`Shared::all_come_back`]: the pool is gone, and nothing is out of them.
    pub(crate) fn leave(&self) -> Chain {
        // ORDER: Release pairs with the Acquire in `close`: it sees what was changed. A failure
        // says that the pool is gone, and the shards are still this thread's; Acquire pairs with
        // the Release there.
        if self.state.compare_exchange(BUSY, HELD, Ordering::Release, Ordering::Acquire).is_err() {
            return self.give_up();
        }
        Chain::new()
    }

    /// Makes a cache that was taken, and not used, one that no thread has. For its thread with a
    /// handle.
    pub(crate) fn give_back(&self) {
        // ORDER: Release pairs with the Acquire in `take`.
        self.state.store(FREE, Ordering::Release);
    }

    /// Gives up all shards, whose owner is the calling thread: those with something out to their
    /// last buffer. Those with nothing out it returns: they are the caller's.
    fn give_up(&self) -> Chain {
        let mut free = Chain::new();
        self.each(|shard| {
            // SAFETY: the shard is this thread's and is not used here again if something is out;
            // otherwise it is ours alone.
            if unsafe { shard.as_ref() }.abandon() {
                // SAFETY: ours alone, so valid.
                free.push(unsafe { shard.as_ref() });
            }
        });
        free
    }

    /// Takes all shards out of the cache and lets `f` have them, one by one. It calls no code of
    /// others.
    fn each(&self, mut f: impl FnMut(NonNull<Shard>)) {
        #[cfg(all(test, loom))]
        self.shadow.write();
        if let Some(current) = NonNull::new(self.current.replace(ptr::null()).cast_mut()) {
            f(current);
        }
        while let Some(shard) = NonNull::new(self.cursor.get().cast_mut()) {
            // SAFETY: in the list, so valid and this cache's (N1).
            self.unlink(unsafe { shard.as_ref() });
            f(shard);
        }
        while let Some(shard) = NonNull::new(self.pop_spare().cast_mut()) {
            f(shard);
        }
    }

    /// The end of the pool; `is_own` says whether the calling thread has the cache. Adds the shards
    /// with nothing out to `free`, which are the caller's alone then, and those that were orphaned,
    /// and are to be adopted, to `left`.
    pub(crate) fn close(&self, is_own: bool, free: &mut Chain, left: &mut Chain) {
        // ORDER: Acquire pairs with the Release of `leave` and `end_of_thread`; what the thread did
        // in its acquires happened before the last handle went. Release pairs with the Acquire in
        // `leave`.
        if self.state.swap(CLOSED, Ordering::AcqRel) != HELD {
            // Empty, or at work: `leave` does the rest.
            return;
        }
        self.each(|shard| {
            // SAFETY: the cache was the pool's end's alone from the exchange on, so the shard was
            // in it and is valid.
            let shard = unsafe { shard.as_ref() };
            if is_own {
                // Otherwise it is its last buffer's, and may be gone.
                if shard.abandon() {
                    free.push(shard);
                }
            } else if shard.orphan() {
                free.push(shard);
            } else {
                left.push(shard);
            }
        });
    }

    /// The end of the thread that has the cache.
    ///
    /// # Safety
    ///
    /// The cache is off the thread's list, and is not used by it again.
    pub(crate) unsafe fn end_of_thread(this: NonNull<ThreadCache>) {
        // SAFETY: the thread's reference keeps the pool's bookkeeping.
        let cache = unsafe { this.as_ref() };
        let mut free = Chain::new();
        if cache.enter() {
            free = cache.give_up();
            // ORDER: Release pairs with the Acquire in `take`, and in `close`. A failure says that
            // the pool is gone, which is as well.
            let _ = cache.state.compare_exchange(BUSY, FREE, Ordering::Release, Ordering::Relaxed);
        }
        // SAFETY: the caller's promise.
        unsafe { Self::let_go(this) };
        // SAFETY: ours alone; each keeps the pool's bookkeeping.
        unsafe { Shared::all_come_back(free) };
    }

    /// Gives back the thread's reference to the pool's bookkeeping.
    ///
    /// # Safety
    ///
    /// The cache is off the thread's list, and is not used by it again.
    pub(crate) unsafe fn let_go(this: NonNull<ThreadCache>) {
        // SAFETY: valid by the reference that is given back.
        let shared = unsafe { this.as_ref() }.shared;
        // SAFETY: the thread's reference, once.
        drop(unsafe { Refs::new(shared, 1) });
    }

    /// Puts a shard at the end of the list: the search comes to it last.
    fn list(&self, shard: &Shard) {
        shard.set_listed(true);
        // SAFETY: a shard of the list is valid (N1).
        match unsafe { self.cursor.get().as_ref() } {
            None => {
                shard.set_next(shard);
                shard.set_prev(shard);
                self.cursor.set(shard);
            }
            Some(cursor) => {
                let before = cursor.prev();
                shard.set_next(cursor);
                shard.set_prev(before);
                cursor.set_prev(shard);
                // SAFETY: as above.
                unsafe { &*before }.set_next(shard);
            }
        }
    }

    /// Takes a shard out of the list.
    fn unlink(&self, shard: &Shard) {
        let (before, behind) = (shard.prev(), shard.next());
        if ptr::eq(behind, shard) {
            self.cursor.set(ptr::null());
            return;
        }
        // SAFETY: a shard of the list is valid (N1).
        unsafe { &*before }.set_next(behind);
        // SAFETY: likewise.
        unsafe { &*behind }.set_prev(before);
        if ptr::eq(self.cursor.get(), shard) {
            self.cursor.set(behind);
        }
    }

    fn pop_spare(&self) -> *const Shard {
        let spare = self.spares.get();
        // SAFETY: a spare is valid (N1).
        if let Some(shard) = unsafe { spare.as_ref() } {
            self.spares.set(shard.next());
            self.spare_count.set(self.spare_count.get() - 1);
        }
        spare
    }

    /// Takes a shard of the list, of which nothing is out and which starts at its first byte, out
    /// of it: to the spares while they are few, and else to `over`, whose shards are the caller's,
    /// for [`Shared::all_come_back`].
    pub(crate) fn retire(&self, shard: &Shard, over: &mut Chain) {
        self.unlink(shard);
        let shared = self.shared();
        if self.spare_count.get() < shared.settings.spare_shards && !shared.is_stale(shard) {
            shard.set_next(self.spares.get());
            self.spares.set(shard);
            self.spare_count.set(self.spare_count.get() + 1);
        } else {
            over.push(shard);
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
impl ThreadCache {
    /// Asserts the invariants at the top of this file.
    pub(crate) fn check(&self) {
        let mut seen = alloc::vec::Vec::new();
        let mut see = |shard: *const Shard| {
            assert!(!seen.contains(&shard), "N1: a shard is in two places");
            seen.push(shard);
            // SAFETY: a shard of the cache is valid (N1).
            let shard = unsafe { &*shard };
            assert!(shard.is_owned_by(local::token()), "N1: the owner");
            shard.check();
            shard
        };
        if !self.current.get().is_null() {
            assert!(see(self.current.get()).is_current());
        }
        let mut at = self.cursor.get();
        while !at.is_null() {
            let shard = see(at);
            assert!(!shard.is_current(), "a shard of the list is carved");
            // SAFETY: as above.
            assert!(ptr::eq(unsafe { &*shard.next() }.prev(), shard), "the list is torn");
            at = if ptr::eq(shard.next(), self.cursor.get()) { ptr::null() } else { shard.next() };
        }
        let (mut at, mut spares) = (self.spares.get(), 0);
        while !at.is_null() {
            let shard = see(at);
            assert!(shard.is_back() && shard.is_at_start(), "N2");
            at = shard.next();
            spares += 1;
        }
        assert_eq!(spares, self.spare_count.get());
        assert!(spares <= self.shared().settings.spare_shards);
    }
}
