//! A thread's cache of shards for one pool: which one it carves from, which others it has, and
//! where it finds one that fits.
//!
//! # Who uses a cache
//!
//! The thread that has it uses it in an acquire, while it holds a handle of the pool. In a release
//! or at the thread's end it may have no handle, and the pool may be dropped on another thread at
//! the same moment. So it enters first, and if it finds the cache closed, it leaves it alone:
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
//!   Others may free the memory of a shard of the list, and leave its header there
//!   (`shard::listed`).
//! - N2: nothing is out of a spare, and it starts at its first byte.
//! - N3: except for `state` and the spares, only whoever has the cache as above uses it. Other
//!   threads with a handle take from the spares, by exchanges (`atomic_slots`). Nobody but the
//!   cache's thread puts anything in. A cache that no thread has has none of them.
//! - N4: the allocator is not called between `enter` and `leave`, nor while a list of the cache is
//!   walked, nor between the choice of a shard and its carving. It is others' code, which may end
//!   the pool. Shards that are to be freed wait in a chain.

pub(crate) mod local;
mod refill;

use core::cell::Cell;
use core::ptr::{self, NonNull};

use bufkit::sync::{AtomicU32, Ordering};
use bufkit::thread_cache::{Cache, Methods};
use bufkit::{Link, RegistryEntry};

use crate::atomic_slots::AtomicSlots;
use crate::settings::MAX_SPARES;
use crate::shard::{Chain, Shard, Yielded};
use crate::shared::{CoreRef, Shared};

/// No thread has it; it has no shards.
const FREE: u32 = 0;
/// A thread has it.
const HELD: u32 = 1;
/// A thread has it and is at work in it without a handle of the pool.
const BUSY: u32 = 2;
/// The pool is gone.
const CLOSED: u32 = 3;

// What a thread costs beside its shards.
const _: () = assert!(cfg!(any(loom, shuttle)) || size_of::<ThreadCache>() <= 192);

/// A cache.
#[repr(C)]
pub(crate) struct ThreadCache {
    /// What the thread's lists know of it. First, so that its address is the cache's.
    _head: Cache,
    state: AtomicU32,
    /// Valid as long as the cache is (`shared`, P1).
    shared: NonNull<Shared>,
    /// The next of all caches of the pool.
    all_next: Link<ThreadCache>,
    /// The shard that is being carved, or null.
    current: Cell<*const Shard>,
    /// Where the search continues in the circular list of the others; null when there are none.
    cursor: Cell<*const Shard>,
    /// Shards with nothing in them (N2).
    spares: AtomicSlots<MAX_SPARES>,
    /// Stands for the fields above, to the model checker, and for the cache as others see it.
    #[cfg(all(test, loom))]
    shadow: testkit::models::Shadow,
    #[cfg(all(test, loom))]
    life: testkit::models::Shadow,
}

/// What the lists of a thread do with a cache.
static METHODS: Methods = Methods {
    is_closed: ThreadCache::is_closed,
    end_of_thread: ThreadCache::end_of_thread,
    on_pool_closed: ThreadCache::on_pool_closed,
};

// SAFETY: one field.
unsafe impl RegistryEntry for ThreadCache {
    fn link(&self) -> &Link<Self> {
        &self.all_next
    }
}

impl ThreadCache {
    /// Makes a cache that no thread has.
    pub(crate) fn new(shared: NonNull<Shared>, id: usize) -> Self {
        Self {
            _head: Cache::new(id, &METHODS),
            state: AtomicU32::new(FREE),
            shared,
            all_next: Link::default(),
            current: Cell::new(ptr::null()),
            cursor: Cell::new(ptr::null()),
            spares: AtomicSlots::new(),
            #[cfg(all(test, loom))]
            shadow: testkit::models::Shadow::default(),
            #[cfg(all(test, loom))]
            life: testkit::models::Shadow::default(),
        }
    }

    fn shared(&self) -> &Shared {
        // SAFETY: valid as long as the cache is.
        unsafe { self.shared.as_ref() }
    }

