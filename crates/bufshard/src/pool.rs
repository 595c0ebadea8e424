//! The pool, as its users hold it.

use core::fmt;
use core::ptr::NonNull;
use core::time::Duration;

use bufcore::{AcquireError, Buf, BufferPool, ConfigError, PoolStats, SplitLease};

use crate::Builder;
use crate::block::Block;
use crate::chain::Chain;
use crate::class::{self, class_of};
use crate::config::Settings;
use crate::counts::{Tier, Why};
use crate::lease::ShardLease;
use crate::node::Node;
use crate::shared::Shared;
use crate::stats::ShardStats;

/// A pool of owned buffers in size classes, from a cache of each thread over shards that all threads share. See the
/// [crate documentation](crate).
///
/// It is a handle: clones share one pool, which ends with the last of them. Buffers do not need it any more.
///
/// Threads: any number acquire and release, through clones or through a shared reference.
pub struct ShardPool {
    /// Valid while this handle lives.
    shared: NonNull<Shared>,
    /// `Shared::id`, here for the fast path.
    id: usize,
}

// SAFETY: what handles share is made for any thread (`shared`).
unsafe impl Send for ShardPool {}
// SAFETY: likewise; an acquire uses what is the calling thread's.
unsafe impl Sync for ShardPool {}

/// A block for a request, with what is known of it.
pub(crate) struct Found {
    pub(crate) block: NonNull<Block>,
    tier: Tier,
}

/// Why there is none.
pub(crate) struct Refused {
    pub(crate) error: AcquireError,
    /// A cache could not be looked into: to look again soon may help.
    pub(crate) again: bool,
}

/// Whose turn it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Turn {
    /// A request like any other: while somebody waits, it gets what is idle, and no budget.
    Any,
    /// That of the first who waits.
    First,
    /// One for later: it gets budget that nobody has or waits for, and nothing idle makes room for it.
    Spare,
}

impl From<AcquireError> for Refused {
    fn from(error: AcquireError) -> Self {
        Self { error, again: false }
    }
}

impl From<Refused> for AcquireError {
    fn from(refused: Refused) -> Self {
        refused.error
    }
}

impl ShardPool {
    /// A pool with the default settings.
    ///
    /// Cost: see [`Builder::build`]; memory for buffers is taken when it is first needed.
    ///
    /// # Errors
    ///
    /// See [`Builder::build`].
    pub fn new() -> Result<Self, ConfigError> {
        Self::builder().build()
    }

    /// All settings.
    #[must_use]
    pub fn builder() -> Builder {
        Builder::default()
    }

    pub(crate) fn with(settings: Settings) -> Result<Self, ConfigError> {
        let shared = Shared::new(settings)?;
        // SAFETY: just made, with one handle, which this is.
        let id = unsafe { shared.as_ref() }.id;
        Ok(Self { shared, id })
    }

    #[inline]
    pub(crate) fn shared(&self) -> &Shared {
        // SAFETY: valid while this handle lives.
        unsafe { self.shared.as_ref() }
    }

    /// Takes one empty buffer with room for `capacity` bytes, as [`BufferPool::acquire`] does, through a shared reference.
    ///
    /// Contents: the filled part is empty; what [`Buf::spare_mut`] shows is recycled, unless the pool wipes.
    /// Cost: some twenty plain instructions and no locked one, when the thread's cache has a buffer of the size class; otherwise two
    /// locked instructions for some buffers from a shard, and at last an allocation. A request that is not pooled is an allocation of its
    /// own, zeroed by the allocator.
    ///
    /// # Errors
    ///
    /// [`AcquireError::TooLarge`] for what cannot exist or is over the [`max_bytes`](Builder::max_bytes), [`AcquireError::Exhausted`] for what is
    /// over it now, [`AcquireError::OutOfMemory`] when the allocator refuses.
    ///
    /// ```
    /// use bufshard::ShardPool;
    ///
    /// let pool = ShardPool::new()?;
    /// let first = pool.acquire(100)?;
    /// let address = first.as_ptr();
    /// drop(first);
    /// assert_eq!(pool.acquire(110)?.as_ptr(), address); // of one class; the newest is used again while it is hot
    /// # Ok::<(), bufshard::bufcore::Error>(())
    /// ```
    #[inline(always)]
    #[cfg_attr(feature = "track", track_caller)]
    pub fn acquire(&self, capacity: usize) -> Result<Buf<ShardLease>, AcquireError> {
        let class = class_of(capacity);
        if let Some(node) = Node::recall(self.id)
            && let Some(block) = node.pop(class)
        {
            node.counts.acquired(Tier::Thread, class, class::counted_bytes(class));
            return Ok(self.hand_out(block, capacity));
        }
        // Taken apart and put together, so that what comes back in memory does not force the other case there too.
        #[allow(clippy::needless_question_mark, reason = "see above")]
        Ok(self.acquire_elsewhere(capacity)?)
    }

