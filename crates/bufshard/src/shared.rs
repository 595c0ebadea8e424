//! What all handles of a pool, all caches and all blocks of it share, and the end of a pool.
//!
//! # Invariants
//!
//! - P1: the references of `keepers` are one for all handles together, one for each cache that a thread has, until the pool's end takes it
//!   over (`node`, N5), and one for each block. With the last of them all of this is freed, with all caches, except for the stubs that are on
//!   the lists of threads.
//! - P2: caches are added to their list, and never taken off.
//! - P3: `reserved` is at least the bytes of all blocks, and at most the budget.
//! - P4: nothing is acquired from a pool without handles, so nothing is taken out of its caches and shards but to be freed.

use alloc::boxed::Box;
use core::ptr::{self, NonNull};
use core::time::Duration;
use std::time::Instant;

use bufcore::strategy::{Keepers, Roll, Tracker, boxed, threads};
use bufcore::{AcquireError, ConfigError, RegionError};

use crate::block::Block;
use crate::chain::Chain;
use crate::class::{self, NO_CLASS};
use crate::config::Settings;
use crate::counts::{Counts, Why};
use crate::node::{Node, NotHad};
use crate::pool::{Refused, Turn};
use crate::stock::Stock;
use crate::sync::{self, AtomicU32, AtomicUsize, Ordering};
use crate::wait::{Event, Waiters};

/// The pool, as seen from inside.
pub(crate) struct Shared {
    /// P1.
    pub(crate) keepers: Keepers,
    /// The pool's number; no other pool ever has the same.
    pub(crate) id: usize,
    pub(crate) settings: Settings,
    /// Not 0 when the system gives no fence for the fast paths, or not any more, so that all requests go the slow one.
    is_plain: AtomicU32,
    stock: Stock,
    /// All caches (P2).
    nodes: Roll<Node>,
    /// How many caches were made: the next one's first shard.
    homes: AtomicUsize,
    /// How many coloured blocks were made.
    colours: AtomicUsize,
    /// Bytes of all blocks (P3).
    reserved: AtomicUsize,
    pub(crate) waiters: Waiters,
    /// When `trim_idle` last looked.
    idle_since: sync::Mutex<Option<Instant>>,
    /// What is done without a cache.
    pub(crate) common: Counts,
    pub(crate) tracker: Tracker,
}

impl Shared {
    /// A pool with one handle.
    pub(crate) fn new(settings: Settings) -> Result<NonNull<Self>, ConfigError> {
        let id = threads::new_id()?;
        let refused = ConfigError::Region(RegionError::OutOfMemory { requested: size_of::<Self>() });
        let shared = Self {
            keepers: Keepers::one_handle(),
            id,
            settings,
            is_plain: AtomicU32::new(u32::from(!sync::has_heavy_fence())),
            stock: Stock::new(&settings).ok_or(refused)?,
            nodes: Roll::default(),
            homes: AtomicUsize::new(0),
            colours: AtomicUsize::new(0),
            reserved: AtomicUsize::new(0),
            waiters: Waiters::new(),
            idle_since: sync::Mutex::new(None),
            common: Counts::common(),
            tracker: Tracker::default(),
        };
        boxed(shared).ok_or(refused)
    }

    /// One handle less; the last one ends the pool.
    ///
    /// # Safety
    ///
    /// The handle is the caller's, and is not used again.
    pub(crate) unsafe fn drop_handle(this: NonNull<Self>) {
        // SAFETY: a handle keeps it valid.
        let shared = unsafe { this.as_ref() };
        if shared.keepers.drop_handle() {
            // SAFETY: no handle is left.
            unsafe { Self::close(this) };
        }
    }

    /// One less that keeps the bookkeeping; the last one frees it.
    ///
    /// # Safety
    ///
    /// The reference is the caller's, and is not used again.
    pub(crate) unsafe fn drop_ref(this: NonNull<Self>) {
        // SAFETY: as below, for one.
        unsafe { Self::drop_refs(this, 1) };
    }

    /// As `drop_ref`, for some at once.
    ///
    /// # Safety
    ///
    /// The references are the caller's, and are not used again.
    unsafe fn drop_refs(this: NonNull<Self>, count: usize) {
        // SAFETY: the references keep it valid.
        let shared = unsafe { this.as_ref() };
        if shared.keepers.drop_refs(count) {
            // SAFETY: made by `boxed`, and nobody has a reference; nor are caches used by anybody any more.
            drop(unsafe { Box::from_raw(this.as_ptr()) });
        }
    }

