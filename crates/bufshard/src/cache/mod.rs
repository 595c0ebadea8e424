//! A thread's cache in one pool: the block that was released last, and for each size class a
//! magazine of blocks. The thread uses them without a locked instruction, and others may empty them
//! without stopping the thread.
//!
//! The one block that is apart makes the commonest traffic, one buffer after the other, cheap. The
//! thread finds it without a look at a magazine, so no address depends on what was just stored
//! elsewhere. It costs the other traffic a comparison.
//!
//! # The use of a cache
//!
//! The magazine of a class is two counters, of what was pushed and of what was popped, and slots
//! for the difference. The thread announces in `intent` the counter that it is about to raise, and
//! to what. It looks at `word`, whether another thread claims the cache, and then raises the
//! counter. (The block that is apart has a state in place of counters, and a thread that announces
//! a change of it says which.)
//!
//! A thread that claims the cache sets a flag in `word`, looks at `intent`, and knows from the
//! counter whether the announced change is done. Between the two steps of each there is a fence
//! (`sync`), so not both can miss each other. A thread that finds its cache claimed does without
//! it, for that one request. A claim that finds the thread at work is given up.
//!
//! ```text
//!  word        ....epoch....|DRAINED|DISABLED|WAITED|FREE|CLOSED|CLAIMED|
//!              epoch + 1 at the end of each claim
//!  seen        the word as the thread last saw it, without flags: the fast paths continue where it
//!              still is that
//!  intent      what the counter becomes | which counter
//!              or LAST_OUT, LAST_IN, or IDLE, or BUSY for the slow paths
//!  last_freed  uses | class of the block that is apart      or NO_LAST, or NEVER
//! ```
//!
//! # Invariants
//!
//! - N1: the slots and counters have one user at a time. That is the thread, between its look at
//!   `word` and the end of what it announced, or a claim, between its look at `intent` and its end.
//! - N2: the blocks in the slots below the difference of the counters are the cache's (`block`,
//!   K2); `difference <= limit`, and a magazine has `limit` slots at least. Both change with N1.
//! - N3: while the last bits of `last_freed` are a class, `last_freed_block` is a block of that
//!   class, and the cache's.
//! - N4: `seen` and the fields marked so are the thread's own.
//! - N5: when a pool is gone, the thread that sets `DRAINED` empties the cache. Nothing is put into
//!   the cache any more.
//! - N6: a cache exists while the bookkeeping does. A user of the cache keeps the bookkeeping: by a
//!   handle, a block, or the reference of the thread that has the cache. The thread gives this
//!   reference back when the cache is off its list.

mod arrays;
mod claims;
mod growth;
mod magazines;
mod shutdown;

use core::cell::Cell;
use core::ptr::{self, NonNull};

use bufkit::thread_cache::{self, Cache};
use bufkit::{Link, RegistryEntry};

pub(crate) use self::arrays::Arrays;
use self::arrays::Slot;
pub(crate) use self::claims::ClaimError;
pub(crate) use self::growth::batch;
use self::growth::{ALL_RANGES, STORE_SLOTS};
use self::magazines::Magazine;
use crate::block::Block;
use crate::class::{MAX_CLASSES, class_of};
use crate::counts::Counts;
use crate::settings::Settings;
use crate::shared::Shared;
use crate::sync::{self, AtomicU32, AtomicUsize, Ordering, RELEASE};

/// Somebody other than the thread uses the cache.
const CLAIMED: usize = 1;
/// The pool is gone.
const CLOSED: usize = 2;
/// No thread has the cache. Not set any more once the pool is gone.
const FREE: usize = 4;
/// Releases are to go the slow path: somebody waits for memory.
const WAITED: usize = 8;
/// The thread is to keep nothing: the system refuses the fence with which others would take it.
const DISABLED: usize = 16;
/// The pool is gone, and a thread empties the cache, or has emptied it (N5).
const DRAINED: usize = 32;
/// What `word` is raised by at the end of a claim.
const EPOCH: usize = 64;
const FLAGS: usize = EPOCH - 1;

/// `intent` while nothing is.
const IDLE: u32 = 0xFF;
/// `intent` while the thread is in a slow path.
const BUSY: u32 = 0xFE;

/// `intent` while the thread takes the block that is apart, and while it puts one there.
const LAST_OUT: u32 = 0xFD;
const LAST_IN: u32 = 0xFC;