    /// Takes one buffer with `len` filled bytes, all zero, as [`BufferPool::acquire_zeroed`] does, through a shared reference.
    ///
    /// Cost: zeroing on top of [`acquire`](Self::acquire), but for memory that comes zeroed from the allocator.
    ///
    /// # Errors
    ///
    /// As [`acquire`](Self::acquire).
    #[cfg_attr(feature = "track", track_caller)]
    pub fn acquire_zeroed(&self, len: usize) -> Result<Buf<ShardLease>, AcquireError> {
        if len == 0 {
            return self.acquire(0);
        }
        let Found { block, tier } = self.find(len, Turn::Any)?;
        let mut buf = self.hand_out(block, len);
        if !matches!(tier, Tier::Fresh | Tier::Single) {
            buf.spare_mut()[..len].fill(0);
        }
        buf.commit(len);
        Ok(buf)
    }

    /// The buffer in a block that was just taken.
    #[inline(always)]
    #[cfg_attr(feature = "track", track_caller)]
    pub(crate) fn hand_out(&self, block: NonNull<Block>, capacity: usize) -> Buf<ShardLease> {
        // SAFETY: the bytes behind the header are the block's alone until its release (`block`, K2), as many as were asked for at the
        // least, and initialised (K1).
        let buf = unsafe { Buf::from_raw_parts(Block::start(block), capacity, ShardLease::of(block)) };
        self.shared().tracker.attach(buf)
    }

    /// Serves a request that the thread's cache cannot, and one of no bytes.
    #[cold]
    #[inline(never)]
    #[cfg_attr(feature = "track", track_caller)]
    fn acquire_elsewhere(&self, bytes: usize) -> Result<Buf<ShardLease>, AcquireError> {
        if bytes == 0 {
            // Aligned as all others are.
            let nowhere = core::ptr::without_provenance_mut(self.shared().settings.alignment_of(bytes));
            let start = NonNull::new(nowhere).unwrap_or(NonNull::dangling());
            // SAFETY: no bytes are claimed.
            let buf = unsafe { Buf::from_raw_parts(start, 0, ShardLease::nothing()) };
            return Ok(self.shared().tracker.attach(buf));
        }
        let found = self.find(bytes, Turn::Any)?;
        Ok(self.hand_out(found.block, bytes))
    }

    /// A block for a request of at least one byte, wherever there is one.
    pub(crate) fn find(&self, bytes: usize, turn: Turn) -> Result<Found, Refused> {
        let shared = self.shared();
        let limit = shared.settings.max_capacity();
        if bytes > limit {
            return Err(AcquireError::TooLarge { requested: bytes, limit }.into());
        }
        let class = class_of(bytes);
        let node = self.own_node();
        if let Some(node) = node {
            // Whatever the fast path announced.
            node.settle();
        }
        let counts = node.map_or(&shared.common, |node| &node.counts);
        let found = if shared.settings.is_pooled(class) {
            self.find_pooled(node, class, bytes, turn)?
        } else {
            Found { block: shared.single(bytes, turn)?, tier: Tier::Single }
        };
        counts.look_at_others(shared.counts());
        // SAFETY: just taken.
        let bytes = unsafe { found.block.as_ref() }.counted_bytes();
        counts.acquired(found.tier, class, bytes);
        Ok(found)
    }

    /// The calling thread's cache, made if there is none, where the fast paths find it.
    #[inline(always)]
    fn own_node(&self) -> Option<&Node> {
        if let Some(node) = Node::recall(self.id)
            && !node.is_round_due()
        {
            return Some(node);
        }
        self.look_up_node()
    }

    /// The same by way of the thread's list, which lets go of caches of pools that are gone.
    #[cold]
    #[inline(never)]
    fn look_up_node(&self) -> Option<&Node> {
        let node = self.shared().node_or_new()?;
        node.remember();
        Some(node)
    }

