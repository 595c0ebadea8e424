//! What all handles of a pool, all caches and all shards of it share, and the end of a pool.
//!
//! # Invariants
//!
//! - P1: the references of `keepers` are one for all handles together, one for each cache that a thread has, and one for each shard with
//!   memory. With the last of them all of this is freed, with all headers of shards and all caches.
//! - P2: headers and caches are added to their lists, and never taken off.
//! - P3: the shards on `idle` have memory, and those on `vacant` have none; nothing is out of either, and nobody owns them.
//! - P4: nothing is acquired from a pool without handles, so its shards only lose buffers.

use alloc::boxed::Box;
use core::ptr::{self, NonNull};

use bufcore::strategy::sync::{AtomicUsize, Ordering};
use bufcore::strategy::{Keepers, Roll, SharedCounters, Tracker, boxed, threads};
use bufcore::{ConfigError, RegionError};

use crate::config::Settings;
use crate::local;
use crate::node::Node;
use crate::shard::{Block, Shard};
use crate::stack::Stack;

/// The pool, as seen from inside.
pub(crate) struct Shared {
    /// P1.
    pub(crate) keepers: Keepers,
    /// The pool's number; no other pool ever has the same.
    pub(crate) id: usize,
    pub(crate) settings: Settings,
    idle: Stack,
    /// Shards on `idle`, or about to be.
    idle_shards: AtomicUsize,
    vacant: Stack,
    /// All headers (P2).
    headers: Roll<Shard>,
    /// All caches (P2).
    nodes: Roll<Node>,
    /// How often `trim` was called: caches that see another number than theirs trim themselves.
    pub(crate) trims: AtomicUsize,
    /// How often `clear` was called: memory from before it is freed when it is back.
    generation: AtomicUsize,
    pub(crate) counters: SharedCounters,
    pub(crate) tracker: Tracker,
}

impl Shared {
    /// A pool with one handle.
    pub(crate) fn new(settings: Settings) -> Result<NonNull<Self>, ConfigError> {
        let id = threads::new_id()?;
        let shared = Self {
            keepers: Keepers::one_handle(),
            id,
            settings,
            idle: Stack::new(),
            idle_shards: AtomicUsize::new(0),
            vacant: Stack::new(),
            headers: Roll::default(),
            nodes: Roll::default(),
            trims: AtomicUsize::new(0),
            generation: AtomicUsize::new(0),
            counters: SharedCounters::default(),
            tracker: Tracker::default(),
        };
        boxed(shared).ok_or(ConfigError::Region(RegionError::OutOfMemory { requested: size_of::<Self>() }))
    }