    /// The end of the pool: frees all idle memory, and leaves the rest to its buffers.
    ///
    /// # Safety
    ///
    /// No handle is left, and this is called once.
    unsafe fn close(this: NonNull<Self>) {
        // SAFETY: the handles' reference is given back at the end.
        let shared = unsafe { this.as_ref() };
        // SAFETY: the chains are ours; the handles' reference keeps the pool.
        shared.stock.close(|chain| unsafe { Self::free_chain(this, chain, Why::Uncounted) });
        // SAFETY: the number is this pool's, and what its caches need is done below.
        let own = NonNull::new(unsafe { threads::remove(shared.id) }.cast_mut());
        shared.nodes().for_each(Node::close);
        if let Some(own) = own {
            // SAFETY: the pool is gone, and the cache off this thread's list.
            unsafe { Node::let_go(own) };
        }
        let is_heavy = sync::heavy_fence(false);
        shared.nodes().for_each(|node| node.empty_closed(is_heavy));
        // SAFETY: the handles' reference.
        unsafe { Self::drop_ref(this) };
    }

    /// All caches.
    pub(crate) fn nodes(&self) -> impl Iterator<Item = &Node> {
        self.nodes.iter()
    }

    /// Makes a cache that no thread has, and puts it on the list for good (P2). For holders of a handle.
    fn enlist(&self) -> Option<()> {
        // ORDER: Relaxed: any order of numbers will do.
        let home = self.homes.fetch_add(1, Ordering::Relaxed);
        let node = self.nodes.add(Node::new(self, home)?)?;
        if self.has_budget() {
            self.flag_new(node);
        }
        // Whoever found out meanwhile may not have met this one.
        sync::full_fence();
        if self.is_plain() {
            node.set_plain();
        }
        Some(())
    }

    /// Whether all requests go the slow path.
    pub(crate) fn is_plain(&self) -> bool {
        // ORDER: Relaxed: whether a cache's thread knows is said by the cache.
        self.is_plain.load(Ordering::Relaxed) != 0
    }

    /// The system refuses the fence for the fast paths, which it gave before: all go the slow one from here on.
    #[cold]
    fn go_plain(&self) {
        // ORDER: Relaxed: the fence orders it before the look at the caches, as that in `enlist` does the other way round.
        self.is_plain.store(1, Ordering::Relaxed);
        sync::full_fence();
        self.nodes().for_each(Node::set_plain);
    }

    /// A cache for the calling thread: its own, or one that no thread has. `None` for a thread that is ending, and when there is none.
    /// By pool, not by handle: a release may look for one.
    pub(crate) fn node(&self) -> Option<&Node> {
        if let Some(node) = Node::find(self.id) {
            return Some(node);
        }
        if !self.nodes().any(Node::is_free) {
            return None;
        }
        threads::register()?;
        // That may have called an allocator that uses the pool.
        if let Some(node) = Node::find(self.id) {
            return Some(node);
        }
        // The thread's reference, from before the pool's end could take it over.
        self.keepers.add_ref();
        let Some(node) = self.nodes().find(|node| node.adopt()).filter(|node| node.list()) else {
            let was_last = self.keepers.drop_refs(1);
            debug_assert!(!was_last, "the caller has a handle or a block");
            return None;
        };
        Some(node)
    }

    /// The same, made if there is none. For holders of a handle.
    pub(crate) fn node_or_new(&self) -> Option<&Node> {
        if let Some(node) = self.node() {
            return Some(node);
        }
        threads::register()?;
        // Until one is ours: others may be quicker.
        loop {
            self.enlist()?;
            if let Some(node) = self.node() {
                return Some(node);
            }
        }
    }

    /// Makes sure that a thread that only releases finds a cache: a release makes none, since it does not allocate. For holders of a
    /// handle.
    pub(crate) fn prepare_node(&self) {
        if self.settings.has_thread_caches() && !self.nodes().any(Node::is_free) {
            // Without one, its blocks go to the shards one by one.
            let _ = self.enlist();
        }
    }

    /// Bytes of all blocks.
    pub(crate) fn reserved(&self) -> usize {
        // ORDER: Relaxed: a count.
        self.reserved.load(Ordering::Relaxed)
    }

