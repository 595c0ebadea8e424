//! The bookkeeping that all handles, all caches and all memory of a pool share, and the end of a
//! pool.
//!
//! # Invariants
//!
//! - P1: the references of `ref_counts` are one for all handles together, one for each cache that a
//!   thread has, one for each shard with memory, and one for each buffer with a span of its own, in
//!   use or kept by a thread. With the last of them all of this is freed, with all headers of
//!   shards, all caches, and the heap.
//! - P2: caches are added to their list, and never taken off. Headers are as `depot` says.
//! - P3: the allocator and providers are others' code, and may use the pool or end it. Code that
//!   calls them holds no lock and no link into a cache, and keeps the bookkeeping by a handle, or
//!   by the reference of what it frees.
//! - P4: nothing is acquired from a pool without handles, so its shards only lose buffers.
//! - P5: `idle_bytes` is at least what the pool keeps in free pages, but for those whose release
//!   has not added them yet. What of them and of idle shards is over the budget is looked at, by
//!   one thread at a time, and freed.

use core::mem::offset_of;
use core::ptr::{self, NonNull};
use std::time::Instant;

use bufcore::author::Tracker;
use bufcore::{AcquireError, ConfigError, RegionError};
use bufkit::orphan::{Methods, Orphan};
use bufkit::sync::{AtomicUsize, Mutex, Ordering, fences, lock};
use bufkit::{GrowthSignal, Handle, PageHeap, PageSource, PoolCore, RefCounts, Registry, Span, thread_cache};

use crate::cache::{ThreadCache, local};
use crate::counters::Counters;
use crate::depot::Depot;
use crate::settings::Settings;
use crate::shard::{Block, Chain, Shard};

/// A kept buffer serves requests that leave at most one part in so many of it unused.
const LARGER_PART: usize = 4;

/// References to a pool's bookkeeping (P1).
pub(crate) type CoreRef = bufkit::CoreRef<Shared>;

/// The pool, as seen from inside.
pub(crate) struct Shared {
    /// P1.
    pub(crate) ref_counts: RefCounts,
    /// The pool's number; no other pool ever has the same.
    pub(crate) id: usize,
    pub(crate) settings: Settings,
    /// Whether the system has the fence with which others use the caches of threads (`biased`).
    is_biased: bool,
    /// In place of the shard of a buffer that has a span of its own. No thread owns it.
    apart: Shard,
    /// All memory for buffers.
    pub(crate) heap: PageHeap,
    /// All headers, and the idle shards among them.
    pub(crate) depot: Depot,
    /// Of free pages (P5).
    idle_bytes: AtomicUsize,
    /// Held by who counts what is idle.
    counting: Mutex<()>,
    /// Buffers with a span of their own, those that threads keep among them.
    pub(crate) large: AtomicUsize,
    /// All caches (P2).
    pub(crate) caches: Registry<ThreadCache>,
    /// When `trim_idle` last looked, if it did. With the lock comes the right to look, at the lists
    /// of threads too.
    pub(crate) idle_since: Mutex<Option<Instant>>,
    pub(crate) counters: Counters,
    pub(crate) tracker: Tracker,
    /// Wakes keepers when the pool takes memory.
    pub(crate) growth: GrowthSignal,
}