    /// A block of a class: from the thread's cache, from the shards with others for the cache, or new.
    fn find_pooled(
        &self,
        node: Option<&Node>,
        class: usize,
        bytes: usize,
        turn: Turn,
    ) -> Result<Found, Refused> {
        let shared = self.shared();
        let home = node.map_or(0, Node::home);
        let mut found = None;
        let entered = node.filter(|node| node.enter());
        if let Some(block) = entered.and_then(|node| node.take_one(class)) {
            found = Some(Found { block, tier: Tier::Thread });
        } else {
            let cache = entered.filter(|node| !node.is_waited());
            let wanted = cache.map_or(1, |_| shared.settings.thread_limit(class).max(1));
            shared.fetch(home, class, wanted, |block| {
                if found.is_none() {
                    found = Some(Found { block, tier: Tier::Shard });
                } else if let Some(node) = cache {
                    // SAFETY: just taken out of the shards of this pool.
                    let is_kept = unsafe { node.put_one(class, block) };
                    debug_assert!(
                        is_kept,
                        "the cache had nothing of the class, and is asked to keep less than its limit"
                    );
                }
            });
        }
        if let Some(node) = entered {
            node.leave_open();
        }
        shared.tell(node);
        if let Some(found) = found {
            return Ok(found);
        }
        let block = shared.pooled(class, bytes, turn)?;
        shared.prepare_node();
        Ok(Found { block, tier: Tier::Fresh })
    }

    /// Puts blocks into the cache that was entered, and returns those that it has no room for.
    fn fill(node: &Node, class: usize, mut chain: Chain) -> Chain {
        if node.is_waited() {
            return chain;
        }
        let mut rest = Chain::new();
        while let Some(block) = chain.pop() {
            // SAFETY: a block of the chain is ours, and of this pool.
            if !unsafe { node.put_one(class, block) } {
                // SAFETY: not taken, so still ours.
                unsafe { rest.push(block) };
            }
        }
        rest
    }

    /// Allocates buffers for requests of `size` bytes, and keeps them for any thread: in the shards, and where those are full in the calling
    /// thread's cache. Returns how many are kept; what there is no room for, there or in the [`max_bytes`](Builder::max_bytes), is not allocated, and
    /// nothing that is idle makes room.
    ///
    /// Their pages are written once, so that no first use has to wait for the system.
    ///
    /// # Errors
    ///
    /// [`AcquireError::TooLarge`] for sizes that are not pooled, with [`largest_pooled`](Self::largest_pooled) as the limit;
    /// [`AcquireError::OutOfMemory`] when the allocator refuses, and what was allocated until then is kept.
    ///
    /// ```
    /// use bufshard::ShardPool;
    ///
    /// let pool = ShardPool::new()?;
    /// assert_eq!(pool.preallocate(8, 1 << 20)?, 8);
    /// assert!(pool.stats().reserved_bytes >= 8 << 20);
    /// # Ok::<(), bufshard::bufcore::Error>(())
    /// ```
    pub fn preallocate(&self, count: usize, size: usize) -> Result<usize, AcquireError> {
        let shared = self.shared();
        let class = class_of(size);
        if !shared.settings.is_pooled(class) {
            return Err(AcquireError::TooLarge { requested: size, limit: self.largest_pooled() });
        }
        let length = shared.settings.thread_limit(class).max(1);
        let mut kept = 0;
        while kept < count {
            let mut chain = Chain::new();
            let mut refused = None;
            for _ in 0..length.min(count - kept) {
                match shared.pooled(class, size, Turn::Spare) {
                    Ok(block) => {
                        // SAFETY: just made, so ours.
                        unsafe { Block::touch(block) };
                        // SAFETY: likewise.
                        unsafe { chain.push(block) };
                    }
                    Err(why) => {
                        refused = Some(why.error);
                        break;
                    }
                }
            }
            let made = chain.len();
            let rest = self.keep(class, chain);
            kept += made - rest.len();
            shared.common.preallocated(class, made - rest.len());
            let is_full = !rest.is_empty();
            // SAFETY: the rest is ours, of this pool.
            unsafe { Shared::free_chain(self.shared, rest, Why::Uncounted) };
            match refused {
                Some(AcquireError::Exhausted { .. }) => break,
                Some(error) => return Err(error),
                None if is_full => break,
                None => {}
            }
        }
        Ok(kept)
    }

