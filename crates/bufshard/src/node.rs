//! A thread's cache in one pool: the block that was released last, and for each size class a stack of blocks. The thread uses them
//! without a locked instruction, and others may empty them without stopping the thread.
//!
//! The one block that is apart makes the commonest traffic, one buffer after the other, cheap: it is found without a look at a stack, and
//! so the address of nothing depends on what was just stored elsewhere. It costs the other traffic a comparison.
//!
//! # Who uses a cache
//!
//! The stack of a class is two counters, of what was pushed and of what was popped, and slots for the difference. The thread announces
//! in `begun` the counter that it is about to raise, and to what; looks at `word`, whether anybody claims the cache; and raises the
//! counter. (The block that is apart has a state in place of counters, and who announces a change of it says which.) Who claims it
//! sets a flag in `word`, looks at `begun`, and knows from the counter whether what was announced is done. Between the
//! two steps of each stands a fence (`sync`), so not both can miss each other: a thread that finds its cache claimed does without it, for
//! that one request, and who finds the thread at work lets go of the cache.
//!
//! ```text
//!  word     ....epoch....|PLAIN|FREE|CLOSED|CLAIMED|      epoch + 1 at the end of each claim
//!  seen     the word as the thread last saw it, without flags: the fast paths go on where it still is that
//!  begun    what the counter becomes | which counter      or HOT_OUT, HOT_IN, or IDLE, or BUSY for the slow paths
//!  hot      uses | class of the block that is apart      or NO_HOT, or NEVER
//! ```
//!
//! # Invariants
//!
//! - N1: the slots and counters are used by the thread between its look at `word` and the end of what it announced, or by who claims
//!   the cache from its look at `begun` until it gives the claim up; not by both.
//! - N2: the blocks in the slots below the difference of the counters are the cache's (`block`, K2); `difference <= limit`.
//! - N3: while the last bits of `hot` are a class, `hot_block` is a block of that class, and the cache's.
//! - N4: `seen` and the fields marked so are the thread's own.
//! - N5: of a pool that is gone, who exchanges `drained` empties the cache, and nothing is put into it any more.

use alloc::vec::Vec;
use core::cell::Cell;
use core::ptr::{self, NonNull};

use bufcore::strategy::threads::{self, Cache, Methods};
use bufcore::strategy::{Link, Listed};

use crate::block::Block;
use crate::chain::Chain;
use crate::class::{MAX_CLASSES, class_of};
use crate::counts::Counts;
use crate::shared::Shared;
use crate::sync::{self, AtomicU32, AtomicUsize, Ordering, RELEASE};
use crate::wait::Event;

/// Somebody other than the thread uses the cache.
const CLAIMED: usize = 1;
/// The pool is gone.
const CLOSED: usize = 2;
/// No thread has the cache.
const FREE: usize = 4;
/// Releases are to go the slow path: somebody waits for memory.
const WAITED: usize = 8;
/// All requests go the slow path: the system has no fence for the fast ones.
const PLAIN: usize = 16;
/// What `word` is raised by at the end of a claim.
const EPOCH: usize = 32;
const FLAGS: usize = EPOCH - 1;

/// `begun` while nothing is.
const IDLE: u32 = 0xFF;
/// `begun` while the thread is in a slow path.
const BUSY: u32 = 0xFE;

/// `begun` while the thread takes the block that is apart, and while it puts one there.
const HOT_OUT: u32 = 0xFD;
const HOT_IN: u32 = 0xFC;

/// The last bits of `hot`: there is no block apart.
const NO_HOT: u32 = 0xFF;
/// There never is one: the thread keeps nothing.
const NEVER: u32 = 0xFE;
/// The bits of `hot` that are a class, or one of the above.
const HOT_CLASS: u32 = 0xFF;
// No request's class is one of the above.
const _: () = assert!(class_of(isize::MAX as usize) < NEVER as usize && class_of(0) > HOT_CLASS as usize);
/// A use of `hot`.
const HOT_USE: u32 = HOT_CLASS + 1;

/// How often who claims a cache looks whether its thread has come to the end of what it is in the midst of.
const LOOKS: usize = if cfg!(any(loom, shuttle)) { 1 } else { 200 };

