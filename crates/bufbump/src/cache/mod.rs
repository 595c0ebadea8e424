//! A thread's cache of shards for one pool: which one it carves from, which others it has, and
//! where it finds one that fits.
//!
//! # Who uses a cache
//!
//! The thread that has it, in an acquire, which holds a handle of the pool, in a release and at its
//! end, which may hold none. The pool may be dropped on another thread at the same moment, and
//! other threads trim. So what is in a cache is used under its lock, which is biased to the thread
//! (`biased`). A trim that finds the thread at work leaves the cache alone. So does the pool's end,
//! and then the thread, which finds the lock closed afterwards, takes all out.
//!
//! # Invariants
//!
//! - N1: `current`, the list and the spares are disjoint; all are owned by the cache's thread.
//! - N2: nothing is out of a spare, and it starts at its first byte.
//! - N3: only the cache's thread puts anything in. Others take spares, and shards of the list of
//!   which nothing is out. A cache that no thread has has none.
//! - N4: the lock is held for a walk at most, in which no code of others is called. Of other locks
//!   only the depot's is taken with it. Shards that are to be freed wait in a chain.
//! - N5: once the lock is closed, nothing is put in. What the pool's end did not take, the thread
//!   takes out, when it next finds the lock closed.

mod biased;
mod kept;
pub(crate) mod local;
mod refill;

use core::mem;
use core::ptr::{self, NonNull};

use bufkit::sync::{AtomicUsize, fences};
use bufkit::thread_cache::{Cache, Methods};
use bufkit::{Link, RegistryEntry};

#[cfg(not(all(test, loom)))]
use self::biased::BiasedLock;
#[cfg(all(test, loom))]
pub(crate) use self::biased::BiasedLock;
use self::kept::Kept;
use crate::shard::{Block, Chain, IdleShards, Shard};
use crate::shared::{CoreRef, Shared};

// What a thread costs beside its shards. (A lock of another system may be larger.)
const _: () = assert!(cfg!(any(loom, shuttle, not(target_os = "linux"))) || size_of::<ThreadCache>() <= 160);

/// A cache.
#[repr(C)]
pub(crate) struct ThreadCache {
    /// What the thread's lists know of it. First, so that its address is the cache's.
    _head: Cache,
    /// Valid as long as the cache is (`shared`, P1).
    shared: NonNull<Shared>,
    /// The next of all caches of the pool.
    all_next: Link<ThreadCache>,
    /// The thread is the owner. Without one they are none (N3).
    shards: BiasedLock<Shards>,
    /// Bytes of the span of the larger buffer that is kept, for `stats` and trims.
    large_bytes: AtomicUsize,
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
    /// A larger buffer.
    large: Kept,
}

/// What the lists of a thread do with a cache.
static METHODS: Methods = Methods {
    is_closed: ThreadCache::is_closed,
    end_of_thread: ThreadCache::end_of_use,
    on_pool_closed: ThreadCache::end_of_use,
};

// SAFETY: one field.
unsafe impl RegistryEntry for ThreadCache {
    fn link(&self) -> &Link<Self> {
        &self.all_next
    }
}

