//! A thread's cache in one pool: the block that was released last, and for each size class a
//! magazine of blocks. The thread uses them without a locked instruction, and others may empty them
//! without stopping the thread.
//!
//! The one block that is apart makes the commonest traffic, one buffer after the other, cheap: it
//! needs no look at a magazine. Where the next request is for another class it would cost a guess
//! that no processor can learn. So the block is `COLD` from such a request on, until blocks came
//! and went one by one for a while.
//!
//! # The use of a cache
//!
//! The magazine of a class is its `state`, which counts its blocks, and slots for them. The thread
//! announces in `intent` the state that it is about to store. It looks at `word`, whether another
//! thread has claimed the cache since its last slow path, and then stores the state. (A thread that
//! announces a change of the block that is apart says which.)
//!
//! A thread that claims the cache sets flags in `word`, looks at `intent`, and knows from the
//! state whether the announced change is done. Between the two steps of each there is a fence
//! (`sync`), so not both can miss each other. A thread that finds its cache claimed does without
//! it, for that one request. A claim that finds the thread at work is given up.
//!
//! ```text
//!  word        |DRAINED|DISABLED|WAITED|CHANGED|FREE|CLOSED|CLAIMED|
//!              0 while nobody but the thread has anything to say
//!  state       blocks that were ever put in | class | blocks
//!  intent      what the state of a class becomes
//!              or LAST_OUT, LAST_IN, or IDLE, or BUSY for the slow paths
//!  last_freed  uses | COLD | class of the block that is apart      or NO_LAST, or NEVER
//! ```
//!
//! # The block taken last
//!
//! A release learns the class from the header of its block. What it stores in the magazine of that
//! class has an address that comes late, and a request that loads it would wait for the header, as
//! each request for the one before it. So the thread notes which block it took out of a magazine
//! last, and of which (`taken`, `taken_of`). If this is the next that goes to a magazine, as when
//! one buffer follows the other, of changing sizes, the note says to which, and the slot names the
//! block still.
//!
//! # Invariants
//!
//! - N1: the slots and states have one user at a time. That is the thread, between its look at
//!   `word` and the end of what it announced, or a claim, between its look at `intent` and its end.
//! - N2: the blocks in the slots of a magazine below its number of blocks are of its class, and the
//!   cache's (`block`, K2). The number is at most `limit`, and a magazine has `limit` slots at
//!   least. Both change with N1.
//! - N3: while the last bits of `last_freed` are a class, `last_freed_block` is a block of that
//!   class, and the cache's.
//! - N4: the fields marked so are the thread's own. Where `taken` is not null, the thread took that
//!   block out of the magazine `taken_of`, and has since put nothing else into a magazine, nor
//!   taken anything else out. While the block is in none, the slot behind the blocks of that
//!   magazine names it, unless there was a claim.
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
use crate::settings::{MOST_THREAD_CACHE, Settings};
use crate::shared::Shared;
use crate::sync::{self, AtomicU32, AtomicUsize, Ordering, RELEASE};

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

/// Where the bits of a state begin that are its class, and which they are then. On processors of 32
/// bits, as many as can be are left for the count behind them.
const CLASS_SHIFT: u32 = if usize::BITS == 32 { 11 } else { 16 };
const CLASS_MASK: usize = 0xFF;
/// The bits that are its number of blocks.
const BLOCKS: usize = (1 << CLASS_SHIFT) - 1;
/// What is added to a state for a block that is put in, which counts twice: as one of its blocks,
/// and as one that was ever put in.
const PUSH: usize = (1 << (CLASS_SHIFT + CLASS_MASK.count_ones())) + 1;
const _: () = assert!(MOST_THREAD_CACHE <= BLOCKS && MAX_CLASSES < CLASS_OF_LAST_IN);

/// What `intent` has for a class while nothing is,
const CLASS_OF_IDLE: usize = 0xFF;
/// while the thread is in a slow path,
const CLASS_OF_BUSY: usize = 0xFE;
/// while it takes the block that is apart, and while it puts one there.
const CLASS_OF_LAST_OUT: usize = 0xFD;
const CLASS_OF_LAST_IN: usize = 0xFC;
const IDLE: usize = CLASS_OF_IDLE << CLASS_SHIFT;
const BUSY: usize = CLASS_OF_BUSY << CLASS_SHIFT;
const LAST_OUT: usize = CLASS_OF_LAST_OUT << CLASS_SHIFT;
const LAST_IN: usize = CLASS_OF_LAST_IN << CLASS_SHIFT;

/// The last bits of `last_freed`: there is no block apart.
const NO_LAST: u32 = 0xFF;
/// There never is one: the thread keeps nothing.
const NEVER: u32 = 0xFE;
/// The bits of `last_freed` that are a class, or one of the above.
const LAST_CLASS: u32 = 0xFF;
// No request's class is one of the above.
const _: () =
    assert!(class_of(isize::MAX as usize) < NEVER as usize && class_of(0) > (LAST_CLASS | COLD) as usize);
/// A bit of `last_freed`: requests were for other classes, so no block is put apart, nor is one
/// looked for there.
const COLD: u32 = LAST_CLASS + 1;
/// A use of `last_freed`.
const LAST_USE: u32 = COLD << 1;