/// The stack of one class.
struct Stack {
    /// Blocks that were ever taken out.
    popped: AtomicU32,
    /// Blocks that were ever put in.
    pushed: AtomicU32,
    /// Slots.
    limit: u32,
    slots: *const Cell<*const Block>,
}

/// A cache.
#[repr(C)]
pub(crate) struct Node {
    cache: Cache,
    word: AtomicUsize,
    seen: Cell<usize>,
    begun: AtomicU32,
    /// N3.
    hot: AtomicU32,
    hot_block: Cell<*const Block>,
    /// Not 0 once the thread has found `PLAIN`: from then on its fast paths do nothing, and its slow ones execute full fences.
    fenced: AtomicU32,
    /// Whether that was since `take_news`; the thread's own.
    is_news: Cell<bool>,
    /// The shard that the thread starts its searches at.
    home: usize,
    /// Not 0 when the cache of a closed pool was emptied (N5).
    drained: AtomicU32,
    /// Valid as long as the cache is (`shared`, P1).
    shared: NonNull<Shared>,
    /// The next of all caches of the pool.
    all_next: Link<Node>,
    /// The thread's own.
    pub(crate) counts: Counts,
    /// What `trim_idle` saw; guarded by its lock.
    idle_marks: [Cell<u32>; MAX_CLASSES],
    hot_mark: Cell<u32>,
    stacks: [Stack; MAX_CLASSES],
    /// What the stacks point into.
    _slots: Vec<Cell<*const Block>>,
    #[cfg(all(test, any(loom, shuttle)))]
    shadow: buftest::models::Shadow,
}

/// Why a cache is not to be had.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NotHad {
    /// Somebody else claims it, its thread is in the midst of something, or the pool is gone: to look again soon may help.
    Busy,
    /// The system refuses the fence, and the thread does not know of that yet.
    NoFence,
}

/// Stacks that were not used for a time; see `Node::note_use`.
pub(crate) struct Unused {
    stacks: [bool; MAX_CLASSES],
    hot: bool,
}

/// What the lists of a thread do with a cache.
static METHODS: Methods =
    Methods { is_closed: Node::is_closed, end_of_thread: Node::end_of_thread, let_go: Node::let_go };

/// What `begun` says of an operation that makes the counter `which` become `value`.
#[inline(always)]
const fn record(which: usize, value: u32) -> u32 {
    // Counters change by one, so 24 bits tell the old from the new.
    value << 8 | which as u32
}

impl Stack {
    /// Blocks in it. For those who have the stack.
    fn len(&self) -> u32 {
        // ORDER: Relaxed, for both: who has the stack has seen what the last one did.
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
    /// `index` is below the limit, and the caller has the stack while it uses the slot.
    #[inline(always)]
    unsafe fn slot(&self, index: u32) -> &Cell<*const Block> {
        // SAFETY: each stack has `limit` slots from there on.
        let slot = unsafe { self.slots.add(index as usize) };
        // SAFETY: they live as long as the cache.
        unsafe { &*slot }
    }
}

// SAFETY: one field.
unsafe impl Listed for Node {
    fn link(&self) -> &Link<Self> {
        &self.all_next
    }
}

impl Node {
    /// A cache that no thread has; `None` when there is no memory.
    pub(crate) fn new(shared: &Shared, home: usize) -> Option<Self> {
        let limits: [u32; MAX_CLASSES] =
            core::array::from_fn(|class| shared.settings.thread_limit(class) as u32);
        let total = limits.iter().map(|&limit| limit as usize).sum();
        let mut slots: Vec<Cell<*const Block>> = Vec::new();
        slots.try_reserve_exact(total).ok()?;
        slots.resize_with(total, || Cell::new(ptr::null()));
        let mut rest = slots.as_ptr();
        let stacks = limits.map(|limit| {
            let slots = rest;
            rest = rest.wrapping_add(limit as usize);
            Stack { popped: AtomicU32::new(0), pushed: AtomicU32::new(0), limit, slots }
        });
        Some(Self {
            cache: Cache::new(shared.id, &METHODS),
            word: AtomicUsize::new(FREE | if shared.is_plain() { PLAIN } else { 0 }),
            seen: Cell::new(0),
            begun: AtomicU32::new(IDLE),
            hot: AtomicU32::new(if shared.settings.thread_cache == 0 { NEVER } else { NO_HOT }),
            hot_block: Cell::new(ptr::null()),
            fenced: AtomicU32::new(u32::from(shared.is_plain())),
            is_news: Cell::new(false),
            home,
            drained: AtomicU32::new(0),
            shared: NonNull::from(shared),
            all_next: Link::default(),
            counts: Counts::default(),
            idle_marks: core::array::from_fn(|_| Cell::new(0)),
            hot_mark: Cell::new(0),
            stacks,
            _slots: slots,
            #[cfg(all(test, any(loom, shuttle)))]
            shadow: buftest::models::Shadow::default(),
        })
    }