/// The last bits of `last_freed`: there is no block apart.
const NO_LAST: u32 = 0xFF;
/// There never is one: the thread keeps nothing.
const NEVER: u32 = 0xFE;
/// The bits of `last_freed` that are a class, or one of the above.
const LAST_CLASS: u32 = 0xFF;
// No request's class is one of the above.
const _: () = assert!(class_of(isize::MAX as usize) < NEVER as usize && class_of(0) > LAST_CLASS as usize);
/// A use of `last_freed`.
const LAST_USE: u32 = LAST_CLASS + 1;

/// How many slow paths of a thread find its cache without its list, for one that goes by way of the
/// list.
const RECALLS: u32 = 16;

/// A cache. What the fast paths touch of it, other than magazines, is in one line.
#[repr(C, align(64))]
pub(crate) struct ThreadCache {
    /// What the thread's list knows of it. First, so that its address is the cache's.
    head: Cache,
    word: AtomicUsize,
    seen: Cell<usize>,
    intent: AtomicU32,
    /// N3.
    last_freed: AtomicU32,
    last_freed_block: Cell<*const Block>,
    /// Slow paths that found the cache without the thread's list; the thread's own.
    recalls: Cell<u32>,
    /// The shard that the thread starts its searches at.
    home: usize,
    /// Valid as long as the cache is (`shared`, P1).
    shared: NonNull<Shared>,
    /// The next of all caches of the pool.
    all_next: Link<ThreadCache>,
    /// The thread's own.
    pub(crate) counts: Counts,
    /// What `trim_idle` saw; guarded by its lock.
    idle_marks: [Cell<u32>; MAX_CLASSES],
    last_freed_mark: Cell<u32>,
    magazines: [Magazine; MAX_CLASSES],
    /// The first slots of magazines (`growth`), and a bit for each range of them that none has. The
    /// caller has the cache.
    store: [Slot; STORE_SLOTS],
    free_ranges: Cell<u32>,
    #[cfg(all(test, any(loom, shuttle)))]
    shadow: testkit::models::Shadow,
}

// A thread that used a pool once costs less than a page, or less than 10 KiB with its counters.
#[cfg(not(any(loom, shuttle)))]
const _: () = {
    let most = if cfg!(feature = "stats") { 10 << 10 } else { 4 << 10 };
    assert!(size_of::<ThreadCache>() < most);
};

// SAFETY: one field.
unsafe impl RegistryEntry for ThreadCache {
    fn link(&self) -> &Link<Self> {
        &self.all_next
    }
}

/// Returns what `intent` says of an operation that makes the counter `which` become `value`.
#[inline(always)]
const fn record(which: usize, value: u32) -> u32 {
    // Counters change by one, so 24 bits tell the old from the new.
    value << 8 | which as u32
}

impl ThreadCache {
    /// Makes a cache that no thread has.
    pub(crate) fn new(shared: &Shared, home: usize) -> Self {
        Self {
            head: Cache::new(shared.id, &shutdown::METHODS),
            word: AtomicUsize::new(FREE),
            seen: Cell::new(0),
            intent: AtomicU32::new(IDLE),
            last_freed: AtomicU32::new(if shared.settings.thread_cache == 0 { NEVER } else { NO_LAST }),
            last_freed_block: Cell::new(ptr::null()),
            recalls: Cell::new(0),
            home,
            shared: NonNull::from(shared),
            all_next: Link::default(),
            counts: Counts::default(),
            idle_marks: core::array::from_fn(|_| Cell::new(0)),
            last_freed_mark: Cell::new(0),
            magazines: core::array::from_fn(|_| Magazine::empty()),
            store: [const { Cell::new(ptr::null()) }; STORE_SLOTS],
            free_ranges: Cell::new(ALL_RANGES),
            #[cfg(all(test, any(loom, shuttle)))]
            shadow: testkit::models::Shadow::default(),
        }
    }

    pub(crate) fn home(&self) -> usize {
        self.home
    }

    /// Returns the pool's bookkeeping.
    fn shared(&self) -> &Shared {
        // SAFETY: valid as long as the cache is (`shared`, P1), whose user keeps it (N6).
        unsafe { self.shared.as_ref() }
    }

    fn settings(&self) -> &Settings {
        &self.shared().settings
    }

    /// Returns the calling thread's cache for the pool `id`, if it is found at once.
    #[inline(always)]
    pub(crate) fn recall<'a>(id: usize) -> Option<&'a Self> {
        Self::recall_at(thread_cache::TlsSlot::of(id), id)
    }