    /// Adds to the bytes of all blocks, within the budget; what is left of it otherwise.
    fn reserve(&self, bytes: usize) -> Result<(), usize> {
        let budget = self.settings.max_bytes;
        // ORDER: Relaxed, for all: a count.
        let mut reserved = self.reserved.load(Ordering::Relaxed);
        loop {
            let left = budget.saturating_sub(reserved);
            if bytes > left {
                return Err(left);
            }
            // ORDER: Relaxed, for both, as above.
            let exchange = self.reserved.compare_exchange_weak(
                reserved,
                reserved + bytes,
                Ordering::Relaxed,
                Ordering::Relaxed,
            );
            match exchange {
                Ok(_) => return Ok(()),
                Err(now) => reserved = now,
            }
        }
    }

    /// The error for a request for which `left` bytes of the budget are not enough, with nothing idle.
    pub(crate) fn exhausted(&self, requested: usize, left: usize) -> AcquireError {
        AcquireError::Exhausted { requested, available: self.settings.most_within(left) }
    }

    /// What is left of the budget.
    pub(crate) fn free(&self) -> usize {
        self.settings.max_bytes.saturating_sub(self.reserved())
    }

    /// Takes from the bytes of all blocks.
    ///
    /// # Safety
    ///
    /// As for [`notify`](Self::notify).
    unsafe fn unreserve(this: NonNull<Self>, bytes: usize) {
        // SAFETY: the caller's promise.
        let shared = unsafe { this.as_ref() };
        // ORDER: Relaxed: a count; for those who wait, the fence in `notify` orders it.
        shared.reserved.fetch_sub(bytes, Ordering::Relaxed);
        if shared.has_budget() {
            // SAFETY: the caller's promise.
            unsafe { Self::notify(this, Event::Freed) };
        }
    }

    /// Whether anybody may ever wait.
    pub(crate) fn has_budget(&self) -> bool {
        self.settings.max_bytes != usize::MAX
    }

    /// Whether somebody waits for what is released.
    pub(crate) fn is_waited_for(&self) -> bool {
        self.has_budget() && self.waiters.any()
    }

    /// A new block of a class. For holders of a handle.
    pub(crate) fn pooled(
        &self,
        class: usize,
        requested: usize,
        turn: Turn,
    ) -> Result<NonNull<Block>, Refused> {
        // ORDER: Relaxed: any order of numbers will do.
        let colour = self.colours.fetch_add(1, Ordering::Relaxed);
        self.block(class as u16, class::bytes_of(class), colour, requested, turn)
    }

    /// A new block for one buffer of `bytes` bytes. For holders of a handle.
    pub(crate) fn single(&self, bytes: usize, turn: Turn) -> Result<NonNull<Block>, Refused> {
        self.block(NO_CLASS, bytes, 0, bytes, turn)
    }

    fn block(
        &self,
        class: u16,
        bytes: usize,
        colour: usize,
        requested: usize,
        turn: Turn,
    ) -> Result<NonNull<Block>, Refused> {
        let exhausted = |left, again| Err(Refused { error: self.exhausted(requested, left), again });
        let alignment = self.settings.alignment_of(bytes);
        let (mut colour, mut total) = (colour, Block::total(bytes, alignment, colour));
        if turn != Turn::First && self.has_budget() && self.has_claims() {
            // What there is, is for those who wait.
            return exhausted(0, false);
        }
        if let Err(left) = self.reserve(total) {
            if turn == Turn::Spare {
                return exhausted(left, false);
            }
            let saw_all = self.shrink(self.settings.max_bytes.saturating_sub(total));
            if self.reserve(total).is_err() {
                // The first colour takes the least.
                (colour, total) = (0, Block::total(bytes, alignment, 0));
                if let Err(left) = self.reserve(total) {
                    return exhausted(left, !saw_all);
                }
            }
        }
        let block = Block::make(self, class, bytes, colour).map_err(|_refused| {
            // SAFETY: the handle keeps the pool.
            unsafe { Self::unreserve(NonNull::from(self), total) };
            AcquireError::OutOfMemory { requested }
        })?;
        self.keepers.add_ref();
        Ok(block)
    }