    /// The calling thread's cache for the pool `id`, if it is to be found at once; else `None`.
    #[inline(always)]
    pub(crate) fn recall<'a>(id: usize) -> Option<&'a Self> {
        // SAFETY: what `remember` left there is a cache of this thread's, which is valid while it is on the thread's lists
        // (`threads`, L1); no borrow outlives the request that it serves, and only the thread itself takes it off.
        threads::recall(id).map(|node| unsafe { node.cast::<Self>().as_ref() })
    }

    /// The calling thread's cache for the pool `id`, if it has one.
    pub(crate) fn find<'a>(id: usize) -> Option<&'a Self> {
        // SAFETY: a cache of this thread's is valid (`threads`, L2), and a head is the first field of a cache, from whose address it came.
        unsafe { threads::find(id).cast::<Self>().as_ref() }
    }

    /// Lets the fast paths find the cache. For its thread.
    pub(crate) fn remember(&self) {
        // SAFETY: a cache that the thread found or added is on its list, for this pool; `recall` takes the value for a cache.
        unsafe { threads::remember(self.cache.id(), NonNull::from(self).cast()) };
    }

    pub(crate) fn home(&self) -> usize {
        self.home
    }

    /// Takes a block of a class that was released lately; `None` when there is none, and when the slow path has to look why not.
    #[inline(always)]
    pub(crate) fn pop(&self, class: usize) -> Option<NonNull<Block>> {
        // ORDER: Relaxed: what it says counts only when the look at `word` finds no claim since the last one of the thread.
        let hot = self.hot.load(Ordering::Relaxed);
        if (hot & HOT_CLASS) as usize != class || cfg!(bufworks_broken = "noreuse") {
            return self.pop_stack(class);
        }
        if !self.begin(HOT_OUT) {
            return None;
        }
        self.touch();
        let block = self.hot_block.get();
        // ORDER: Release pairs with the Acquire in `done`: who claims the cache sees what the thread did with it.
        if !cfg!(bufworks_broken = "nolock") {
            self.hot.store(hot | NO_HOT, RELEASE);
        }
        NonNull::new(block.cast_mut())
    }

    /// Takes the newest block of a stack, as `pop` does.
    #[inline(always)]
    fn pop_stack(&self, class: usize) -> Option<NonNull<Block>> {
        let stack = self.stacks.get(class)?;
        // ORDER: Relaxed, for both, as in `pop`.
        let popped = stack.popped.load(Ordering::Relaxed);
        let len = stack.pushed.load(Ordering::Relaxed).wrapping_sub(popped);
        if len == 0 || cfg!(bufworks_broken = "noreuse") {
            return None;
        }
        let now = popped.wrapping_add(u32::from(!cfg!(bufworks_broken = "nolock")));
        if !self.begin(record(2 * class, now)) {
            return None;
        }
        self.touch();
        // SAFETY: `len` is at most the limit (N2), and the stack is the thread's (N1).
        let block = unsafe { stack.slot(len - 1) }.get();
        // ORDER: Release, as in `pop`.
        stack.popped.store(now, RELEASE);
        NonNull::new(block.cast_mut())
    }

