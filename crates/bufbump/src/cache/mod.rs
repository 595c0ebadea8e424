//! A thread's cache of shards for one pool: which one it carves from, which others it has, and
//! where it finds one that fits.
//!
//! # Who uses a cache
//!
//! The thread that has it, in an acquire, which holds a handle of the pool, in a release and at its
//! end, which may hold none. The pool may be dropped on another thread at the same moment, and
//! other threads trim. So what is in a cache is used under its lock, and whoever finds it closed
//! leaves it alone:
//!
//! ```text
//!            take            pool's end
//!   FREE ──────────> HELD ───────────────> CLOSED
//!    ^                 │
//!    └── thread's end ─┘
//! ```
//!
//! # Invariants
//!
//! - N1: `current`, the list and the spares are disjoint; all are owned by the cache's thread.
//! - N2: nothing is out of a spare, and it starts at its first byte.
//! - N3: only the cache's thread puts anything in. Others take spares, and shards of the list of
//!   which nothing is out. A cache that no thread has has none.
//! - N4: the lock is held for a walk at most, in which no code of others is called. Of other locks
//!   only the depot's is taken with it. Shards that are to be freed wait in a chain.

mod kept;
pub(crate) mod local;
mod refill;

use core::mem;
use core::ptr::{self, NonNull};

use bufkit::sync::{AtomicU32, Mutex, MutexGuard, Ordering, lock};
use bufkit::thread_cache::{Cache, Methods};
use bufkit::{Link, RegistryEntry};

pub(crate) use self::kept::Kept;
use crate::shard::{Chain, IdleShards, Shard};
use crate::shared::{CoreRef, Shared};

/// No thread has it; it has no shards.
const FREE: u32 = 0;
/// A thread has it.
const HELD: u32 = 1;
/// The pool is gone.
const CLOSED: u32 = 2;

// What a thread costs beside its shards.
const _: () = assert!(cfg!(any(loom, shuttle)) || size_of::<ThreadCache>() <= 160);

/// A cache.
#[repr(C)]
pub(crate) struct ThreadCache {
    /// What the thread's lists know of it. First, so that its address is the cache's.
    _head: Cache,
    /// Changed under the lock, except from `FREE` to `HELD`.
    state: AtomicU32,
    /// Valid as long as the cache is (`shared`, P1).
    shared: NonNull<Shared>,
    /// The next of all caches of the pool.
    all_next: Link<ThreadCache>,
    shards: Mutex<Shards>,
    /// A larger buffer (`kept`).
    pub(crate) large: Kept,
    /// Stands for the cache as others see it, to the model checker.
    #[cfg(all(test, loom))]
    life: testkit::models::Shadow,
}

/// The shards of a cache.
pub(crate) struct Shards {
    /// The one that is being carved, or null.
    current: *const Shard,
    /// Where the search continues in the circular list of the others; null when there are none.
    cursor: *const Shard,
    /// Those with nothing in them (N2).
    spares: IdleShards,
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
            shards: Mutex::new(Shards {
                current: ptr::null(),
                cursor: ptr::null(),
                spares: IdleShards::default(),
            }),
            large: Kept::default(),
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
        // ORDER: Relaxed: a hint, and nothing is done with what was found.
        self.state.load(Ordering::Relaxed) == FREE
            // ORDER: Acquire pairs with the Release of `end_of_thread`: the thread before is done
            // with the links of the head.
            && self.state.compare_exchange(FREE, HELD, Ordering::Acquire, Ordering::Relaxed).is_ok()
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