    /// One handle less; the last one ends the pool. What other handles did, `taken` of their shards among it, happened before the end.
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
        // SAFETY: the reference keeps it valid.
        let shared = unsafe { this.as_ref() };
        if shared.keepers.drop_refs(1) {
            // SAFETY: made by `boxed`, and nobody has a reference; nor are headers and caches used by anybody any more.
            drop(unsafe { Box::from_raw(this.as_ptr()) });
        }
    }

    /// The end of the pool: frees what nothing is out of, and leaves each other shard to its last buffer.
    ///
    /// # Safety
    ///
    /// No handle is left, and this is called once.
    unsafe fn close(this: NonNull<Self>) {
        // SAFETY: the handles' reference is given back at the end.
        let shared = unsafe { this.as_ref() };
        if cfg!(bufworks_broken = "waits") {
            let _ = (0..50_000_000).find(|_| {
                core::hint::spin_loop();
                shared.shards().all(|shard| shard.snapshot().0 == 0)
            });
        }
        // SAFETY: the chain is ours.
        unsafe { Self::free_chain(shared.idle.close()) };
        let own = local::remove(shared.id);
        shared.nodes.iter().for_each(|node| node.close(ptr::eq(node, own)));
        if !own.is_null() {
            // SAFETY: the reference of this thread's cache, which is off the thread's list.
            unsafe { Self::drop_ref(this) };
        }
        // SAFETY: the handles' reference.
        unsafe { Self::drop_ref(this) };
    }

    /// All headers, with memory or without.
    pub(crate) fn shards(&self) -> impl Iterator<Item = &Shard> {
        self.headers.iter()
    }

    /// A cache for the calling thread, which is not on its list yet; `None` when there is no memory for one. For holders of a handle.
    pub(crate) fn node(&self, token: usize) -> Option<&Node> {
        let node = match self.nodes.iter().find(|node| node.take(token)) {
            Some(node) => node,
            None => self.nodes.add(Node::new(NonNull::from(self), self.id, token))?,
        };
        self.keepers.add_ref();
        Some(node)
    }

    /// A free shard with memory for `bytes` bytes, which is the caller's alone.
    ///
    /// # Errors
    ///
    /// When there is no memory.
    pub(crate) fn fresh(&self, bytes: usize) -> Result<&Shard, RegionError> {
        // SAFETY: what is on the stack is valid (P2), and the caller's from here on.
        let shard = match unsafe { self.vacant.pop().as_ref() } {
            Some(shard) => shard,
            None => self
                .headers
                .add(Shard::new(NonNull::from(self)))
                .ok_or(RegionError::OutOfMemory { requested: size_of::<Shard>() })?,
        };
        // ORDER: Relaxed: memory that is as old as a `clear` at the same moment may be either.
        let generation = self.generation.load(Ordering::Relaxed);
        if let Err(refused) = shard.furnish(bytes, self.settings.alignment, generation) {
            // SAFETY: the header is the caller's alone, who gives it up.
            unsafe { self.vacant.push(shard, shard) };
            return Err(refused);
        }
        self.keepers.add_ref();
        Ok(shard)
    }

    /// A free shard that was used before, or null. For holders of a handle.
    pub(crate) fn idle(&self) -> *const Shard {
        let shard = self.idle.pop();
        if !shard.is_null() {
            // ORDER: Relaxed: a count.
            self.idle_shards.fetch_sub(1, Ordering::Relaxed);
        }
        shard
    }

    /// Memory for one buffer of `bytes` bytes, whatever their number. For holders of a handle.
    pub(crate) fn single(&self, bytes: usize) -> Result<NonNull<Block>, RegionError> {
        let block = self.fresh(bytes)?.single();
        // SAFETY: the start of memory is not null.
        Ok(unsafe { NonNull::new_unchecked(block) })
    }

    /// Whether the memory of a free shard is not to be used again.
    pub(crate) fn is_stale(&self, shard: &Shard) -> bool {
        // ORDER: Relaxed, as in `fresh`.
        shard.is_single() || shard.generation.get() != self.generation.load(Ordering::Relaxed)
    }

    /// Keeps a free shard for later, within the budget, or else frees it.
    ///
    /// # Safety
    ///
    /// Nothing of the shard is out, and the caller, who does not use it again, has it alone.
    pub(crate) unsafe fn come_back(shard: NonNull<Shard>) {
        // SAFETY: the shard's memory keeps its header and the pool's bookkeeping (P1).
        let header = unsafe { shard.as_ref() };
        // SAFETY: likewise.
        let shared = unsafe { header.shared().as_ref() };
        header.disown();
        if !shared.is_stale(header) {
            // ORDER: Relaxed: a count.
            if shared.idle_shards.fetch_add(1, Ordering::Relaxed) < shared.settings.idle_shards {
                // SAFETY: the caller's, who gives it up. It may be gone as soon as it is on the stack; so may the pool, if it is not
                // pushed, but for the reference of the shard.
                if unsafe { shared.idle.push(header, header) } {
                    return;
                }
            }
            // ORDER: Relaxed, as above.
            shared.idle_shards.fetch_sub(1, Ordering::Relaxed);
        }
        // SAFETY: the caller's promise.
        unsafe { Self::free(shard) };
    }

    /// Frees the memory of a free shard.
    ///
    /// # Safety
    ///
    /// As for [`come_back`](Self::come_back).
    pub(crate) unsafe fn free(shard: NonNull<Shard>) {
        // SAFETY: the shard's memory keeps its header and the pool's bookkeeping, until the end of this function (P1).
        let header = unsafe { shard.as_ref() };
        let this = header.shared();
        header.disown();
        header.strip();
        // SAFETY: valid, as above.
        let shared = unsafe { this.as_ref() };
        // SAFETY: the header is the caller's alone, who gives it up.
        unsafe { shared.vacant.push(header, header) };
        // SAFETY: the reference of the memory that is gone.
        unsafe { Self::drop_ref(this) };
    }

    /// Frees the memory of a chain of free shards.
    ///
    /// # Safety
    ///
    /// As for [`come_back`](Self::come_back), for each; the pool's bookkeeping is kept by the caller.
    pub(crate) unsafe fn free_chain(first: *const Shard) -> usize {
        let (mut at, mut count) = (first, 0);
        while let Some(shard) = NonNull::new(at.cast_mut()) {
            // SAFETY: the caller's chain.
            at = unsafe { shard.as_ref() }.next();
            // SAFETY: likewise.
            unsafe { Self::free(shard) };
            count += 1;
        }
        count
    }

    /// Frees the idle shards of the pool, not those of caches. For holders of a handle.
    pub(crate) fn free_idle(&self) {
        // SAFETY: what was taken is ours, and free (P3).
        let count = unsafe { Self::free_chain(self.idle.take()) };
        // ORDER: Relaxed: a count.
        self.idle_shards.fetch_sub(count, Ordering::Relaxed);
    }

    /// Makes all memory that there is stale.
    pub(crate) fn outdate(&self) {
        // ORDER: Relaxed, as in `fresh`.
        self.generation.fetch_add(1, Ordering::Relaxed);
    }
}