    /// Keeps a block of a class. `false` when the slow path has to see to it.
    ///
    /// # Safety
    ///
    /// The block is the caller's, who gives it up if this succeeds; it is of this pool.
    #[inline(always)]
    pub(crate) unsafe fn push(&self, class: usize, block: NonNull<Block>) -> bool {
        // ORDER: Relaxed, as in `pop`.
        let hot = self.hot.load(Ordering::Relaxed);
        if hot & HOT_CLASS != NO_HOT || class >= MAX_CLASSES {
            // SAFETY: the caller's promise.
            return unsafe { self.push_stack(class, block) };
        }
        if !self.begin(HOT_IN) {
            return false;
        }
        self.touch();
        self.hot_block.set(block.as_ptr());
        // ORDER: Release, as in `pop`.
        self.hot.store(hot.wrapping_add(HOT_USE) & !HOT_CLASS | class as u32, RELEASE);
        true
    }

    /// Puts a block on the stack of its class, as `push` does.
    ///
    /// # Safety
    ///
    /// As for [`push`](Self::push).
    #[inline(always)]
    unsafe fn push_stack(&self, class: usize, block: NonNull<Block>) -> bool {
        let Some(stack) = self.stacks.get(class) else { return false };
        // ORDER: Relaxed, for both, as in `pop`.
        let pushed = stack.pushed.load(Ordering::Relaxed);
        let len = pushed.wrapping_sub(stack.popped.load(Ordering::Relaxed));
        if len >= stack.limit {
            return false;
        }
        let now = pushed.wrapping_add(1);
        if !self.begin(record(2 * class + 1, now)) {
            return false;
        }
        self.touch();
        // SAFETY: `len` is below the limit, and the stack is the thread's (N1).
        unsafe { stack.slot(len) }.set(block.as_ptr());
        // ORDER: Release, as in `pop`.
        stack.pushed.store(now, RELEASE);
        true
    }

    /// Announces an operation, and says whether nobody claims the cache.
    #[inline(always)]
    fn begin(&self, record: u32) -> bool {
        // ORDER: Release pairs with the Acquire in `done`: who sees this announced sees that all before is done.
        self.begun.store(record, RELEASE);
        sync::light_fence();
        // ORDER: Acquire pairs with the Release in `unclaim`. The same word as before says that nobody has had the cache since.
        self.word.load(Ordering::Acquire) == self.seen.get()
    }

    /// Where the model checker looks whether two use the stacks at once.
    #[inline(always)]
    fn touch(&self) {
        #[cfg(all(test, any(loom, shuttle)))]
        self.shadow.write();
    }

    /// Begins a slow path of the thread, after which the stacks are its own until `leave`. `false` when they are not to be had. In between,
    /// nothing is allocated, freed, or waited for.
    pub(crate) fn enter(&self) -> bool {
        // ORDER: Release, as in `begin`.
        self.begun.store(BUSY, RELEASE);
        sync::light_fence();
        // ORDER: Acquire, as in `begin`.
        let mut word = self.word.load(Ordering::Acquire);
        if word & PLAIN != 0 {
            word = self.fence();
        }
        if word & (CLAIMED | CLOSED) != 0 {
            self.settle();
            return false;
        }
        self.seen.set(word & !FLAGS);
        self.touch();
        true
    }

    /// The fence between the two steps of a slow path where the system gives none that costs this side nothing; then the second step.
    #[cold]
    fn fence(&self) -> usize {
        sync::full_fence();
        // ORDER: Relaxed: only this thread writes it.
        if self.fenced.load(Ordering::Relaxed) == 0 {
            // ORDER: Release pairs with the Acquire in `is_fenced`: all that the thread announced without such a fence is seen.
            self.fenced.store(1, RELEASE);
            self.is_news.set(true);
        }
        // ORDER: Acquire, as in `begin`.
        self.word.load(Ordering::Acquire)
    }

    /// Whether it is known that the thread executes full fences, so that a claim needs no other.
    fn is_fenced(&self) -> bool {
        // ORDER: Acquire pairs with the Release in `fence`.
        self.fenced.load(Ordering::Acquire) != 0
    }

    /// Whether what is in the cache was out of the reach of others until a moment ago: who waits is to be told. For its thread.
    pub(crate) fn take_news(&self) -> bool {
        self.is_news.take()
    }

