//! The bookkeeping that all handles, all caches and all shards of a pool share, and the end of a
//! pool.
//!
//! # Invariants
//!
//! - P1: the references of `ref_counts` are one for all handles together, one for each cache that a
//!   thread has, and one for each shard with memory. With the last of them all of this is freed,
//!   with all headers of shards and all caches.
//! - P2: caches are added to their list, and never taken off. Headers are as `depot` says.
//! - P3: the allocator is others' code, and may use the pool or end it. Code that calls it holds no
//!   lock and no link into a cache, and keeps the bookkeeping by a handle, or by the reference of
//!   what it frees.
//! - P4: nothing is acquired from a pool without handles, so its shards only lose buffers.

use core::ptr::{self, NonNull};
use std::time::Instant;

use bufcore::author::Tracker;
use bufcore::{ConfigError, Region, RegionError};
use bufkit::orphan::{Methods, Orphan};
use bufkit::sync::{AtomicBool, Mutex, Ordering};
use bufkit::{GrowthSignal, Handle, PoolCore, PoolProvider, RefCounts, Registry, thread_cache};

use crate::budget::Budget;
use crate::cache::{ThreadCache, local};
use crate::counters::Counters;
use crate::depot::Depot;
use crate::settings::Settings;
use crate::shard::{Chain, Shard};

/// References to a pool's bookkeeping (P1).
pub(crate) type CoreRef = bufkit::CoreRef<Shared>;

// What a pool costs. For tests alone: where the pool is used, another package may have turned more
// features of `bufcore` on.
#[cfg(test)]
const _: () =
    assert!(cfg!(any(loom, shuttle, feature = "stats", feature = "track")) || size_of::<Shared>() <= 320);

/// The pool, as seen from inside.
pub(crate) struct Shared {
    /// P1.
    pub(crate) ref_counts: RefCounts,
    /// The pool's number; no other pool ever has the same.
    pub(crate) id: usize,
    pub(crate) settings: Settings,
    /// Where shards and larger pieces have their pages from, if the program supplies them.
    source: PoolProvider,
    /// All headers, and the idle shards among them.
    pub(crate) depot: Depot,
    pub(crate) budget: Budget,
    /// All caches (P2).
    pub(crate) caches: Registry<ThreadCache>,
    /// When `trim_idle` last looked, if it did. With the lock comes the right to look, at the lists
    /// of threads too.
    pub(crate) idle_since: Mutex<Option<Instant>>,
    /// Whether `trim_idle` ever looked: somebody wants unneeded memory to go.
    pub(crate) is_watched: AtomicBool,
    pub(crate) counters: Counters,
    pub(crate) tracker: Tracker,
    /// Wakes keepers when the pool takes memory.
    pub(crate) growth: GrowthSignal,
}

impl Shared {
    /// Makes a pool, and returns its first handle.
    pub(crate) fn new(settings: Settings, source: PoolProvider) -> Result<Handle<Self>, ConfigError> {
        let id = thread_cache::new_id()?;
        let shared = Self {
            ref_counts: RefCounts::one_handle(),
            id,
            settings,
            source,
            depot: Depot::new(),
            budget: Budget::new(settings.max_idle_bytes),
            caches: Registry::default(),
            idle_since: Mutex::default(),
            is_watched: AtomicBool::new(false),
            counters: Counters::default(),
            tracker: Tracker::default(),
            growth: GrowthSignal::default(),
        };
        Handle::new(shared)
            .ok_or(ConfigError::Region(RegionError::OutOfMemory { requested: size_of::<Self>() }))
    }

    /// Returns the bookkeeping of a shard's pool, which is there while the shard has memory
    /// (`shard`, B3).
    pub(crate) fn of(shard: &Shard) -> NonNull<Self> {
        shard.pool().cast()
    }

    /// Makes a free shard with memory for `bytes` bytes, which is the caller's alone.
    ///
    /// # Errors
    ///
    /// When there is no memory.
    pub(crate) fn fresh(&self, bytes: usize) -> Result<&Shard, RegionError> {
        let layout = self.settings.layout(bytes)?;
        let shard = self
            .depot
            .vacant(|| Shard::new(NonNull::from(self).cast(), &METHODS))
            .ok_or(RegionError::OutOfMemory { requested: size_of::<Shard>() })?;
        if let Err(refused) = shard.attach_memory(&layout, &self.source) {
            // SAFETY: the header is the caller's alone, who gives it up.
            unsafe { self.depot.vacate(NonNull::from(shard)) };
            return Err(refused);
        }
        self.ref_counts.add_ref();
        Ok(shard)
    }