    /// Frees a chain of blocks, and the references to the pool's bookkeeping that they are. Idle ones are counted.
    ///
    /// # Safety
    ///
    /// The chain is the caller's, of this pool.
    pub(crate) unsafe fn free_chain(this: NonNull<Self>, mut chain: Chain, why: Why) {
        let (mut count, mut bytes) = (0, 0);
        while let Some(block) = chain.pop() {
            if cfg!(feature = "stats") && why != Why::Uncounted {
                // SAFETY: a block of the chain is valid.
                let class = unsafe { block.as_ref() }.class();
                // SAFETY: the references of the blocks keep it valid; they are given back below.
                unsafe { this.as_ref() }.common.freed(class, why);
            }
            // SAFETY: a block of the chain was the caller's.
            bytes += unsafe { Block::free(block) };
            count += 1;
        }
        if count == 0 {
            return;
        }
        // SAFETY: the references of blocks that are gone; given back whatever a waker does that is woken here.
        let _refs = unsafe { Refs::new(this, count) };
        // SAFETY: they keep it valid (P1).
        unsafe { Self::unreserve(this, bytes) };
    }

    /// Puts the blocks that `next` gives into the shards, and returns those that they have no room for. To be followed by `was_put`, when
    /// nothing is locked or entered any more.
    pub(crate) fn put(
        &self,
        home: usize,
        class: usize,
        next: impl FnMut() -> Option<NonNull<Block>>,
    ) -> Chain {
        self.stock.put(home, class, self.settings.shard_limit(class), next)
    }

    /// A reference to the bookkeeping, for `was_put`, where somebody may ever wait. For those who keep it.
    pub(crate) fn keep_for_waiters(&self) -> Option<Refs> {
        self.has_budget().then(|| {
            self.keepers.add_ref();
            // SAFETY: the reference from above.
            unsafe { Refs::new(NonNull::from(self), 1) }
        })
    }

    /// Frees what the shards had no room for, and tells those who wait, who may have looked into the shards already: where that may be,
    /// the caller brings what keeps the bookkeeping meanwhile, whatever wakers and the allocator do.
    ///
    /// # Safety
    ///
    /// The rest is the caller's, of this pool. The bookkeeping need not be there if there is neither a rest nor `kept`, which is of it.
    #[cold]
    pub(crate) unsafe fn was_put(this: NonNull<Self>, rest: Chain, kept: Option<Refs>) {
        // SAFETY: the caller's promise.
        unsafe { Self::free_chain(this, rest, Why::NoRoom) };
        if let Some(_kept) = kept {
            // SAFETY: kept until the end of this block.
            unsafe { Self::notify(this, Event::Put) };
        }
    }

    /// Puts a chain of a class into the shards, and frees what they have no room for.
    ///
    /// # Safety
    ///
    /// The caller keeps the bookkeeping; the chain is the caller's, of this pool.
    pub(crate) unsafe fn store(this: NonNull<Self>, home: usize, class: usize, mut chain: Chain) {
        if !chain.is_empty() {
            // SAFETY: the caller's promise.
            let shared = unsafe { this.as_ref() };
            let rest = shared.put(home, class, || chain.pop());
            // SAFETY: given back by the shards; what is kept is of this pool.
            unsafe { Self::was_put(this, rest, shared.keep_for_waiters()) };
        }
    }

    /// Takes up to `wanted` blocks of a class out of the shards. For holders of a handle.
    pub(crate) fn fetch(
        &self,
        home: usize,
        class: usize,
        wanted: usize,
        give: impl FnMut(NonNull<Block>),
    ) -> usize {
        self.stock.take(home, class, wanted, give)
    }

    /// Frees idle memory until at most `target` bytes are reserved, or none is to be had: what is in the shards first, then the calling
    /// thread's cache, then those of others. `false` when a cache was not to be had. For holders of a handle.
    pub(crate) fn shrink(&self, target: usize) -> bool {
        let this = NonNull::from(self);
        let mut saw_all = true;
        for class in (0..self.settings.classes).rev() {
            let excess = self.reserved().saturating_sub(target);
            if excess == 0 {
                break;
            }
            let mut chain = Chain::new();
            saw_all &= self.stock.take_all(class, excess.div_ceil(class::bytes_of(class)), &mut chain);
            // SAFETY: the chain is ours, of this pool.
            unsafe { Self::free_chain(this, chain, Why::Trim) };
        }
        // The calling thread's first.
        let own = Node::find(self.id);
        let others = self.nodes().filter(|node| !own.is_some_and(|own| ptr::eq(own, *node)));
        for node in own.into_iter().chain(others) {
            if self.reserved() <= target {
                break;
            }
            // With somebody waiting, it is not enough to look from outside: what is put in may not be seen yet.
            if node.is_empty() && !self.is_waited_for() {
                continue;
            }
            match self.with_stacks(node, own, |node| self.take_excess(node, target)) {
                // SAFETY: the chain is ours, of this pool.
                Ok(chain) => unsafe { Self::free_chain(this, chain, Why::Trim) },
                Err(NotHad::Busy) => saw_all = false,
                // It stays with its thread, until that has seen this, which then tells those who wait.
                Err(NotHad::NoFence) => self.go_plain(),
            }
        }
        self.tell(own);
        saw_all
    }

