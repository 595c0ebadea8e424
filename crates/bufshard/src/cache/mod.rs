//! A thread's cache in one pool: for each size class a magazine of blocks. The thread uses them
//! without a locked instruction, and others may empty them without stopping the thread.
//!
//! # The use of a cache
//!
//! The magazine of a class is its `state`, which counts its uses and its blocks, and slots for
//! them. The thread announces in `intent` the state that it is about to store. It looks at `word`,
//! whether another thread has claimed the cache since its last slow path, and then stores the state.
//!
//! A thread that claims the cache sets flags in `word`, looks at `intent`, and knows from the
//! state whether the announced change is done. Between the two steps of each there is a fence
//! (`sync`), so not both can miss each other. A thread that finds its cache claimed does without
//! it, for that one request. A claim that finds the thread at work is given up.
//!
//! ```text
//!  word        |DRAINED|DISABLED|WAITED|CHANGED|FREE|CLOSED|CLAIMED|
//!              0 while nobody but the thread has anything to say
//!  state       uses | class | blocks
//!  intent      what the state of a class becomes, or BACK, or IDLE, or BUSY for the slow paths
//! ```
//!
//! # The lent one
//!
//! The block that the thread took last is *lent*: it still counts as one of its magazine's, and its
//! slot names it, until the next operation but its release *settles* that it is out. So one
//! buffer after the other, which is the commonest traffic, changes one state, and loads nothing
//! that was stored at an address which came out of a block. That would make each request wait for
//! the one before it.
//!
//! # Invariants
//!
//! - N1: the slots and states, and what is lent, have one user at a time. That is the thread,
//!   between its look at `word` and the end of what it announced, or a claim, between its look at
//!   `intent` and its end.
//! - N2: the slots of a magazine below its number of blocks have blocks of its class, which are the
//!   cache's (`block`, K2), except for a lent one. The number is at most `limit`, and a magazine
//!   has `limit` slots at least. Both change with N1.
//! - N3: while `lent` is not null, it is out, and the newest slot of the magazine of `lent_class`
//!   names it. Whoever comes to have the cache, by a slow path or a claim, first settles that the
//!   block is out, so all else sees nothing lent.
//! - N4: the fields marked so are the thread's own.
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
use crate::class::MAX_CLASSES;
use crate::counts::Counts;
use crate::settings::{MOST_THREAD_CACHE, Settings};
use crate::shared::Shared;
use crate::sync::{self, AtomicPtr, AtomicUsize, CountUsize, Ordering, RELEASE};

/// Somebody other than the thread uses the cache.
const CLAIMED: usize = 1;
/// The pool is gone.
const CLOSED: usize = 2;
/// No thread has the cache. Not set any more once the pool is gone.
const FREE: usize = 4;
/// There was a claim since the last slow path of the thread.
const CHANGED: usize = 8;
/// Releases are to go the slow path: somebody waits for memory.
const WAITED: usize = 16;
/// The thread is to keep nothing: the system refuses the fence with which others would take it.
const DISABLED: usize = 32;
/// The pool is gone, and a thread empties the cache, or has emptied it (N5).
const DRAINED: usize = 64;

/// The bits of a state that are its number of blocks,
const BLOCKS: usize = 0xFFFF;
/// where those of its class begin,
const CLASS_SHIFT: u32 = 16;
/// and one use.
const USE: usize = 1 << 24;
/// What a block more, by a use, makes of a state.
const PUSH: usize = USE + 1;
const _: () = assert!(MOST_THREAD_CACHE <= BLOCKS && MAX_CLASSES < CLASS_OF_BACK);

/// What `intent` has for a class while the thread takes back what is lent,
const CLASS_OF_BACK: usize = 0xFD;
/// while it is in a slow path,
const CLASS_OF_BUSY: usize = 0xFE;
/// and while nothing is.
const CLASS_OF_IDLE: usize = 0xFF;
const BACK: usize = CLASS_OF_BACK << CLASS_SHIFT;
const BUSY: usize = CLASS_OF_BUSY << CLASS_SHIFT;
const IDLE: usize = CLASS_OF_IDLE << CLASS_SHIFT;