    /// Puts a chain into a shard, or into the calling thread's cache, and returns what there is no room for.
    fn keep(&self, class: usize, mut chain: Chain) -> Chain {
        let shared = self.shared();
        let node = shared.node_or_new();
        let rest = shared.put(node.map_or(0, Node::home), class, || chain.pop());
        // SAFETY: the handle keeps the pool.
        unsafe { Shared::was_put(self.shared, Chain::new(), shared.keep_for_waiters()) };
        match node {
            Some(node) if node.enter() => {
                let rest = Self::fill(node, class, rest);
                node.leave_open();
                shared.tell(Some(node));
                rest
            }
            _ => rest,
        }
    }

    /// What a request takes of the budget at the least.
    pub(crate) fn need(&self, bytes: usize) -> usize {
        let settings = &self.shared().settings;
        let class = class_of(bytes);
        let bytes = if settings.is_pooled(class) { class::bytes_of(class) } else { bytes };
        Block::total(bytes, settings.alignment_of(bytes), 0)
    }

    /// The largest request that is pooled, in bytes; 0 when the [`max_bytes`](Builder::max_bytes) has no room for the smallest class.
    #[must_use]
    pub fn largest_pooled(&self) -> usize {
        self.shared().settings.classes.checked_sub(1).map_or(0, class::bytes_of)
    }

    /// Frees the memory that holds no buffers: in the shards, and in the caches of all threads, of those too that do nothing.
    ///
    /// No thread is stopped. One whose cache is being looked at takes the slow path for the moment. One that is in the midst of a request
    /// or a release just then keeps what it has.
    ///
    /// Cost: the allocator's for each block that goes, a look at every shard, and for each cache with something in it a system call
    /// (`membarrier`, on Linux).
    pub fn trim(&self) {
        self.trim_to(0);
    }

    /// Frees memory that holds no buffers, as [`trim`](Self::trim) does, until the pool holds at most `bytes` bytes: the largest first, from
    /// the shards, then from the calling thread's cache, then from those of others.
    pub fn trim_to(&self, bytes: usize) {
        let _saw_all = self.shared().shrink(bytes);
    }

    /// Frees memory that was not used for `age`: of each cache the size classes of which the thread neither took nor gave any, and of the
    /// shards as many blocks as were too many all the time.
    ///
    /// To be called from time to time. Nothing is stamped when buffers come and go; the pool is looked at by the calls themselves: one that
    /// comes `age` or more after the last that looked compares, frees, and notes what it sees; one that comes earlier does nothing, and the
    /// first only notes. So what is freed was idle for `age` at the least, and what is idle goes after twice that, if the calls come often
    /// enough.
    ///
    /// Cost: nothing for most calls; otherwise a look at every cache, and as [`trim`](Self::trim) for those with something to free.
    ///
    /// ```
    /// use core::time::Duration;
    /// use bufshard::ShardPool;
    ///
    /// let pool = ShardPool::new()?;
    /// drop(pool.acquire(100_000)?);
    /// pool.trim_idle(Duration::ZERO); // notes
    /// pool.trim_idle(Duration::ZERO); // not used since
    /// assert_eq!(pool.stats().reserved_bytes, 0);
    /// # Ok::<(), bufshard::bufcore::Error>(())
    /// ```
    pub fn trim_idle(&self, age: Duration) {
        self.shared().shrink_idle(age);
    }

    /// Lets the high-water marks of the statistics start again, from what is out now. The other counters are never set back:
    /// [`PoolStats::since`] is their difference.
    ///
    /// With threads at work, what one acquires at this very moment may be missed. Without the `stats` feature it does nothing.
    ///
    /// Cost: a look at every cache.
    pub fn reset_high_water(&self) {
        if cfg!(feature = "stats") {
            let (shared, now) = (self.shared(), self.stats());
            shared.counts().for_each(|counts| counts.set_high_water(0, 0));
            shared.common.set_high_water(now.in_use, now.in_use_bytes);
        }
    }