    /// Returns the calling thread's cache for the pool that made a block, if it is found at once.
    #[inline(always)]
    pub(crate) fn recall_for(block: &Block) -> Option<&Self> {
        Self::recall_at(block.cache_place(), Shared::id_of(block))
    }

    #[inline(always)]
    fn recall_at<'a>(place: thread_cache::TlsSlot, id: usize) -> Option<&'a Self> {
        // SAFETY: what `remember` left there is a cache of this thread's for that pool (`threads`,
        // L1), which is there while the pool's bookkeeping is (N6): who asks for this pool has a
        // handle or a block. No borrow outlives the request that it serves.
        thread_cache::get_fast_at(place, id).map(|cache| unsafe { cache.cast::<Self>().as_ref() })
    }

    /// Returns the calling thread's cache for the pool `id`, if it has one. The caller keeps that
    /// pool's bookkeeping (N6).
    pub(crate) fn find<'a>(id: usize) -> Option<&'a Self> {
        // SAFETY: a head on the thread's list is valid (`threads`, L2), and the first field of a
        // cache of this pool's, from whose address it came.
        unsafe { thread_cache::find(id).cast::<Self>().as_ref() }
    }

    /// Lets the fast paths find the cache. The caller is its thread.
    pub(crate) fn remember(&self) {
        // SAFETY: a cache that the thread found or added is on its list, for this pool; `recall`
        // takes the value for a cache.
        unsafe { thread_cache::set_fast(self.head.id(), NonNull::from(self).cast()) };
    }

    /// Returns whether it is time for a slow path to search the thread's list. That search lets go
    /// of caches of pools that are gone, which a thread that uses one pool would keep for ever.
    /// Only the cache's thread calls it.
    #[inline(always)]
    pub(crate) fn is_round_due(&self) -> bool {
        let recalls = self.recalls.get().wrapping_add(1);
        self.recalls.set(recalls);
        recalls.is_multiple_of(RECALLS)
    }

    /// Takes a block of a class that was released lately; `None` when there is none, and when the
    /// slow path has to look why not.
    ///
    /// For its thread with a handle.
    #[inline(always)]
    pub(crate) fn pop(&self, class: usize) -> Option<NonNull<Block>> {
        // ORDER: Relaxed: what it says counts only when the look at `word` finds no claim since the
        // last one of the thread.
        let last_freed = self.last_freed.load(Ordering::Relaxed);
        if (last_freed & LAST_CLASS) as usize != class {
            return self.pop_magazine(class);
        }
        if !self.begin(LAST_OUT) {
            return None;
        }
        self.touch();
        let block = self.last_freed_block.get();
        // ORDER: Release pairs with the Acquire in `done`: who claims the cache sees what the
        // thread did with it.
        self.last_freed.store(last_freed | NO_LAST, RELEASE);
        NonNull::new(block.cast_mut())
    }

    /// Takes the newest block of a magazine, as `pop` does.
    #[inline(always)]
    fn pop_magazine(&self, class: usize) -> Option<NonNull<Block>> {
        let magazine = self.magazines.get(class)?;
        // ORDER: Relaxed, for both, as in `pop`.
        let popped = magazine.popped.load(Ordering::Relaxed);
        let len = magazine.pushed.load(Ordering::Relaxed).wrapping_sub(popped);
        if len == 0 {
            return None;
        }
        let now = popped.wrapping_add(1);
        if !self.begin(record(2 * class, now)) {
            return None;
        }
        self.touch();
        // SAFETY: `len` is at most the limit (N2), and the magazine is the thread's (N1).
        let block = unsafe { magazine.slot(len - 1) }.get();
        // ORDER: Release, as in `pop`.
        magazine.popped.store(now, RELEASE);
        NonNull::new(block.cast_mut())
    }

    /// Keeps a block of a class. Returns `false` when the slow path has to see to it. The caller is
    /// its thread.
    ///
    /// # Safety
    ///
    /// The block is the caller's, who gives it up if this succeeds; it is of this pool.
    #[inline(always)]
    pub(crate) unsafe fn push(&self, class: usize, block: NonNull<Block>) -> bool {
        // ORDER: Relaxed, as in `pop`.
        let last_freed = self.last_freed.load(Ordering::Relaxed);
        if last_freed & LAST_CLASS != NO_LAST || class >= MAX_CLASSES {
            // SAFETY: the caller's promise.
            return unsafe { self.push_magazine(class, block) };
        }
        if !self.begin(LAST_IN) {
            return false;
        }
        self.touch();
        self.last_freed_block.set(block.as_ptr());
        // ORDER: Release, as in `pop`. The last access, since the pool may go from here on, if the
        // block was what kept it.
        self.last_freed.store(last_freed.wrapping_add(LAST_USE) & !LAST_CLASS | class as u32, RELEASE);
        true
    }