/// How many slow paths of a thread find its cache without its list, for one that goes by way of the
/// list.
const RECALLS: u32 = 16;

/// A cache. What the fast paths touch of it, other than magazines, is in one line.
#[repr(C, align(64))]
pub(crate) struct ThreadCache {
    /// What the thread's list knows of it. First, so that its address is the cache's.
    head: Cache,
    word: AtomicUsize,
    intent: AtomicUsize,
    /// N3.
    lent: AtomicPtr<Block>,
    lent_class: CountUsize,
    /// Slow paths that found the cache without the thread's list; the thread's own.
    recalls: Cell<u32>,
    /// Whether the thread, which is to keep nothing, has freed what it kept; the thread's own.
    is_emptied: Cell<bool>,
    /// The shard that the thread starts its searches at.
    home: usize,
    /// Valid as long as the cache is (`shared`, P1).
    shared: NonNull<Shared>,
    /// The next of all caches of the pool.
    all_next: Link<ThreadCache>,
    /// The thread's own.
    pub(crate) counts: Counts,
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

impl ThreadCache {
    /// Makes a cache that no thread has.
    pub(crate) fn new(shared: &Shared, home: usize) -> Self {
        Self {
            head: Cache::new(shared.id, &shutdown::METHODS),
            word: AtomicUsize::new(FREE),
            intent: AtomicUsize::new(IDLE),
            lent: AtomicPtr::new(ptr::null_mut()),
            lent_class: CountUsize::new(0),
            recalls: Cell::new(0),
            is_emptied: Cell::new(false),
            home,
            shared: NonNull::from(shared),
            all_next: Link::default(),
            counts: Counts::default(),
            magazines: core::array::from_fn(Magazine::empty),
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
        // SAFETY: what `remember` left there is a cache of this thread's for that pool (`threads`,
        // L1), which is there while the pool's bookkeeping is (N6): who asks for this pool has a
        // handle or a block. No borrow outlives the request that it serves.
        thread_cache::get_fast(id).map(|cache| unsafe { cache.cast::<Self>().as_ref() })
    }

    /// Returns the same cache if it is the last that the thread has found.
    #[inline(always)]
    pub(crate) fn recall_last<'a>(id: usize) -> Option<&'a Self> {
        // SAFETY: as in `recall`.
        thread_cache::get_last(id).map(|cache| unsafe { cache.cast::<Self>().as_ref() })
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

    /// Takes the newest block of a class; `None` when there is none, and when the slow path has to
    /// look why not.
    ///
    /// For its thread with a handle.
    #[inline(always)]
    pub(crate) fn pop(&self, class: usize) -> Option<NonNull<Block>> {
        let magazine = self.magazines.get(class)?;
        // ORDER: Relaxed: what it says counts only when the look at `word` finds no claim since the
        // last slow path.
        if self.lent.load(Ordering::Relaxed).is_null() {
            self.pop_of::<false>(magazine, class)
        } else {
            self.pop_of::<true>(magazine, class)
        }
    }

    /// Takes the newest block of a magazine, as `pop` does. `LENT` says whether a block is lent.
    #[inline(always)]
    fn pop_of<const LENT: bool>(&self, magazine: &Magazine, class: usize) -> Option<NonNull<Block>> {
        let state = self.settled_state::<LENT>(magazine, class);
        let blocks = state & BLOCKS;
        if blocks == 0 {
            return None;
        }
        let now = state.wrapping_add(USE);
        if !self.begin(now) {
            return None;
        }
        self.touch();
        // SAFETY: within the limit (N2), and the magazine is the thread's (N1).
        let block = unsafe { magazine.slot(blocks - 1) }.get().cast_mut();
        self.settle_lent::<LENT>();
        // ORDER: Relaxed, for both: the state is stored behind them.
        self.lent.store(block, Ordering::Relaxed);
        self.lent_class.store(class, Ordering::Relaxed);
        // ORDER: Release pairs with the Acquire in `done`: who claims the cache sees what the
        // thread did with it.
        magazine.state.store(now, RELEASE);
        // SAFETY: a block (N2).
        Some(unsafe { NonNull::new_unchecked(block) })
    }

    /// Keeps a block of a class. Returns `false` when the slow path has to see to it. The caller is
    /// its thread.
    ///
    /// # Safety
    ///
    /// The block is the caller's, who gives it up if this succeeds; it is of this pool.
    #[inline(always)]
    pub(crate) unsafe fn push(&self, class: usize, block: NonNull<Block>) -> bool {
        // ORDER: Relaxed, for both, as in `pop`.
        let lent = self.lent.load(Ordering::Relaxed);
        // It may be another block by now, that was made at the same address.
        if ptr::eq(lent, block.as_ptr()) && self.lent_class.load(Ordering::Relaxed) == class {
            return self.take_back_lent();
        }
        let Some(magazine) = self.magazines.get(class) else { return false };
        if lent.is_null() {
            self.push_to::<false>(magazine, class, block)
        } else {
            self.push_to::<true>(magazine, class, block)
        }
    }

    /// Takes the lent block back, as `push` does: its slot names it.
    #[inline(always)]
    fn take_back_lent(&self) -> bool {
        if !self.begin(BACK) {
            return false;
        }
        self.touch();
        // ORDER: Release, as in `pop`; the last access, as in `push_to`.
        self.lent.store(ptr::null_mut(), RELEASE);
        true
    }

    /// Puts a block into a magazine, as `push` does. `LENT` says whether another is lent.
    #[inline(always)]
    fn push_to<const LENT: bool>(&self, magazine: &Magazine, class: usize, block: NonNull<Block>) -> bool {
        let state = self.settled_state::<LENT>(magazine, class);
        let blocks = state & BLOCKS;
        if blocks >= magazine.limit() {
            return false;
        }
        let now = state.wrapping_add(PUSH);
        if !self.begin(now) {
            return false;
        }
        self.touch();
        self.settle_lent::<LENT>();
        // SAFETY: below the limit, and the magazine is the thread's (N1).
        unsafe { magazine.slot(blocks) }.set(block.as_ptr());
        // ORDER: Release, as in `pop`. The last access, since the pool may go from here on, if the
        // block was what kept it.
        magazine.state.store(now, RELEASE);
        true
    }

    /// Returns the state that the magazine of a class has when it is settled that what is lent is
    /// out.
    #[inline(always)]
    fn settled_state<const LENT: bool>(&self, magazine: &Magazine, class: usize) -> usize {
        // ORDER: Relaxed, for both, as in `pop`.
        let state = magazine.state.load(Ordering::Relaxed);
        // Without a branch: which class comes next may be anybody's guess.
        let is_lender = LENT && self.lent_class.load(Ordering::Relaxed) == class;
        state.wrapping_sub(usize::from(is_lender))
    }

    /// Settles that what is lent is out, if anything is, as `LENT` says. The caller has the cache.
    #[inline(always)]
    fn settle_lent<const LENT: bool>(&self) {
        if LENT {
            // ORDER: Relaxed, for both: the caller has the cache.
            self.lent.store(ptr::null_mut(), Ordering::Relaxed);
            let class = self.lent_class.load(Ordering::Relaxed);
            // SAFETY: what `pop` found a magazine for (N3).
            unsafe { self.magazines.get_unchecked(class) }.lose_one();
        }
    }

    /// Makes the cache one of which nothing is lent. The caller has come to have it.
    fn have(&self) {
        self.touch();
        // ORDER: Relaxed: the caller has the cache.
        if !self.lent.load(Ordering::Relaxed).is_null() {
            self.settle_lent::<true>();
        }
    }

    /// Announces an operation, and says whether nobody claims the cache.
    #[inline(always)]
    fn begin(&self, intent: usize) -> bool {
        // ORDER: Release pairs with the Acquire in `done`: who sees this announced sees that all
        // before is done.
        self.intent.store(intent, RELEASE);
        sync::light_fence();
        // ORDER: Acquire pairs with the Release in `unclaim`.
        self.word.load(Ordering::Acquire) == 0
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
        if word & CHANGED != 0 {
            // ORDER: Relaxed: a claim from here on finds the thread at work, and changes nothing.
            self.word.fetch_and(!CHANGED, Ordering::Relaxed);
        }
        self.have();
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