    /// Takes a free shard that was used before, if there is one. The caller holds a handle.
    pub(crate) fn idle(&self) -> Option<NonNull<Shard>> {
        let shard = self.depot.idle()?;
        self.budget.give_back_shard(self.settings.shard_idle_bytes);
        Some(shard)
    }

    /// Keeps a free shard for later, within the budget, or else frees it.
    ///
    /// # Safety
    ///
    /// Nothing of the shard is out, and the caller, who does not use it again, has it alone.
    pub(crate) unsafe fn recycle(shard: NonNull<Shard>) {
        // SAFETY: the shard's memory keeps its header and the pool's bookkeeping (P1).
        let header = unsafe { shard.as_ref() };
        header.clear_owner();
        let keep = if header.is_dedicated() { Self::keep_dedicated } else { Self::keep_shard };
        // SAFETY: the caller's, who gives it up.
        if unsafe { keep(Self::of(header), shard) } {
            return;
        }
        let mut chain = Chain::new();
        // SAFETY: the caller's, who gives it up.
        unsafe { chain.push(shard) };
        // SAFETY: the caller's promise.
        unsafe { Self::free_all(chain, false) };
    }

    /// Keeps a free shard for any thread, within the budget; `false` when it is still the caller's.
    ///
    /// # Safety
    ///
    /// As for [`recycle`](Self::recycle). When it is kept, it may be gone at once, and the pool
    /// with it.
    unsafe fn keep_shard(this: NonNull<Self>, shard: NonNull<Shard>) -> bool {
        // SAFETY: the shard's memory keeps the bookkeeping, until it is kept (P1).
        let shared = unsafe { this.as_ref() };
        let bytes = shared.settings.shard_idle_bytes;
        if !shared.budget.take_shard(bytes) {
            return false;
        }
        // SAFETY: the caller's promise.
        let is_kept = unsafe { Depot::keep(NonNull::from(&shared.depot), shard) };
        if !is_kept {
            shared.budget.give_back_shard(bytes);
        }
        is_kept
    }

    /// Keeps a piece, if it has the size of a class. Returns whether it is kept.
    ///
    /// # Safety
    ///
    /// As for [`keep_shard`](Self::keep_shard).
    unsafe fn keep_dedicated(this: NonNull<Self>, piece: NonNull<Shard>) -> bool {
        // SAFETY: as in `keep_shard`.
        let shared = unsafe { this.as_ref() };
        // SAFETY: the caller's, until it is kept.
        let header = unsafe { piece.as_ref() };
        let (size, bytes) = (header.size(), header.held());
        let Some((class, of_class)) = shared.settings.large_class(size) else { return false };
        if of_class != size || !shared.budget.take(bytes) {
            return false;
        }
        // SAFETY: the caller's promise.
        let is_kept = unsafe { shared.depot.large.keep(piece, class) };
        if !is_kept {
            shared.budget.give_back(bytes);
        }
        is_kept
    }

    /// Frees the memory of a free shard, or of one that was taken from a thread's list.
    ///
    /// # Safety
    ///
    /// As for [`recycle`](Self::recycle).
    pub(crate) unsafe fn free(shard: NonNull<Shard>) {
        // SAFETY: the shard's memory keeps its header and the pool's bookkeeping, until the end of
        // this function (P1).
        let header = unsafe { shard.as_ref() };
        let this = Self::of(header);
        header.clear_owner();
        header.detach_memory();
        // SAFETY: valid, as above.
        let shared = unsafe { this.as_ref() };
        // SAFETY: the memory was the caller's alone, and the header is not used again there.
        if !unsafe { Shard::yield_header(shard) } {
            // SAFETY: the header is the caller's alone.
            #[cfg(all(test, loom))]
            unsafe { shard.as_ref() }.links.write();
            // SAFETY: the header is the caller's alone, who gives it up.
            unsafe { shared.depot.vacate(shard) };
        }
        // SAFETY: the reference of the memory that is gone.
        drop(unsafe { CoreRef::new(this, 1) });
    }

