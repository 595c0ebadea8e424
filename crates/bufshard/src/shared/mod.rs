//! The bookkeeping that all handles, caches and blocks of a pool share, and the end of a pool.
//!
//! # Invariants
//!
//! - P1: `ref_counts` has one reference for all handles together, one for each weak handle, and one
//!   for each block, and one for each cache that a thread has. With the last of them all of this is
//!   freed, with all caches.
//! - P2: caches are added to their list, and never taken off.
//! - P3: the pages of `heap` are at least the bytes of all blocks, and at most the budget.
//! - P4: nothing is acquired from a pool without handles, so nothing is taken out of its caches and
//!   shards except to be freed.
//! - P5: `charged` is the bytes of the slots that all magazines have, and at most the setting.

mod blocks;
mod budget;
mod bytes;
mod caches;
mod waits;

use core::ptr::NonNull;
use std::time::Instant;

use bufcore::author::Tracker;
use bufcore::{ConfigError, RegionError};
use bufkit::sync::Mutex;
use bufkit::{GrowthSignal, Handle, PageHeap, PageSource, PoolCore, RefCounts, Registry, thread_cache};

use crate::block::Block;
use crate::cache::ThreadCache;
use crate::class;
use crate::counts::{Counts, Why};
use crate::depot::Depot;
use crate::settings::Settings;
use crate::sync::{self, AtomicU32, AtomicUsize, CountU32, CountUsize};
use crate::wait_queue::WaitQueue;

/// References to a pool's bookkeeping (P1).
pub(crate) type CoreRef = bufkit::CoreRef<Shared>;

/// What is behind it starts at a cache line, of those that are fetched in pairs.
#[repr(align(128))]
struct NewLines;

/// The pool, as seen from inside. Its first cache lines have what releases read and nobody writes.
#[repr(C)]
pub(crate) struct Shared {
    /// The pool's number; no other pool ever has the same.
    pub(crate) id: usize,
    pub(crate) settings: Settings,
    _rest: NewLines,
    /// What blocks are made of (P3).
    pub(crate) heap: PageHeap,
    /// P1.
    pub(crate) ref_counts: RefCounts,
    /// Not 0 when the system gives no fence for claims of caches, or not any more, so that threads
    /// keep nothing.
    is_disabled: AtomicU32,
    pub(crate) depot: Depot,
    /// All caches (P2).
    caches: Registry<ThreadCache>,
    /// How many caches were made: the next one's first shard.
    homes: AtomicUsize,
    /// Not 0 when a thread that releases found no cache.
    is_uncached: CountU32,
    /// What caches may keep in the slots that they have, in bytes (`cache::growth`).
    charged: CountUsize,
    /// Looks of `trim_idle`.
    looks: CountU32,
    /// How many coloured blocks were made.
    pub(crate) colours: AtomicUsize,
    pub(crate) wait_queue: WaitQueue,
    /// When `trim_idle` last looked.
    pub(crate) idle_since: Mutex<Option<Instant>>,
    /// Wakes a keeper that sleeps, when the pool has grown.
    pub(crate) growth: GrowthSignal,
    /// What is done without a cache.
    pub(crate) common: Counts,
    pub(crate) tracker: Tracker,
}

impl Shared {
    /// Makes a pool, and returns its first handle.
    pub(crate) fn new(settings: Settings, source: PageSource) -> Result<Handle<Self>, ConfigError> {
        let id = thread_cache::new_id()?;
        let refused = ConfigError::Region(RegionError::OutOfMemory { requested: size_of::<Self>() });
        let shared = Self {
            id,
            _rest: NewLines,
            heap: PageHeap::new(source, settings.max_bytes),
            settings,
            ref_counts: RefCounts::one_handle(),
            is_disabled: AtomicU32::new(u32::from(!sync::has_heavy_fence())),
            depot: Depot::new(),
            caches: Registry::default(),
            homes: AtomicUsize::new(0),
            is_uncached: CountU32::new(0),
            charged: CountUsize::new(0),
            looks: CountU32::new(0),
            colours: AtomicUsize::new(0),
            wait_queue: WaitQueue::new(),
            idle_since: Mutex::default(),
            growth: GrowthSignal::default(),
            common: Counts::common(),
            tracker: Tracker::default(),
        };
        Handle::new(shared).ok_or(refused)
    }

    /// Returns the bookkeeping of the pool that made a block, which keeps it (`block`, K3). The
    /// block is in no chain.
    #[inline(always)]
    pub(crate) fn of(block: &Block) -> NonNull<Self> {
        block.link().cast()
    }

    /// Returns the number of the pool that made a block.
    #[inline(always)]
    pub(crate) fn id_of(block: &Block) -> usize {
        let shared = Self::of(block).as_ptr();
        // SAFETY: the block keeps it (`block`, K3); the field never changes. By its place, as
        // everything else may change at this moment.
        unsafe { (*shared).id }
    }

    /// Iterates over all caches.
    pub(crate) fn caches(&self) -> impl Iterator<Item = &ThreadCache> {
        self.caches.iter()
    }

    /// Counts the idle blocks of a class: in the caches of threads, and in the shards.
    pub(crate) fn idle(&self, class: usize) -> (usize, usize) {
        (self.caches().map(|cache| cache.count(class)).sum(), self.depot.count(class))
    }

    /// Returns the bytes of all blocks in caches and shards, as the sizes of their classes.
    pub(crate) fn idle_bytes(&self) -> usize {
        let bytes = |class| {
            let (threads, shards) = self.idle(class);
            (threads + shards) * class::bytes_of(class)
        };
        (0..self.settings.classes).map(bytes).sum()
    }

    /// Iterates over the counters of the whole pool.
    pub(crate) fn counts(&self) -> impl Iterator<Item = &Counts> {
        self.caches().map(|cache| &cache.counts).chain(core::iter::once(&self.common))
    }
}

// SAFETY: what threads share is atomic or locked. A part that is one thread's, a cache or an open
// bin, has one user at a time (`cache`, N1; `depot`, T1). Blocks may be freed on any thread.
unsafe impl Send for Shared {}
// SAFETY: likewise; an acquire uses what is the calling thread's.
unsafe impl Sync for Shared {}

// SAFETY: one field, which nobody but this crate reaches; what is taken is what was added.
unsafe impl PoolCore for Shared {
    #[inline]
    fn ref_counts(&self) -> &RefCounts {
        &self.ref_counts
    }

    /// Ends the pool: frees all idle memory, and leaves the rest to its buffers.
    unsafe fn close(this: NonNull<Self>) {
        // SAFETY: the handles' reference is given back at the end.
        let shared = unsafe { this.as_ref() };
        // SAFETY: the chains are ours; the handles' reference keeps the pool.
        shared.depot.close(|chain| unsafe { Self::free_chain(this, chain, Why::Uncounted) });
        // SAFETY: the number is this pool's, and what its caches need is done below.
        let own = NonNull::new(unsafe { thread_cache::remove(shared.id) }.cast_mut());
        shared.caches().for_each(ThreadCache::close);
        if let Some(own) = own {
            // SAFETY: the pool is gone, and the cache off this thread's list.
            unsafe { ThreadCache::on_pool_closed(own) };
        }
        let is_heavy = sync::heavy_fence(false);
        shared.caches().for_each(|cache| cache.empty_closed(is_heavy));
        shared.heap.end();
    }
}