    /// What the pool has done and holds, by tier and by size class. [`ShardStats`] says how the numbers add up.
    ///
    /// The counters are zero unless the `stats` feature is on; what is idle and reserved is known without it. The list of classes is
    /// empty when there is no memory for it.
    ///
    /// Cost: a look at every cache and at the shards with something in them, and an allocation. Nobody is stopped by that.
    ///
    /// ```
    /// use bufshard::ShardPool;
    ///
    /// let pool = ShardPool::new()?;
    /// pool.preallocate(3, 1 << 20)?;
    /// drop(pool.acquire(1000)?);
    /// let stats = pool.shard_stats();
    /// assert_eq!((stats.thread_idle, stats.shard_idle), (1, 3));
    /// assert_eq!(stats.idle_bytes, 1024 + 3 * (1 << 20));
    /// # Ok::<(), bufshard::bufcore::Error>(())
    /// ```
    #[must_use]
    pub fn shard_stats(&self) -> ShardStats {
        ShardStats::of(self.shared())
    }

    /// What the pool has done and holds, as [`BufferPool::stats`] does. `reserved_bytes`, which counts headers too, and `idle_bytes`, which
    /// does not, are known without the `stats` feature. `fallbacks` are the requests for sizes that are not pooled.
    ///
    /// Cost: a look at every cache and at the shards with something in them. Nobody is stopped by that.
    #[must_use]
    pub fn stats(&self) -> PoolStats {
        let shared = self.shared();
        let mut stats = PoolStats::default();
        shared.counts().for_each(|counts| counts.add_to(&mut stats));
        stats.reserved_bytes = shared.reserved();
        stats.idle_bytes = shared.idle_bytes();
        stats
    }

    /// The largest request, in bytes, that can ever succeed.
    #[must_use]
    pub fn max_capacity(&self) -> usize {
        self.shared().settings.max_capacity()
    }

    /// The buffers that are out, longest first: where and when each was acquired.
    #[cfg(feature = "track")]
    #[must_use]
    pub fn outstanding(&self) -> alloc::vec::Vec<bufcore::Outstanding> {
        self.shared().tracker.outstanding()
    }
}

impl BufferPool for ShardPool {
    type Lease = ShardLease;

    /// Cost: see [`ShardPool::acquire`].
    ///
    /// # Source
    ///
    /// Caches of threads over shards after ZeroPool, and magazines over a depot (Bonwick and Adams 2001).
    #[inline(always)]
    fn acquire(&mut self, capacity: usize) -> Result<Buf<ShardLease>, AcquireError> {
        Self::acquire(self, capacity)
    }

    fn acquire_zeroed(&mut self, len: usize) -> Result<Buf<ShardLease>, AcquireError> {
        Self::acquire_zeroed(self, len)
    }

    fn max_capacity(&self) -> usize {
        Self::max_capacity(self)
    }

    fn stats(&self) -> PoolStats {
        Self::stats(self)
    }
}

/// A shared pool serves through a shared reference, as `std::io::Read` is there for `&File`.
impl BufferPool for &ShardPool {
    type Lease = ShardLease;

    #[inline(always)]
    fn acquire(&mut self, capacity: usize) -> Result<Buf<ShardLease>, AcquireError> {
        ShardPool::acquire(self, capacity)
    }

    fn acquire_zeroed(&mut self, len: usize) -> Result<Buf<ShardLease>, AcquireError> {
        ShardPool::acquire_zeroed(self, len)
    }

    fn max_capacity(&self) -> usize {
        ShardPool::max_capacity(self)
    }

    fn stats(&self) -> PoolStats {
        ShardPool::stats(self)
    }
}

impl Clone for ShardPool {
    /// Another handle of the same pool.
    ///
    /// Cost: one locked instruction.
    ///
    /// # Panics
    ///
    /// With more handles than half of what a `usize` counts, nearly all of which were forgotten (`mem::forget`).
    fn clone(&self) -> Self {
        self.shared().keepers.add_handle();
        Self { ..*self }
    }
}

impl Drop for ShardPool {
    /// The last handle frees all that holds no buffers, in the caches of all threads, and leaves the rest to its buffers. Never waits.
    fn drop(&mut self) {
        // SAFETY: this handle, once.
        unsafe { Shared::drop_handle(self.shared) };
    }
}

impl fmt::Debug for ShardPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ShardPool")
            .field("largest_pooled", &self.largest_pooled())
            .field("reserved_bytes", &self.stats().reserved_bytes)
            .finish_non_exhaustive()
    }
}