    /// Makes all requests of the thread go the slow path, for good: the system gives no fence for the fast ones.
    pub(crate) fn set_plain(&self) {
        // ORDER: Relaxed: whether the thread has seen it is said by `fenced`.
        self.word.fetch_or(PLAIN, Ordering::Relaxed);
    }

    /// Ends what `enter` began. `true` when the pool is gone: then the cache is to be drained, when nothing else is to be done.
    #[must_use]
    pub(crate) fn leave(&self) -> bool {
        self.settle();
        sync::light_fence();
        // ORDER: Relaxed, for both: nothing is read that this would order.
        let mut word = self.word.load(Ordering::Relaxed);
        if word & PLAIN != 0 {
            sync::full_fence();
            word = self.word.load(Ordering::Relaxed);
        }
        word & CLOSED != 0
    }

    /// As `leave`, where a handle keeps the pool from being gone.
    pub(crate) fn leave_open(&self) {
        let is_gone = self.leave();
        debug_assert!(!is_gone, "the pool has a handle");
    }

    /// Takes back what a fast path announced and did not do.
    pub(crate) fn settle(&self) {
        // ORDER: Release pairs with the Acquire in `done`, as in `begin`.
        self.begun.store(IDLE, RELEASE);
    }

    /// As `pop`, between `enter` and `leave` or for who claims the cache.
    pub(crate) fn take_one(&self, class: usize) -> Option<NonNull<Block>> {
        if self.hot_class() == class { self.take_hot() } else { self.take_of_stack(class) }
    }

    /// The newest block of a stack. For those who have it.
    pub(crate) fn take_of_stack(&self, class: usize) -> Option<NonNull<Block>> {
        let stack = self.stacks.get(class)?;
        let len = stack.len();
        if len == 0 {
            return None;
        }
        // SAFETY: `len` is at most the limit (N2), and the stack is the caller's (N1).
        let block = unsafe { stack.slot(len - 1) }.get();
        // ORDER: Relaxed: only who has the stack reads it.
        let popped = stack.popped.load(Ordering::Relaxed);
        // ORDER: Release, as in `pop`.
        stack.popped.store(popped.wrapping_add(1), RELEASE);
        NonNull::new(block.cast_mut())
    }

    /// The class of the block that is apart, or more than all classes.
    fn hot_class(&self) -> usize {
        // ORDER: Relaxed: who has the cache has seen what the last one did; for others a hint.
        (self.hot.load(Ordering::Relaxed) & HOT_CLASS) as usize
    }

    /// The block that is apart. For those who have the stacks.
    fn take_hot(&self) -> Option<NonNull<Block>> {
        if self.hot_class() >= MAX_CLASSES {
            return None;
        }
        let block = self.hot_block.get();
        // ORDER: Release, as in `pop`. No other store comes between: the caller has the cache.
        self.hot.fetch_or(NO_HOT, RELEASE);
        NonNull::new(block.cast_mut())
    }

    /// As `push`, between `enter` and `leave`; gives the block back when the stack is full.
    ///
    /// # Safety
    ///
    /// As for [`push`](Self::push).
    pub(crate) unsafe fn put_one(&self, class: usize, block: NonNull<Block>) -> bool {
        let Some(stack) = self.stacks.get(class) else { return false };
        let len = stack.len();
        if len >= stack.limit {
            return false;
        }
        // SAFETY: `len` is below the limit, and the stack is the caller's (N1).
        unsafe { stack.slot(len) }.set(block.as_ptr());
        // ORDER: Relaxed: only who has the stack reads it.
        let pushed = stack.pushed.load(Ordering::Relaxed);
        // ORDER: Release, as in `pop`.
        stack.pushed.store(pushed.wrapping_add(1), RELEASE);
        true
    }

    /// All blocks of a stack. For those who have it.
    fn take_stack(&self, class: usize) -> Chain {
        let mut chain = Chain::new();
        while let Some(block) = self.take_of_stack(class) {
            // SAFETY: just taken.
            unsafe { chain.push(block) };
        }
        chain
    }