impl ThreadCache {
    /// Makes a cache that no thread has.
    pub(crate) fn new(shared: NonNull<Shared>, id: usize, is_biased: bool) -> Self {
        let shards = Shards {
            current: ptr::null(),
            cursor: ptr::null(),
            spares: IdleShards::default(),
            large: Kept::default(),
        };
        Self {
            _head: Cache::new(id, &METHODS),
            shared,
            all_next: Link::default(),
            shards: BiasedLock::new(shards, is_biased),
            large_bytes: AtomicUsize::new(0),
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
        self.shards.adopt()
    }

    /// Returns whether the pool is gone.
    ///
    /// # Safety
    ///
    /// `head` is that of a cache on the calling thread's list.
    unsafe fn is_closed(head: NonNull<Cache>) -> bool {
        // SAFETY: the thread's reference keeps the cache; the head is its first field.
        unsafe { head.cast::<Self>().as_ref() }.shards.is_closed()
    }

    /// Lets `f` use the cache for its thread, which may hold no handle, unless the pool is gone.
    #[inline(always)]
    fn open<R>(&self, f: impl FnOnce(&mut Shards) -> R) -> Option<R> {
        let result = self.shards.enter(f);
        fences::light();
        if self.shards.is_closed() {
            self.empty().free();
        }
        result
    }

    /// Takes out all that the cache has, for its thread.
    #[cold]
    #[inline(never)]
    fn empty(&self) -> Taken {
        self.shards.enter_to_take(|shards| {
            let mut free = Chain::new();
            shards.each(|shard| {
                // SAFETY: the shard is this thread's and is not used here again if something is
                // out; otherwise it is ours alone.
                if unsafe { Shard::abandon(shard) } {
                    // SAFETY: ours alone, so valid.
                    unsafe { free.push(shard) };
                }
            });
            Taken { free, large: self.taken(&mut shards.large) }
        })
    }

    /// Begins the end of the pool. Returns whether the cache's thread may be at work.
    pub(crate) fn close(&self) -> bool {
        self.shards.close()
    }

    /// Takes out all that the closed cache has, for the pool's end, unless its thread is at work:
    /// then the thread does so. `is_own` says whether the calling thread has the cache, and
    /// `is_fenced` whether a heavy fence was executed since. Adds the shards with nothing out to
    /// `free`, which are the caller's alone then. Adds those that were orphaned, and are to be
    /// deferred, to `orphans`.
    pub(crate) fn empty_closed(&self, is_own: bool, is_fenced: bool, free: &mut Chain, orphans: &mut Chain) {
        self.shards.empty_closed(is_own || is_fenced, |shards| {
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
        });
    }

    /// Takes the larger buffer out of a closed cache, as `empty_closed` does the shards.
    pub(crate) fn take_closed(&self, is_fenced: bool) -> Option<NonNull<Block>> {
        self.shards.empty_closed(is_fenced, |shards| self.taken(&mut shards.large)).flatten()
    }

    /// Ends the use of the cache by its thread, which ends, or finds the pool gone: gives back the
    /// thread's reference to the pool's bookkeeping.
    ///
    /// # Safety
    ///
    /// `head` is that of a cache, off the thread's list, and is not used by it again.
    unsafe fn end_of_use(head: NonNull<Cache>) {
        // SAFETY: the thread's reference keeps the cache; the head is its first field.
        let cache = unsafe { head.cast::<Self>().as_ref() };
        // SAFETY: the thread's reference, once. Given back when this function ends, whatever a
        // provider does.
        let _thread = unsafe { CoreRef::new(cache.shared, 1) };
        let taken = cache.empty();
        cache.shards.leave();
        taken.free();
    }

    /// Takes a shard whose last buffer its thread, the caller, is releasing off the list, and keeps
    /// it for later. Adds it to `over` if that is too much: it is the caller's then. Returns
    /// `false` if the pool has ended, and then the release is not counted.
    ///
    /// # Safety
    ///
    /// The shard is on the list, and that buffer is the only one that is out of it.
    pub(crate) unsafe fn retire(&self, shard: NonNull<Shard>, over: &mut Chain) -> bool {
        let most = self.shared().settings.spare_shards;
        // SAFETY: with nothing else out, and this thread's.
        self.open(|shards| unsafe { shards.retire(shard, most, over) }).is_some()
    }

    /// Takes the spares of any thread, and the shards of its list of which nothing is out, and adds
    /// them to `chain`: they are the caller's. With `unused`, only those that the last such look
    /// saw as well. The caller holds a handle.
    pub(crate) fn trim(&self, unused: bool, chain: &mut Chain) {
        self.shards.claim(|shards| shards.trim(unused, chain));
    }
}

/// What was taken out of a cache, by whoever has it alone.
#[must_use = "it is lost otherwise"]
struct Taken {
    /// Of these nothing is out.
    free: Chain,
    large: Option<NonNull<Block>>,
}

impl Taken {
    /// Frees it all. The caller keeps the pool's bookkeeping, and has nothing locked.
    fn free(self) {
        // SAFETY: nothing is out of what was taken, and it is the caller's alone; each keeps the
        // pool's bookkeeping.
        unsafe { Shared::recycle_all(self.free) };
        if let Some(large) = self.large {
            // SAFETY: likewise.
            unsafe { Shared::free_large(large) };
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

    /// Takes what `ThreadCache::trim` says.
    fn trim(&mut self, unused: bool, chain: &mut Chain) {
        // SAFETY: the list is walked under the lock, and what is taken is free.
        let mut take = |shard| unsafe { chain.push(shard) };
        self.spares.take_some(unused, &mut take);
        let (mut at, last) = match self.cursor() {
            Some(cursor) => (cursor, cursor.prev()),
            None => return,
        };
        loop {
            let next = at.next();
            let is_last = ptr::eq(at, last);
            if at.is_for_trim(unused) {
                self.unlink(at);
                take(NonNull::from(at));
            }
            if is_last {
                return;
            }
            // SAFETY: a shard of the list is valid (N1).
            at = unsafe { &*next };
        }
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
        let most = self.shared().settings.spare_shards;
        self.shards.enter(|shards| shards.check(most));
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
impl Shards {
    fn check(&mut self, most: usize) {
        let shards = self;
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
        assert!(spares.len() <= most);
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