    /// Makes a cache that no thread has the calling thread's.
    pub(crate) fn take(&self) -> bool {
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
        }
        taken
    }

    /// Returns whether the pool is gone.
    ///
    /// # Safety
    ///
    /// `head` is that of a cache on the calling thread's list.
    unsafe fn is_closed(head: NonNull<Cache>) -> bool {
        // SAFETY: the thread's reference keeps the cache; the head is its first field.
        let cache = unsafe { head.cast::<Self>().as_ref() };
        // ORDER: Relaxed: nothing of the cache is used then.
        cache.state.load(Ordering::Relaxed) == CLOSED
    }

    /// Begins work on the cache, by its thread, without a handle of the pool. Returns `false` when
    /// the pool is gone.
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
    /// [`Shared::recycle_all`]: the pool is gone, and nothing is out of them.
    pub(crate) fn leave(&self) -> Chain {
        // ORDER: Release pairs with the Acquire in `close`: it sees what was changed. A failure
        // says that the pool is gone, and the shards are still this thread's; Acquire pairs with
        // the Release there.
        if self.state.compare_exchange(BUSY, HELD, Ordering::Release, Ordering::Acquire).is_err() {
            return self.give_up();
        }
        Chain::new()
    }

    /// Gives up all shards, whose owner is the calling thread: those with something out to their
    /// last buffer. Those with nothing out it returns: they are the caller's.
    fn give_up(&self) -> Chain {
        let mut free = Chain::new();
        self.each(|shard| {
            // SAFETY: the shard is this thread's and is not used here again if something is out;
            // otherwise it is ours alone.
            if unsafe { Shard::abandon(shard) } {
                // SAFETY: ours alone, so valid.
                unsafe { free.push(shard) };
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
            // SAFETY: as above, and it is what it is given that is used.
            match unsafe { Shard::leave_list(shard) } {
                Yielded::Shard => f(shard),
                // SAFETY: off the list, so this cache's no more.
                Yielded::Header => unsafe { self.vacate_detached(shard) },
                Yielded::Nothing => {}
            }
        }
        while let Some(shard) = self.spares.take() {
            f(shard);
        }
    }

    /// Takes a header without memory off the list, and gives it up.
    fn drop_detached(&self, header: NonNull<Shard>) {
        // SAFETY: in the list, so valid (N1).
        self.unlink(unsafe { header.as_ref() });
        // SAFETY: off the list just now.
        unsafe { self.vacate_detached(header) };
    }

    /// Gives up a header without memory that whoever had the memory has left to this cache
    /// (`shard::listed`).
    ///
    /// # Safety
    ///
    /// It is such a one, which is off the list, and it is not used again.
    unsafe fn vacate_detached(&self, header: NonNull<Shard>) {
        #[cfg(all(test, loom))]
        // SAFETY: nobody else's, so valid.
        unsafe { header.as_ref() }.shadow.write();
        // SAFETY: nobody else's, and not used again.
        unsafe { self.shared().depot.vacate(header) };
    }

    /// Closes the cache at the end of the pool; `is_own` says whether the calling thread has it.
    /// Adds the shards with nothing out to `free`, which are the caller's alone then. Adds those
    /// that were orphaned, and are to be deferred, to `orphans`.
    pub(crate) fn close(&self, is_own: bool, free: &mut Chain, orphans: &mut Chain) {
        // ORDER: Acquire pairs with the Release of `leave` and `end_of_thread`; what the thread did
        // in its acquires happened before the last handle went. Release pairs with the Acquire in
        // `leave`.
        if self.state.swap(CLOSED, Ordering::AcqRel) != HELD {
            // Empty, or at work: `leave` does the rest.
            return;
        }
        self.each(|shard| {
            // The cache was the pool's end's alone from the exchange on, so the shard was in it and
            // is valid.
            let is_free = if is_own {
                // SAFETY: this thread's.
                unsafe { Shard::abandon(shard) }
            } else {
                // SAFETY: valid, as above.
                unsafe { shard.as_ref() }.orphan()
            };
            // An abandoned one with something out is its last buffer's, and may be gone.
            if is_free {
                // SAFETY: ours alone.
                unsafe { free.push(shard) };
            } else if !is_own {
                // SAFETY: not adopted yet.
                unsafe { orphans.push(shard) };
            }
        });
    }

    /// Ends the use of the cache by its thread, which ends.
    ///
    /// # Safety
    ///
    /// `head` is that of a cache, off the thread's list, and is not used by it again.
    unsafe fn end_of_thread(head: NonNull<Cache>) {
        // SAFETY: the thread's reference keeps the cache; the head is its first field.
        let cache = unsafe { head.cast::<Self>().as_ref() };
        let mut free = Chain::new();
        if cache.enter() {
            free = cache.give_up();
            // ORDER: Release pairs with the Acquire in `take`, and in `close`. A failure says that
            // the pool is gone, which is as well.
            let _ = cache.state.compare_exchange(BUSY, FREE, Ordering::Release, Ordering::Relaxed);
        }
        // SAFETY: the caller's promise.
        unsafe { Self::on_pool_closed(head) };
        // SAFETY: ours alone; each keeps the pool's bookkeeping.
        unsafe { Shared::recycle_all(free) };
    }

    /// Gives back the thread's reference to the pool's bookkeeping.
    ///
    /// # Safety
    ///
    /// `head` is that of a cache, off the thread's list, and is not used by it again.
    unsafe fn on_pool_closed(head: NonNull<Cache>) {
        // SAFETY: valid by the reference that is given back; the head is its first field.
        let shared = unsafe { head.cast::<Self>().as_ref() }.shared;
        // SAFETY: the thread's reference, once.
        drop(unsafe { CoreRef::new(shared, 1) });
    }

    /// Puts a shard at the end of the list: the search comes to it last.
    fn list(&self, shard: &Shard) {
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
        shard.set_listed();
    }

    /// Takes a shard out of the list.
    fn unlink(&self, shard: &Shard) {
        #[cfg(all(test, loom))]
        shard.links.write();
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

    /// Takes a shard, of which nothing is out and which starts at its first byte, out of the list:
    /// to the spares while they are few, and else to `over`, whose shards are the caller's, for
    /// [`Shared::recycle_all`]. By pointer, since others may free a spare at once.
    ///
    /// # Safety
    ///
    /// The shard is such a one, and was unlisted ([`Shard::unlist`]).
    pub(crate) unsafe fn retire(&self, shard: NonNull<Shard>, over: &mut Chain) {
        // SAFETY: this thread's alone, until it is a spare.
        let header = unsafe { shard.as_ref() };
        self.unlink(header);
        // SAFETY: nothing is out of it, and it is this thread's alone.
        if !unsafe { self.spares.put(shard, self.shared().settings.spare_shards) } {
            // SAFETY: still this thread's, and off the list.
            unsafe { over.push(shard) };
        }
    }

    /// Takes the spares of any thread, or those that the last look saw already, and adds them to
    /// `chain`: they are the caller's. The caller holds a handle.
    pub(crate) fn take_spares(&self, unused: bool, chain: &mut Chain) {
        if unused {
            return self.spares.take_unused(chain);
        }
        // This number and no more, so that this ends while the thread puts some in all the time.
        for _ in 0..MAX_SPARES {
            let Some(spare) = self.spares.take() else { break };
            // SAFETY: just taken.
            unsafe { chain.push(spare) };
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
impl ThreadCache {
    /// Asserts the invariants at the top of this file.
    pub(crate) fn check(&self) {
        let mut seen = alloc::vec::Vec::new();
        let mut see = |shard: *const Shard| {
            assert!(!seen.contains(&shard), "N1: a shard is in two slots");
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
            // SAFETY: as above.
            let shard = unsafe { &*at };
            if !shard.is_detached() {
                see(at);
            }
            assert!(!shard.is_current(), "a shard of the list is carved");
            // SAFETY: as above.
            assert!(ptr::eq(unsafe { &*shard.next() }.prev(), shard), "the list is torn");
            at = if ptr::eq(shard.next(), self.cursor.get()) { ptr::null() } else { shard.next() };
        }
        let spares: alloc::vec::Vec<_> = core::iter::from_fn(|| self.spares.take()).collect();
        assert!(spares.len() <= self.shared().settings.spare_shards);
        for spare in spares {
            let shard = see(spare.as_ptr());
            assert!(shard.is_empty() && shard.is_at_start(), "N2");
            // SAFETY: it was there just now.
            assert!(unsafe { self.spares.put(spare, usize::MAX) });
        }
    }
}