    /// All blocks of a class. For those who have the stacks.
    fn take_all(&self, class: usize) -> Chain {
        let mut chain = self.take_stack(class);
        if self.hot_class() == class
            && let Some(block) = self.take_hot()
        {
            // SAFETY: just taken.
            unsafe { chain.push(block) };
        }
        chain
    }

    /// Whether there is nothing in it, at some moment.
    pub(crate) fn is_empty(&self) -> bool {
        self.hot_class() >= MAX_CLASSES && self.stacks.iter().all(|stack| stack.len() == 0)
    }

    /// Notes how often each stack was used, and returns which were not used since the last note; `None` when none of those has anything in
    /// it. For who has the lock of `idle_marks`.
    pub(crate) fn note_use(&self) -> Option<Unused> {
        let mut unused = [false; MAX_CLASSES];
        for ((stack, mark), unused) in self.stacks.iter().zip(&self.idle_marks).zip(&mut unused) {
            let uses = stack.uses();
            *unused = mark.replace(uses) == uses && stack.len() > 0;
        }
        // ORDER: Relaxed: a hint, and a count.
        let hot = self.hot.load(Ordering::Relaxed);
        let is_hot_unused = self.hot_mark.replace(hot) == hot && self.hot_class() < MAX_CLASSES;
        (is_hot_unused || unused.contains(&true)).then_some(Unused { stacks: unused, hot: is_hot_unused })
    }