    /// Puts a block into the magazine of its class, as `push` does.
    ///
    /// # Safety
    ///
    /// As for [`push`](Self::push).
    #[inline(always)]
    unsafe fn push_magazine(&self, class: usize, block: NonNull<Block>) -> bool {
        let Some(magazine) = self.magazines.get(class) else { return false };
        // ORDER: Relaxed, for both, as in `pop`.
        let pushed = magazine.pushed.load(Ordering::Relaxed);
        let len = pushed.wrapping_sub(magazine.popped.load(Ordering::Relaxed));
        if len >= magazine.limit() {
            return false;
        }
        let now = pushed.wrapping_add(1);
        if !self.begin(record(2 * class + 1, now)) {
            return false;
        }
        self.touch();
        // SAFETY: `len` is below the limit, and the magazine is the thread's (N1).
        unsafe { magazine.slot(len) }.set(block.as_ptr());
        // ORDER: Release, as in `pop`. The last access, as in `push`.
        magazine.pushed.store(now, RELEASE);
        true
    }

    /// Announces an operation, and says whether nobody claims the cache.
    #[inline(always)]
    fn begin(&self, record: u32) -> bool {
        // ORDER: Release pairs with the Acquire in `done`: who sees this announced sees that all
        // before is done.
        self.intent.store(record, RELEASE);
        sync::light_fence();
        // ORDER: Acquire pairs with the Release in `unclaim`. The same word as before says that
        // nobody has had the cache since.
        self.word.load(Ordering::Acquire) == self.seen.get()
    }

    /// Tells the model checker of a use of the magazines. It looks whether two threads use them at
    /// once, and whether they are used while they are freed.
    #[inline(always)]
    fn touch(&self) {
        #[cfg(all(test, any(loom, shuttle)))]
        self.shadow.write();
    }

    /// Begins a slow path of the thread, after which the magazines are its own until `leave`.
    /// Returns `false` when they are not to be had, or the thread is to keep nothing. In between,
    /// nothing is allocated, freed, or waited for.
    pub(crate) fn enter(&self) -> bool {
        self.enter_unless(CLAIMED | CLOSED | DISABLED)
    }

    /// Enters the cache as `enter` does, also where the thread is to keep nothing: to take blocks
    /// out.
    pub(crate) fn enter_to_take(&self) -> bool {
        self.enter_unless(CLAIMED | CLOSED)
    }

    #[inline(always)]
    fn enter_unless(&self, flags: usize) -> bool {
        self.is_left();
        // ORDER: Release, as in `begin`.
        self.intent.store(BUSY, RELEASE);
        sync::light_fence();
        // ORDER: Acquire, as in `begin`.
        let word = self.word.load(Ordering::Acquire);
        if word & flags != 0 {
            self.settle();
            return false;
        }
        self.seen.set(word & !FLAGS);
        self.touch();
        true
    }

    /// Asserts that the thread is in no slow path. User code that a slow path calls might be in
    /// one.
    fn is_left(&self) {
        // ORDER: Relaxed: the thread's own.
        debug_assert!(self.intent.load(Ordering::Relaxed) != BUSY, "the cache is entered");
    }

    /// Ends what `enter` began. Returns whether the pool is gone: then `drain_closed` is to be
    /// called when nothing else is to be done with the cache.
    #[must_use]
    pub(crate) fn leave(&self) -> bool {
        self.settle();
        sync::light_fence();
        self.is_gone()
    }

    /// Leaves the cache as `leave` does, where a handle keeps the pool from being gone.
    pub(crate) fn leave_open(&self) {
        let is_gone = self.leave();
        debug_assert!(!is_gone, "the pool has a handle");
    }

    /// Takes back what a fast path announced and did not do, before a slow path.
    pub(crate) fn settle_fast(&self) {
        self.is_left();
        self.settle();
    }

    /// Takes back what was announced.
    fn settle(&self) {
        // ORDER: Release pairs with the Acquire in `done`, as in `begin`.
        self.intent.store(IDLE, RELEASE);
    }
}