    /// Locks the cache, unless the pool is gone.
    fn open(&self) -> Option<MutexGuard<'_, Shards>> {
        let shards = lock(&self.shards);
        // ORDER: Relaxed: changed under the lock.
        (self.state.load(Ordering::Relaxed) != CLOSED).then_some(shards)
    }

    /// Closes the cache at the end of the pool; `is_own` says whether the calling thread has it.
    /// Adds the shards with nothing out to `free`, which are the caller's alone then. Adds those
    /// that were orphaned, and are to be deferred, to `orphans`.
    pub(crate) fn close(&self, is_own: bool, free: &mut Chain, orphans: &mut Chain) {
        let mut shards = lock(&self.shards);
        // ORDER: Relaxed: under the lock.
        self.state.store(CLOSED, Ordering::Relaxed);
        shards.each(|shard| {
            // The cache is the pool's end's alone, so the shard was in it and is valid.
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
        let (mut free, mut kept) = (Chain::new(), None);
        if let Some(mut shards) = cache.open() {
            kept = cache.large.take();
            shards.each(|shard| {
                // SAFETY: the shard is this thread's and is not used here again if something is
                // out; otherwise it is ours alone.
                if unsafe { Shard::abandon(shard) } {
                    // SAFETY: ours alone, so valid.
                    unsafe { free.push(shard) };
                }
            });
            // ORDER: Release pairs with the Acquire of `take`.
            cache.state.store(FREE, Ordering::Release);
        }
        // SAFETY: the caller's promise.
        unsafe { Self::on_pool_closed(head) };
        // SAFETY: ours alone; each keeps the pool's bookkeeping.
        unsafe { Shared::recycle_all(free) };
        if let Some(kept) = kept {
            // SAFETY: likewise.
            unsafe { Shared::free_large(kept) };
        }
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

    /// Takes a shard whose last buffer its thread, the caller, is releasing off the list, and keeps
    /// it for later. Adds it to `over` if that is too much: it is the caller's then. Returns
    /// `false` if the pool has ended, and then the release is not counted.
    ///
    /// # Safety
    ///
    /// The shard is on the list, and that buffer is the only one that is out of it.
    pub(crate) unsafe fn retire(&self, shard: NonNull<Shard>, over: &mut Chain) -> bool {
        let Some(mut shards) = self.open() else { return false };
        // SAFETY: with nothing else out, and this thread's.
        unsafe { shards.retire(shard, self.shared().settings.spare_shards, over) };
        true
    }

    /// Takes the spares of any thread, and the shards of its list of which nothing is out, and adds
    /// them to `chain`: they are the caller's. With `unused`, only those that the last such look
    /// saw as well. The caller holds a handle.
    pub(crate) fn trim(&self, unused: bool, chain: &mut Chain) {
        let mut shards = lock(&self.shards);
        // SAFETY: the list is walked under the lock, and what is taken is free.
        let mut take = |shard| unsafe { chain.push(shard) };
        shards.spares.take_some(unused, &mut take);
        let (mut at, last) = match shards.cursor() {
            Some(cursor) => (cursor, cursor.prev()),
            None => return,
        };
        loop {
            let next = at.next();
            let is_last = ptr::eq(at, last);
            if at.is_for_trim(unused) {
                shards.unlink(at);
                take(NonNull::from(at));
            }
            if is_last {
                return;
            }
            // SAFETY: a shard of the list is valid (N1).
            at = unsafe { &*next };
        }
    }
}

impl Shards {
    /// Returns the shard of the list where the search continues. Headers are valid as long as the
    /// bookkeeping, so for longer than the caller's use of them.
    fn cursor<'a>(&self) -> Option<&'a Shard> {
        // SAFETY: a shard of the list is valid (N1).
        unsafe { self.cursor.as_ref() }
    }

    /// Takes all shards out of the cache and lets `f` have them, one by one.
    fn each(&mut self, mut f: impl FnMut(NonNull<Shard>)) {
        if let Some(current) = NonNull::new(mem::replace(&mut self.current, ptr::null()).cast_mut()) {
            f(current);
        }
        while let Some(shard) = self.cursor() {
            self.unlink(shard);
            f(NonNull::from(shard));
        }
        self.spares.take_some(false, f);
    }

    /// Puts a shard at the end of the list: the search comes to it last.
    fn list(&mut self, shard: &Shard) {
        match self.cursor() {
            None => {
                shard.set_next(shard);
                shard.set_prev(shard);
                self.cursor = shard;
            }
            Some(cursor) => {
                let before = cursor.prev();
                shard.set_next(cursor);
                shard.set_prev(before);
                cursor.set_prev(shard);
                // SAFETY: a shard of the list is valid (N1).
                unsafe { &*before }.set_next(shard);
            }
        }
        shard.set_listed(true);
    }

    /// Takes a shard out of the list.
    fn unlink(&mut self, shard: &Shard) {
        shard.set_listed(false);
        let (before, behind) = (shard.prev(), shard.next());
        if ptr::eq(behind, shard) {
            self.cursor = ptr::null();
            return;
        }
        // SAFETY: a shard of the list is valid (N1).
        unsafe { &*before }.set_next(behind);
        // SAFETY: likewise.
        unsafe { &*behind }.set_prev(before);
        if ptr::eq(self.cursor, shard) {
            self.cursor = behind;
        }
    }

    /// Takes a shard out of the list, and counts all of it as back: it is a spare if there are
    /// fewer than `most`, and else in `over`.
    ///
    /// # Safety
    ///
    /// It is on the list, its thread is the caller, and nothing is out of it but what the caller
    /// releases.
    unsafe fn retire(&mut self, shard: NonNull<Shard>, most: usize, over: &mut Chain) {
        // SAFETY: this thread's, so valid.
        let header = unsafe { shard.as_ref() };
        self.unlink(header);
        header.restart();
        if self.spares.count() < most {
            // SAFETY: free from here on.
            unsafe { self.spares.put(shard) };
        } else {
            // SAFETY: likewise.
            unsafe { over.push(shard) };
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
impl ThreadCache {
    /// Asserts the invariants at the top of this file.
    pub(crate) fn check(&self) {
        let mut shards = lock(&self.shards);
        let mut seen = alloc::vec::Vec::new();
        let mut see = |shard: &Shard| {
            assert!(!seen.contains(&NonNull::from(shard)), "N1: a shard is in two places");
            seen.push(NonNull::from(shard));
            assert!(shard.is_owned_by(local::token()), "N1: the owner");
            shard.check();
        };
        // SAFETY: a shard of the cache is valid (N1).
        if let Some(current) = unsafe { shards.current.as_ref() } {
            see(current);
            assert!(current.is_current());
        }
        let mut at = shards.cursor();
        while let Some(shard) = at {
            see(shard);
            assert!(!shard.is_current(), "a shard of the list is carved");
            // SAFETY: as above.
            let next = unsafe { &*shard.next() };
            assert!(ptr::eq(next.prev(), shard), "the list is torn");
            at = (!ptr::eq(next, shards.cursor)).then_some(next);
        }
        let mut spares = alloc::vec::Vec::new();
        while let Some(spare) = shards.spares.take() {
            spares.push(spare);
        }
        assert!(spares.len() <= self.shared().settings.spare_shards);
        for spare in spares.into_iter().rev() {
            // SAFETY: as above.
            let shard = unsafe { spare.as_ref() };
            see(shard);
            assert!(shard.is_empty() && shard.is_at_start() && !shard.is_listed(), "N2");
            // SAFETY: it was there just now.
            unsafe { shards.spares.put(spare) };
        }
    }
}