    /// Takes what is in stacks that were not used until the note and since. For those who have the stacks, and the lock of `idle_marks`.
    pub(crate) fn take_unused(&self, unused: &Unused) -> Chain {
        let mut chain = Chain::new();
        for (class, (stack, mark)) in self.stacks.iter().zip(&self.idle_marks).enumerate() {
            if unused.stacks[class] && mark.get() == stack.uses() {
                chain.append(self.take_all(class));
                mark.set(stack.uses());
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

    /// What the thread announced last, if it is done with that. For those who claimed the cache, after the fence.
    fn done(&self) -> Option<u32> {
        // ORDER: Acquire pairs with the Release in `begin` and `settle`: all that the thread did before is seen.
        let begun = self.begun.load(Ordering::Acquire);
        let is_done = match begun & 0xFF {
            IDLE => true,
            BUSY => false,
            // ORDER: Acquire pairs with the Release in `pop` and `push`, for both: what was announced is done and seen.
            HOT_OUT => self.hot.load(Ordering::Acquire) & HOT_CLASS == NO_HOT,
            HOT_IN => self.hot.load(Ordering::Acquire) & HOT_CLASS != NO_HOT,
            which => {
                let stack = &self.stacks[(which / 2) as usize];
                let counter = if which % 2 == 0 { &stack.popped } else { &stack.pushed };
                // ORDER: Acquire pairs with the Release in `pop` and `push`: what was announced is done and seen.
                record(which as usize, counter.load(Ordering::Acquire)) == begun
            }
        };
        is_done.then_some(begun)
    }

    /// Waits, not for long, until the thread is done with what it announced, and returns that.
    fn rest(&self) -> Option<u32> {
        (0..LOOKS).find_map(|look| {
            if look > 0 {
                core::hint::spin_loop();
            }
            self.done()
        })
    }

    /// Runs `f` while the caller has the stacks, from another thread than the cache's; it calls nothing that is not ours. For holders of
    /// a handle.
    ///
    /// # Errors
    ///
    /// When the cache is not to be had. Then nothing was done.
    pub(crate) fn claimed<R>(&self, f: impl FnOnce(&Self) -> R) -> Result<R, NotHad> {
        // ORDER: Relaxed: compared only.
        let mut word = self.word.load(Ordering::Relaxed);
        loop {
            if word & (CLAIMED | CLOSED) != 0 {
                return Err(NotHad::Busy);
            }
            // ORDER: Acquire pairs with the Release of the last one who had it; Release keeps `unclaim`'s for those behind. What the fence
            // orders is said there.
            let claimed =
                self.word.compare_exchange_weak(word, word | CLAIMED, Ordering::AcqRel, Ordering::Relaxed);
            match claimed {
                Ok(_) => break,
                Err(now) => word = now,
            }
        }
        // A cache that no thread has gets none while it is claimed.
        if !sync::heavy_fence(word & FREE != 0 || self.is_fenced()) {
            self.unclaim(false);
            return Err(NotHad::NoFence);
        }
        let result = self.rest().map(|done| {
            self.touch();
            let result = f(self);
            // It need not agree with the counters any more. By an exchange: the thread may have announced something else since, which is
            // not to be overwritten. (Of the block that is apart it may have announced the same again, which then is: it finds the claim in
            // `word`, or the next epoch, and does without.)
            // ORDER: Release, as in `settle`: who claims the cache next sees what the thread and we did. A failure publishes nothing.
            if cfg!(bufworks_broken = "overwrites") {
                self.settle();
            } else if done != IDLE {
                let _ = self.begun.compare_exchange(done, IDLE, Ordering::Release, Ordering::Relaxed);
            }
            result
        });
        self.unclaim(result.is_some());
        result.ok_or(NotHad::Busy)
    }

    /// Ends a claim. `used` says whether the stacks changed.
    fn unclaim(&self, used: bool) {
        let step = if used { EPOCH.wrapping_sub(CLAIMED) } else { CLAIMED.wrapping_neg() };
        // ORDER: Release pairs with the Acquire in `begin`, `enter`, `adopt` and `claimed`: who has the stacks next sees what was done.
        self.word.fetch_add(step, RELEASE);
    }

    /// Makes a cache that no thread has the calling thread's.
    pub(crate) fn adopt(&self) -> bool {
        // ORDER: Relaxed: a look that saves the exchange.
        let word = self.word.load(Ordering::Relaxed);
        if word & FREE == 0 || word & (CLAIMED | CLOSED) != 0 {
            return false;
        }
        // ORDER: Acquire pairs with the Release of `end_of_thread` and `unclaim`: the cache is as it was left.
        let adopted =
            self.word.compare_exchange(word, word & !FREE, Ordering::Acquire, Ordering::Relaxed).is_ok();
        if adopted {
            self.seen.set(word & !FLAGS);
        }
        adopted
    }

    /// Whether a thread could have it.
    pub(crate) fn is_free(&self) -> bool {
        // ORDER: Relaxed: a hint.
        self.word.load(Ordering::Relaxed) & (FREE | CLOSED) == FREE
    }

    /// Whether releases are to free their memory. Between `enter` and `leave`: who sets the flag later finds the thread at work.
    pub(crate) fn is_waited(&self) -> bool {
        // ORDER: Relaxed: the fences of `enter` and of who sets it order it.
        self.word.load(Ordering::Relaxed) & WAITED != 0
    }

    /// Sets or takes back the flag that makes releases go the slow path.
    pub(crate) fn set_waited(&self, waited: bool) {
        // ORDER: Relaxed, for both: the fence that follows orders it, and who reads it late is found out by `rest`.
        if waited && !cfg!(bufworks_broken = "nowake") {
            self.word.fetch_or(WAITED, Ordering::Relaxed);
        } else {
            self.word.fetch_and(!WAITED, Ordering::Relaxed);
        }
    }

    /// Whether the pool is gone.
    ///
    /// # Safety
    ///
    /// `cache` is the head of a valid cache.
    unsafe fn is_closed(cache: NonNull<Cache>) -> bool {
        // SAFETY: the caller's promise; the head is the first field.
        unsafe { cache.cast::<Self>().as_ref() }.is_gone()
    }

    /// Whether the pool is gone.
    pub(crate) fn is_gone(&self) -> bool {
        // ORDER: Relaxed: nothing is read that this would order.
        self.word.load(Ordering::Relaxed) & CLOSED != 0
    }

    /// The pool's end, first half: from here on the thread puts nothing in that it did not begin before.
    pub(crate) fn close(&self) {
        // ORDER: Acquire pairs with the Release in `unclaim` and `end_of_thread`. What the fence orders is said there.
        self.word.fetch_or(CLOSED, Ordering::AcqRel);
    }

    /// The pool's end, second half, behind a full fence, which was a heavy one if `is_heavy`: empties the cache, unless its thread is in
    /// the midst of something or cannot be asked; then it does so itself. `is_own` says that the thread is the calling one.
    pub(crate) fn empty_closed(&self, is_own: bool, is_heavy: bool) {
        if is_own {
            self.settle();
        }
        // ORDER: Acquire pairs with the Release in `end_of_thread`. A closed cache that no thread has gets none.
        let is_free = || self.word.load(Ordering::Acquire) & FREE != 0;
        if is_own || (is_heavy || self.is_fenced() || is_free()) && self.rest().is_some() {
            self.drain_closed();
        }
    }

    /// Frees what is in the cache of a pool that is gone, once (N5). For its thread while it is not at work, and for the pool's end.
    pub(crate) fn drain_closed(&self) {
        // ORDER: Acquire and Release: of the two who may come here the second does nothing, and the first has seen all that the thread
        // did: by itself, or by `rest`.
        if self.drained.swap(1, Ordering::AcqRel) != 0 {
            return;
        }
        self.touch();
        // Everything first: an allocator that uses pools itself may let go of the cache.
        let (shared, mut all) = (self.shared, Chain::new());
        for class in 0..MAX_CLASSES {
            all.append(self.take_all(class));
        }
        // SAFETY: the chain is ours, and a cache's thread, or the pool's end, keeps the pool's bookkeeping until the blocks do.
        unsafe { Shared::free_chain(shared, all) };
    }

    /// The end of the thread that has the cache: its blocks go to the shards.
    ///
    /// # Safety
    ///
    /// The cache is off the thread's list, and is not used by it again.
    unsafe fn end_of_thread(cache: NonNull<Cache>) {
        // SAFETY: the thread's reference keeps the cache.
        let node = unsafe { cache.cast::<Self>().as_ref() };
        for class in 0..MAX_CLASSES {
            // Where somebody else has the cache at this moment, what he leaves is the next thread's, or goes with the pool.
            if !node.enter() {
                break;
            }
            let chain = node.take_stack(class);
            let mut apart = Chain::new();
            if node.hot_class() == class
                && let Some(block) = node.take_hot()
            {
                // SAFETY: just taken.
                unsafe { apart.push(block) };
            }
            // Where the pool is gone, it is drained below.
            let _ = node.leave();
            for chain in [chain, apart] {
                // SAFETY: the thread's reference keeps the pool.
                unsafe { Shared::store(node.shared, node.home, class, chain) };
            }
        }
        // ORDER: Release pairs with the Acquire in `adopt`, `claimed` and `close`: the cache is seen as it was left. Acquire, so that of a pool
        // that is gone everything is.
        let before = node.word.fetch_or(FREE, Ordering::AcqRel);
        // Not by another look: it may be another thread's already, and that one's pool gone.
        if before & CLOSED != 0 {
            node.drain_closed();
        } else if before & WAITED != 0 {
            // What was not to be had is to be had now.
            // SAFETY: the thread's reference keeps the pool.
            unsafe { Shared::notify(node.shared, Event::Put) };
        }
        // SAFETY: the thread's reference, once, by the caller's promise.
        unsafe { Shared::drop_ref(node.shared) };
    }

    /// The pool is gone, and the thread meets its cache: it gives back its reference to the pool's bookkeeping.
    ///
    /// # Safety
    ///
    /// The cache is off the thread's list, and is not used by it again.
    unsafe fn let_go(cache: NonNull<Cache>) {
        // SAFETY: valid by the reference that is given back.
        let node = unsafe { cache.cast::<Self>().as_ref() };
        node.settle();
        node.drain_closed();
        // SAFETY: the thread's reference, once, by the caller's promise.
        unsafe { Shared::drop_ref(node.shared) };
    }

    /// Puts the cache on the calling thread's list, and gives the thread its reference.
    pub(crate) fn list(&self) {
        // SAFETY: valid as long as the cache is.
        unsafe { self.shared.as_ref() }.keepers.add_ref();
        // SAFETY: on no list, since it was free; valid by the reference, until `end_of_thread` or `let_go`, or `Shared::close` for its own.
        unsafe { threads::add(NonNull::from(self).cast()) };
    }
}