impl Shared {
    /// Makes a pool, and returns its first handle.
    pub(crate) fn new(settings: Settings, source: PageSource) -> Result<Handle<Self>, ConfigError> {
        let id = thread_cache::new_id()?;
        let shared = Self {
            ref_counts: RefCounts::one_handle(),
            id,
            settings,
            is_biased: fences::has_heavy(),
            apart: Shard::new(NonNull::dangling(), &METHODS),
            // What is in use is not bounded. With a limit the heap leaves free pages to this.
            heap: PageHeap::new(source, isize::MAX as usize),
            depot: Depot::default(),
            idle_bytes: AtomicUsize::new(0),
            counting: Mutex::default(),
            large: AtomicUsize::new(0),
            caches: Registry::default(),
            idle_since: Mutex::default(),
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

    /// Returns the pool's bookkeeping, of which this is `apart`.
    ///
    /// # Safety
    ///
    /// It is, from a pointer to all of it.
    pub(crate) unsafe fn of_apart(apart: NonNull<Shard>) -> NonNull<Self> {
        // SAFETY: the caller's promise.
        unsafe { apart.byte_sub(offset_of!(Self, apart)) }.cast()
    }

    /// Makes a free shard, which is the caller's alone, for a request of `bytes` bytes. The caller
    /// holds a handle.
    ///
    /// # Errors
    ///
    /// When there is no memory.
    pub(crate) fn fresh(&self, bytes: usize) -> Result<&Shard, AcquireError> {
        let refused = AcquireError::OutOfMemory { requested: bytes };
        let header = self.depot.vacant(|| Shard::new(NonNull::from(self).cast(), &METHODS));
        let header = header.ok_or(refused)?;
        let Settings { span_bytes, alignment, .. } = self.settings;
        let Ok(span) = self.heap.take(span_bytes, alignment) else {
            // SAFETY: the header is the caller's alone, who gives it up.
            unsafe { self.depot.vacate(NonNull::from(header)) };
            return Err(refused);
        };
        // SAFETY: just taken, of as many bytes as the settings say.
        unsafe { header.attach_memory(span, self.settings.first(), alignment - 1) };
        self.ref_counts.add_ref();
        Ok(header)
    }

    /// Makes a cache that no thread has.
    pub(crate) fn new_cache(&self) -> ThreadCache {
        ThreadCache::new(NonNull::from(self), self.id, self.is_biased)
    }

    /// Takes the block of the buffer with a span of its own that the thread kept, for a request of
    /// at least one byte, if it is large enough and not too large. The caller holds a handle.
    #[inline(always)]
    pub(crate) fn take_kept(&self, bytes: usize) -> Option<NonNull<Block>> {
        if bytes <= self.settings.shard_bytes {
            return None;
        }
        let needed = bytes.saturating_add(self.settings.lead);
        let kept = local::recall(self.id)?.take_large(needed, needed / LARGER_PART)?;
        // SAFETY: just taken, so this thread's alone; with it comes its reference.
        unsafe { Block::reuse(kept) };
        Some(kept)
    }

    /// Makes the block of a buffer with a span of its own. The caller holds a handle.
    ///
    /// # Errors
    ///
    /// When there is no memory.
    pub(crate) fn take_large(&self, bytes: usize) -> Result<NonNull<Block>, AcquireError> {
        // One that the thread kept did not fit, and its pages are as good as any.
        if let Some(kept) = self.cache_here(bytes)?.and_then(|cache| cache.take_large(0, usize::MAX)) {
            // SAFETY: just taken, so this thread's alone.
            unsafe { Self::free_large(kept) };
        }
        // No overflow: at most `Settings::max_capacity`.
        let needed = bytes + self.settings.lead;
        let span = self.heap.take(needed, self.settings.alignment);
        let span = span.map_err(|_refused| AcquireError::OutOfMemory { requested: bytes })?;
        self.ref_counts.add_ref();
        // ORDER: Relaxed: a count.
        self.large.fetch_add(1, Ordering::Relaxed);
        // SAFETY: a field of this.
        let apart = unsafe { NonNull::from(self).byte_add(offset_of!(Self, apart)) }.cast();
        // SAFETY: just taken; the reference is the buffer's.
        Ok(unsafe { Block::of_span(span, apart) })
    }

    /// Keeps the memory of a buffer with a span of its own for the thread, which may have one that
    /// is within the budget of idle memory, or else frees it.
    ///
    /// # Safety
    ///
    /// The buffer of `block` has such a span, is being released, and nobody uses its bytes again.
    /// `apart` is the block's owner.
    pub(crate) unsafe fn release_large(block: NonNull<Block>, apart: NonNull<Shard>) {
        // SAFETY: the caller's promise.
        let this = unsafe { Self::of_apart(apart) };
        // SAFETY: the buffer's reference keeps the bookkeeping.
        let shared = unsafe { this.as_ref() };
        // SAFETY: likewise.
        let len = unsafe { Block::span_bytes(block) };
        let is_kept = len <= shared.settings.max_idle_bytes
            && local::recall(shared.id).is_some_and(|cache| cache.keep_large(block, len));
        if !is_kept {
            // SAFETY: the caller's promise.
            unsafe { Self::free_large(block) };
        }
    }

    /// Frees the memory of a buffer with a span of its own.
    ///
    /// # Safety
    ///
    /// The buffer of `block` has such a span, was released, and the caller has it alone.
    pub(crate) unsafe fn free_large(block: NonNull<Block>) {
        // SAFETY: the caller's promise.
        let this = unsafe { Block::pool_ptr(block) };
        // SAFETY: likewise.
        let span = unsafe { Block::span(block) };
        // SAFETY: the buffer's reference, which keeps the bookkeeping up to here.
        let core = unsafe { CoreRef::new(this, 1) };
        // SAFETY: valid, as above.
        let shared = unsafe { this.as_ref() };
        #[cfg(all(test, loom))]
        crate::tests::loom::goes(&testkit::models::Shadow::default());
        // ORDER: Relaxed: a count.
        shared.large.fetch_sub(1, Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { shared.give(span) };
        drop(core);
    }

    /// Gives a span to the heap, and frees what is idle over the budget. The caller has a
    /// reference.
    ///
    /// # Safety
    ///
    /// The span is the pool's, and nobody uses it again.
    unsafe fn give(&self, span: Span) {
        // SAFETY: the caller's promise.
        let bytes = unsafe { span.len() };
        // SAFETY: likewise.
        unsafe { self.heap.give(span) };
        // ORDER: Relaxed: a count.
        let idle = self.idle_bytes.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
        if idle > self.idle_room() {
            self.keep_budget();
        }
    }

    /// Counts what is idle, and gives free pages over the budget back to the system.
    #[cold]
    #[inline(never)]
    pub(crate) fn keep_budget(&self) {
        let over = self.count_idle();
        if over > 0 {
            self.heap.trim(self.heap.stats().resident_bytes.saturating_sub(over));
            self.count_idle();
        }
    }

    /// What the pool takes for idle.
    #[cfg(all(test, loom))]
    pub(crate) fn counted_idle(&self) -> usize {
        // ORDER: Relaxed: read after all threads were joined.
        self.idle_bytes.load(Ordering::Relaxed) + self.depot.idle_count() * self.settings.span_bytes
    }

    /// Returns how many bytes of free pages the budget has room for, beside the idle shards.
    fn idle_room(&self) -> usize {
        // No overflow: they are memory.
        let of_shards = self.depot.idle_count() * self.settings.span_bytes;
        self.settings.max_idle_bytes.saturating_sub(of_shards)
    }

    /// Counts what is idle, and returns by how many bytes of free pages that is over the budget.
    fn count_idle(&self) -> usize {
        // One at a time: what is too much is taken off once.
        let _counting = lock(&self.counting);
        // ORDER: Relaxed: a count. What others add from here on stays added.
        let before = self.idle_bytes.load(Ordering::Relaxed);
        let dirty = self.heap.stats().dirty_bytes;
        // ORDER: Relaxed: likewise.
        self.idle_bytes.fetch_sub(before.saturating_sub(dirty), Ordering::Relaxed);
        dirty.saturating_sub(self.idle_room())
    }

    /// Keeps a free shard for any thread, within the budget, or else frees it.
    ///
    /// # Safety
    ///
    /// Nothing of the shard is out, and the caller, who does not use it again, has it alone. The
    /// caller keeps the bookkeeping, or the pool's end has closed the depot.
    pub(crate) unsafe fn recycle(shard: NonNull<Shard>) {
        // SAFETY: the shard's memory keeps its header and the pool's bookkeeping (P1).
        let header = unsafe { shard.as_ref() };
        let this = Self::of(header);
        // SAFETY: the shard's reference keeps it, up to the depot, and the caller does so further.
        let shared = unsafe { this.as_ref() };
        header.clear_owner();
        // ORDER: Relaxed: a count.
        let of_pages = shared.idle_bytes.load(Ordering::Relaxed);
        let room = shared.settings.max_idle_bytes.saturating_sub(of_pages);
        // SAFETY: the caller's promise.
        if unsafe { shared.depot.keep(shard, shared.settings.span_bytes, room) } {
            // Pages may have come meanwhile, from one who did not see the shard.
            // ORDER: Relaxed: likewise.
            if shared.idle_bytes.load(Ordering::Relaxed) > shared.idle_room() {
                shared.keep_budget();
            }
        } else {
            // SAFETY: the shard's reference, once, and given back last.
            let _core = unsafe { CoreRef::new(this, 1) };
            // SAFETY: the caller's promise.
            unsafe { shared.strip(shard, true) };
        }
    }

    /// Gives the memory of a free shard to the heap, and keeps the header for the next one. Returns
    /// the bytes. With `within_budget`, memory over it is freed to the system. The caller has a
    /// reference.
    ///
    /// # Safety
    ///
    /// As for [`recycle`](Self::recycle); what the reference of the shard is for is the caller's.
    unsafe fn strip(&self, shard: NonNull<Shard>, within_budget: bool) -> usize {
        // SAFETY: the caller's, and headers are valid (`depot`, H2).
        let header = unsafe { shard.as_ref() };
        header.clear_owner();
        let span = header.detach_memory();
        // SAFETY: the header is the caller's alone, who gives it up.
        unsafe { self.depot.vacate(shard) };
        let Some(span) = span else { return 0 };
        // SAFETY: just detached.
        let bytes = unsafe { span.len() };
        if within_budget {
            // SAFETY: nobody uses it, as the caller promises.
            unsafe { self.give(span) };
        } else {
            // SAFETY: likewise.
            unsafe { self.heap.give(span) };
        }
        bytes
    }

    /// Gives the memory of free shards to the heap, where it stays. Returns the bytes.
    ///
    /// # Safety
    ///
    /// As for [`recycle`](Self::recycle), for each.
    pub(crate) unsafe fn free_all(mut chain: Chain) -> usize {
        let mut bytes = 0;
        // SAFETY: the caller's shards.
        while let Some(shard) = unsafe { chain.pop() } {
            // SAFETY: the shard's memory keeps its header.
            let this = Self::of(unsafe { shard.as_ref() });
            // SAFETY: the shard's reference, which keeps the bookkeeping up to here (P1).
            let core = unsafe { CoreRef::new(this, 1) };
            // SAFETY: valid, as above.
            let shared = unsafe { this.as_ref() };
            // SAFETY: the caller's promise.
            bytes += unsafe { shared.strip(shard, false) };
            drop(core);
        }
        bytes
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
        shared.depot.close();
        shared.depot.take_idle(false, &mut free);
        let own = local::remove(shared.id);
        let is_own = |cache: &ThreadCache| ptr::eq(cache, own);
        let close = |others, cache: &ThreadCache| others | cache.close() & !is_own(cache);
        let is_fenced = !shared.caches.iter().fold(false, close) || fences::heavy(false);
        for cache in shared.caches.iter() {
            cache.empty_closed(is_own(cache), is_fenced, &mut free, &mut orphans);
        }
        // Here ends what must not be disturbed: from here on a provider is called, and others'
        // `try_free`.
        if !own.is_null() {
            // SAFETY: the reference of this thread's cache, which is off the thread's list.
            drop(unsafe { CoreRef::new(this, 1) });
        }
        // SAFETY: nothing is out of these, and they are ours alone.
        unsafe { Self::free_all(free) };
        let take = |cache: &ThreadCache| cache.take_closed(is_own(cache) || is_fenced);
        for kept in shared.caches.iter().filter_map(take) {
            // SAFETY: likewise.
            unsafe { Self::free_large(kept) };
        }
        shared.heap.end();
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
    let mut chain = Chain::new();
    // SAFETY: adopted, so valid and the caller's.
    unsafe { chain.push(orphan.cast()) };
    // SAFETY: nothing is out and the pool is gone, so nobody uses the shard again.
    unsafe { Shared::free_all(chain) };
}