    /// Tells those who wait when what is in the calling thread's cache was out of their reach until a moment ago. For holders of a handle.
    pub(crate) fn tell(&self, own: Option<&Node>) {
        if own.is_some_and(Node::take_news) {
            // SAFETY: the handle keeps the pool.
            unsafe { Self::notify(NonNull::from(self), Event::Put) };
        }
    }

    /// Frees what was not used since the last look, if that was `age` ago or more, and looks. For holders of a handle.
    pub(crate) fn shrink_idle(&self, age: Duration) {
        // Before the lock: it may call what is not ours.
        let own = Node::find(self.id);
        let Some(mut since) = sync::try_lock(&self.idle_since) else { return };
        let now = Instant::now();
        if since.is_some_and(|since| now.duration_since(since) < age) {
            return;
        }
        let is_first = since.replace(now).is_none();
        let mut idle = Chain::new();
        for class in 0..self.settings.classes {
            // Of a rack that was not looked at before, nothing is unused.
            idle.append(self.stock.take_unused(class));
        }
        for node in self.nodes() {
            if let Some(unused) = node.note_use()
                && !is_first
            {
                match self.with_stacks(node, own, |node| node.take_unused(&unused)) {
                    Ok(chain) => idle.append(chain),
                    Err(NotHad::Busy) => {}
                    Err(NotHad::NoFence) => self.go_plain(),
                }
            }
        }
        drop(since);
        // SAFETY: the chain is ours, of this pool.
        unsafe { Self::free_chain(NonNull::from(self), idle, Why::Trim) };
        self.tell(own);
    }

    /// Runs `f` with the stacks of a cache, the calling thread's `own` or another's. For holders of a handle.
    fn with_stacks<R>(
        &self,
        node: &Node,
        own: Option<&Node>,
        f: impl FnOnce(&Node) -> R,
    ) -> Result<R, NotHad> {
        if !own.is_some_and(|own| ptr::eq(own, node)) {
            return node.claimed(f);
        }
        if !node.enter() {
            return Err(NotHad::Busy);
        }
        let result = f(node);
        node.leave_open();
        Ok(result)
    }

    /// Takes blocks out of a cache, the largest first, as many as are over the target. For those who have the cache.
    fn take_excess(&self, node: &Node, target: usize) -> Chain {
        let mut excess = self.reserved().saturating_sub(target);
        let mut chain = Chain::new();
        for class in (0..self.settings.classes).rev() {
            while excess > 0
                && let Some(block) = node.take_one(class)
            {
                excess = excess.saturating_sub(class::bytes_of(class));
                // SAFETY: just taken.
                unsafe { chain.push(block) };
            }
        }
        chain
    }

    /// Idle blocks of a class: in the caches of threads, and in the shards.
    pub(crate) fn idle(&self, class: usize) -> (usize, usize) {
        (self.nodes().map(|node| node.count(class)).sum(), self.stock.count(class))
    }

    /// Bytes of all idle blocks, as the sizes of their classes.
    pub(crate) fn idle_bytes(&self) -> usize {
        let bytes = |class| {
            let (threads, shards) = self.idle(class);
            (threads + shards) * class::bytes_of(class)
        };
        (0..self.settings.classes).map(bytes).sum()
    }

    /// The counters of the whole pool.
    pub(crate) fn counts(&self) -> impl Iterator<Item = &Counts> {
        self.nodes().map(|node| &node.counts).chain(core::iter::once(&self.common))
    }
}

/// References to a pool's bookkeeping that are given back when this is dropped (P1).
pub(crate) struct Refs {
    shared: NonNull<Shared>,
    count: usize,
}

impl Refs {
    /// # Safety
    ///
    /// The references are the caller's, and are not used otherwise.
    pub(crate) unsafe fn new(shared: NonNull<Shared>, count: usize) -> Self {
        Self { shared, count }
    }
}

impl Drop for Refs {
    fn drop(&mut self) {
        // SAFETY: the promise of `new`, once.
        unsafe { Shared::drop_refs(self.shared, self.count) };
    }
}