    /// Returns the least number of bytes of freed memory that is passed on to the system.
    ///
    /// Trimmed memory always is. What else is freed may be needed again at once, so the allocator
    /// gets it, as long as nobody looks after the memory.
    fn least_returned(&self, is_trimmed: bool) -> usize {
        if is_trimmed {
            return 0;
        }
        // ORDER: Relaxed: a hint.
        if self.is_watched.load(Ordering::Relaxed) { Region::LARGE_BYTES } else { usize::MAX }
    }

    /// Frees the memory of free shards. Memory that was trimmed reaches the system; see
    /// `least_returned` for other memory.
    ///
    /// # Safety
    ///
    /// As for [`recycle`](Self::recycle), for each.
    pub(crate) unsafe fn free_all(mut chain: Chain, is_trimmed: bool) {
        // SAFETY: the caller's shards.
        while let Some(shard) = unsafe { chain.pop() } {
            // SAFETY: the shard's memory keeps its header.
            let this = Self::of(unsafe { shard.as_ref() });
            // SAFETY: and the pool's bookkeeping (P1).
            let least = unsafe { this.as_ref() }.least_returned(is_trimmed);
            // SAFETY: as above; the memory is the caller's alone.
            unsafe { shard.as_ref() }.free_to_system(least);
            // SAFETY: the caller's promise.
            unsafe { Self::free(shard) };
        }
    }

    /// Keeps or frees free shards.
    ///
    /// # Safety
    ///
    /// As for [`recycle`](Self::recycle), for each.
    pub(crate) unsafe fn recycle_all(mut chain: Chain) {
        // SAFETY: the caller's shards.
        while let Some(shard) = unsafe { chain.pop() } {
            // SAFETY: the caller's promise.
            unsafe { Self::recycle(shard) };
        }
    }
}

// SAFETY: what threads share is atomic. A thread's cache and the shard that it carves have that
// thread as their one user (`cache`, `shard`), and shards may be freed on any thread.
unsafe impl Send for Shared {}
// SAFETY: likewise; an acquire uses what is the calling thread's.
unsafe impl Sync for Shared {}

// SAFETY: one field, which nobody but this crate reaches; what is taken is what was added.
unsafe impl PoolCore for Shared {
    #[inline]
    fn ref_counts(&self) -> &RefCounts {
        &self.ref_counts
    }

    /// Ends the pool: frees what nothing is out of, and leaves each other shard to its last buffer.
    unsafe fn close(this: NonNull<Self>) {
        // SAFETY: the handles' reference is given back at the end.
        let shared = unsafe { this.as_ref() };
        let (mut free, mut orphans) = (Chain::new(), Chain::new());
        // SAFETY: no handle is left.
        unsafe { shared.depot.close(&mut free) };
        let own = local::remove(shared.id);
        shared.caches.iter().for_each(|cache| cache.close(ptr::eq(cache, own), &mut free, &mut orphans));
        // Here ends what must not be disturbed: from here on the allocator is called, and others'
        // `try_free`.
        if !own.is_null() {
            // SAFETY: the reference of this thread's cache, which is off the thread's list.
            drop(unsafe { CoreRef::new(this, 1) });
        }
        // SAFETY: nothing is out of these, and they are ours alone.
        unsafe { Self::free_all(free, true) };
        // SAFETY: valid, until they are adopted.
        while let Some(shard) = unsafe { orphans.pop() } {
            // SAFETY: orphaned by `ThreadCache::close`, and not used again.
            unsafe { Shard::defer_free(shard) };
        }
    }
}

/// How the list of orphans uses a shard.
static METHODS: Methods = Methods { count_missed, free };

/// Returns how many buffers of an orphaned shard were released without being counted.
///
/// # Safety
///
/// As [`Methods`] says: `orphan` is the first field of a valid `Shard`, which was orphaned.
unsafe fn count_missed(orphan: NonNull<Orphan>) -> usize {
    // SAFETY: the caller's promise; only atomics are used that may change.
    unsafe { orphan.cast::<Shard>().as_ref() }.count_missed()
}

/// Frees an orphaned shard of which nothing is out.
///
/// # Safety
///
/// As [`Methods`] says: `orphan` is the first field of an adopted `Shard`, and nobody else uses it.
unsafe fn free(orphan: NonNull<Orphan>) {
    // SAFETY: nothing is out and the pool is gone, so nobody uses the shard again.
    unsafe { Shared::free(orphan.cast()) };
}