/// Blocks that come back before another is taken, after which one of them is put apart again. Where
/// the next request is for another class, that was in vain.
const WARM_AFTER: u32 = if cfg!(any(loom, shuttle)) { 2 } else { 256 };

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
    last_freed: AtomicU32,
    last_freed_block: Cell<*const Block>,
    /// N4; the thread's own, as the next.
    taken: Cell<*const Block>,
    taken_of: Cell<*const Magazine>,
    /// Of `WARM_AFTER`, how many are left; the thread's own.
    cold_for: Cell<u32>,
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

impl ThreadCache {
    /// Makes a cache that no thread has.
    pub(crate) fn new(shared: &Shared, home: usize) -> Self {
        Self {
            head: Cache::new(shared.id, &shutdown::METHODS),
            // Another thread may adopt it as soon as it is on the list: not without the flag.
            word: AtomicUsize::new(if shared.has_budget() { FREE | WAITED } else { FREE }),
            intent: AtomicUsize::new(IDLE),
            last_freed: AtomicU32::new(if shared.settings.thread_cache == 0 { NEVER } else { NO_LAST }),
            last_freed_block: Cell::new(ptr::null()),
            taken: Cell::new(ptr::null()),
            taken_of: Cell::new(ptr::null()),
            cold_for: Cell::new(WARM_AFTER),
            recalls: Cell::new(0),
            home,
            shared: NonNull::from(shared),
            all_next: Link::default(),
            counts: Counts::default(),
            last_freed_mark: Cell::new(0),
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

    /// Takes a block of a class that was released lately; `None` when there is none, and when the
    /// slow path has to look why not.
    ///
    /// For its thread with a handle.
    #[inline(always)]
    pub(crate) fn pop(&self, class: usize) -> Option<NonNull<Block>> {
        // ORDER: Relaxed: what it says counts only when the look at `word` finds no claim since the
        // last slow path.
        let last_freed = self.last_freed.load(Ordering::Relaxed);
        if (last_freed & (LAST_CLASS | COLD)) as usize != class {
            return self.pop_magazine(class, last_freed);
        }
        if !self.begin(LAST_OUT) {
            return None;
        }
        self.touch();
        let block = self.last_freed_block.get();
        // ORDER: Release pairs with the Acquire in `done`: who claims the cache sees what the
        // thread did with it.
        self.last_freed.store(last_freed | NO_LAST, RELEASE);
        // SAFETY: a block (N3).
        Some(unsafe { NonNull::new_unchecked(block.cast_mut()) })
    }

    /// Takes the newest block of a magazine, as `pop` does.
    #[inline(always)]
    fn pop_magazine(&self, class: usize, last_freed: u32) -> Option<NonNull<Block>> {
        let magazine = self.magazines.get(class)?;
        // ORDER: Relaxed, as in `pop`.
        let state = magazine.state.load(Ordering::Relaxed);
        let blocks = state & BLOCKS;
        if blocks == 0 {
            return None;
        }
        let now = state - 1;
        if !self.begin(now) {
            return None;
        }
        self.touch();
        // SAFETY: within the limit (N2), and the magazine is the thread's (N1).
        let block = unsafe { magazine.slot(blocks - 1) }.get();
        self.taken.set(block);
        self.taken_of.set(magazine);
        // ORDER: Relaxed: the state is stored behind it.
        self.last_freed.store(last_freed | COLD, Ordering::Relaxed);
        // ORDER: Release, as in `pop`.
        magazine.state.store(now, RELEASE);
        // SAFETY: a block (N2).
        Some(unsafe { NonNull::new_unchecked(block.cast_mut()) })
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
        if last_freed & (LAST_CLASS | COLD) != NO_LAST || class >= MAX_CLASSES {
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
        if ptr::eq(self.taken.get(), block.as_ptr()) {
            // SAFETY: a magazine of this cache (N4).
            let magazine = unsafe { &*self.taken_of.get() };
            // ORDER: Relaxed, as in `pop`.
            let state = magazine.state.load(Ordering::Relaxed);
            // It may be another block by now, that was made at the same address.
            if state >> CLASS_SHIFT & CLASS_MASK == class {
                return !self.is_warm() && self.push_at(magazine, state, None);
            }
        }
        let Some(magazine) = self.magazines.get(class) else { return false };
        // ORDER: Relaxed, as in `pop`.
        let state = magazine.state.load(Ordering::Relaxed);
        state & BLOCKS < magazine.limit() && self.push_at(magazine, state, Some(block))
    }

    /// Counts a block that comes back before another is taken. Returns whether the slow path is to
    /// put it apart.
    #[inline(always)]
    fn is_warm(&self) -> bool {
        let left = self.cold_for.get().wrapping_sub(1);
        self.cold_for.set(left);
        left == 0
    }

    /// Makes a magazine that has room have one block more, as `push` does: the given one, or the
    /// one that its next slot names.
    #[inline(always)]
    fn push_at(&self, magazine: &Magazine, state: usize, block: Option<NonNull<Block>>) -> bool {
        let now = state.wrapping_add(PUSH);
        if !self.begin(now) {
            return false;
        }
        self.touch();
        if let Some(block) = block {
            // SAFETY: below the limit, and the magazine is the thread's (N1).
            unsafe { magazine.slot(state & BLOCKS) }.set(block.as_ptr());
            self.taken.set(ptr::null());
        }
        // ORDER: Release, as in `pop`. The last access, as in `push`.
        magazine.state.store(now, RELEASE);
        true
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
        self.taken.set(ptr::null());
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
