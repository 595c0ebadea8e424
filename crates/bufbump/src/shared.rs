//! What all handles of a pool, all caches and all shards of it share, and the end of a pool.
//!
//! # Invariants
//!
//! - P1: `refs` counts one for all handles together, one for each cache that a thread has, and one for each shard with memory. When
//!   it comes to zero, all of this is freed, with all headers of shards and all caches.
//! - P2: headers and caches are added to their lists, and never taken off.
//! - P3: the shards on `idle` have memory, and those on `vacant` have none; nothing is out of either, and nobody owns them.
//! - P4: nothing is acquired from a pool without handles, so its shards only lose buffers.

use alloc::boxed::Box;
use core::cell::Cell;
use core::ptr::{self, NonNull};

use bufcore::strategy::sync::{AtomicPtr, AtomicUsize, Ordering};
use bufcore::strategy::{SharedCounters, Tracker, boxed, threads};
use bufcore::{ConfigError, RegionError};

use crate::config::Settings;
use crate::local;
use crate::node::Node;
use crate::shard::{Block, Shard};
use crate::stack::Stack;

/// The pool, as seen from inside.
pub(crate) struct Shared {
    /// Handles.
    handles: AtomicUsize,
    /// P1.
    refs: AtomicUsize,
    /// The pool's number; no other pool ever has the same.
    pub(crate) id: usize,
    pub(crate) settings: Settings,
    idle: Stack,
    /// Shards on `idle`, or about to be.
    idle_shards: AtomicUsize,
    vacant: Stack,
    /// All headers (P2).
    headers: AtomicPtr<Shard>,
    /// All caches (P2).
    nodes: AtomicPtr<Node>,
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
            handles: AtomicUsize::new(1),
            refs: AtomicUsize::new(1),
            id,
            settings,
            idle: Stack::new(),
            idle_shards: AtomicUsize::new(0),
            vacant: Stack::new(),
            headers: AtomicPtr::new(ptr::null_mut()),
            nodes: AtomicPtr::new(ptr::null_mut()),
            trims: AtomicUsize::new(0),
            generation: AtomicUsize::new(0),
            counters: SharedCounters::default(),
            tracker: Tracker::default(),
        };
        boxed(shared).ok_or(ConfigError::Region(RegionError::OutOfMemory { requested: size_of::<Self>() }))
    }

    /// One more handle.
    pub(crate) fn add_handle(&self) {
        // ORDER: Relaxed: the caller's handle keeps the pool.
        self.handles.fetch_add(1, Ordering::Relaxed);
    }

    /// One handle less; the last one ends the pool.
    ///
    /// # Safety
    ///
    /// The handle is the caller's, and is not used again.
    pub(crate) unsafe fn drop_handle(this: NonNull<Self>) {
        // SAFETY: a handle keeps it valid.
        let shared = unsafe { this.as_ref() };
        // ORDER: Release pairs with the Acquire of the last: what other handles did, `taken` of their shards among it, happened
        // before the end.
        if shared.handles.fetch_sub(1, Ordering::AcqRel) == 1 {
            // SAFETY: no handle is left.
            unsafe { Self::close(this) };
        }
    }

    /// One more that keeps the bookkeeping (P1).
    pub(crate) fn add_ref(&self) {
        // ORDER: Relaxed: the caller has a reference already, or a handle.
        self.refs.fetch_add(1, Ordering::Relaxed);
    }

    /// One less that keeps the bookkeeping; the last one frees it.
    ///
    /// # Safety
    ///
    /// The reference is the caller's, and is not used again.
    pub(crate) unsafe fn drop_ref(this: NonNull<Self>) {
        // SAFETY: the reference keeps it valid.
        let shared = unsafe { this.as_ref() };
        // ORDER: Release pairs with the Acquire of the last: all uses of headers and caches happened before they are freed.
        if shared.refs.fetch_sub(1, Ordering::AcqRel) != 1 {
            return;
        }
        // ORDER: Relaxed, for both: the exchange above has ordered everything.
        let mut header = shared.headers.load(Ordering::Relaxed);
        let mut node = shared.nodes.load(Ordering::Relaxed);
        while !header.is_null() {
            // SAFETY: made by `boxed`, on one list only, and used by nobody any more (P1).
            let owned = unsafe { Box::from_raw(header) };
            header = owned.all_next.get().cast_mut();
        }
        while !node.is_null() {
            // SAFETY: likewise.
            let owned = unsafe { Box::from_raw(node) };
            node = owned.all_next.get().cast_mut();
        }
        // SAFETY: made by `boxed`, and nobody has a reference.
        drop(unsafe { Box::from_raw(this.as_ptr()) });
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
        // ORDER: Acquire pairs with the Release in `enlist`.
        let mut at = shared.nodes.load(Ordering::Acquire).cast_const();
        // SAFETY: caches are valid as long as the pool's bookkeeping (P2).
        while let Some(node) = unsafe { at.as_ref() } {
            node.close(ptr::eq(node, own));
            at = node.all_next.get();
        }
        if !own.is_null() {
            // SAFETY: the reference of this thread's cache, which is off the thread's list.
            unsafe { Self::drop_ref(this) };
        }
        // SAFETY: the handles' reference.
        unsafe { Self::drop_ref(this) };
    }

    /// Puts a new header or cache on its list, for good (P2).
    fn enlist<T>(list: &AtomicPtr<T>, item: NonNull<T>, all_next: &Cell<*const T>) {
        // ORDER: Relaxed: compared only; the exchange publishes.
        let mut head = list.load(Ordering::Relaxed);
        loop {
            all_next.set(head);
            // ORDER: Release pairs with the Acquire loads of those who walk the list; a failure publishes nothing.
            match list.compare_exchange_weak(head, item.as_ptr(), Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return,
                Err(now) => head = now,
            }
        }
    }

    /// All headers, with memory or without.
    pub(crate) fn shards(&self) -> impl Iterator<Item = &Shard> {
        // ORDER: Acquire pairs with the Release in `enlist`.
        let mut at = self.headers.load(Ordering::Acquire).cast_const();
        core::iter::from_fn(move || {
            // SAFETY: headers are valid as long as the pool's bookkeeping (P2), which is borrowed.
            let shard = unsafe { at.as_ref() }?;
            at = shard.all_next.get();
            Some(shard)
        })
    }

    /// A cache for the calling thread, which is not on its list yet; `None` when there is no memory for one. For holders of a handle.
    pub(crate) fn node(&self, token: usize) -> Option<&Node> {
        // ORDER: Acquire pairs with the Release in `enlist`.
        let mut at = self.nodes.load(Ordering::Acquire).cast_const();
        // SAFETY: caches are valid as long as the pool's bookkeeping (P2).
        while let Some(node) = unsafe { at.as_ref() } {
            if node.take(token) {
                self.add_ref();
                return Some(node);
            }
            at = node.all_next.get();
        }
        let node = boxed(Node::new(NonNull::from(self), self.id, token))?;
        // SAFETY: valid as long as the pool's bookkeeping (P2).
        let borrowed = unsafe { node.as_ref() };
        self.add_ref();
        Self::enlist(&self.nodes, node, &borrowed.all_next);
        Some(borrowed)
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
            None => {
                let header = boxed(Shard::new(NonNull::from(self)))
                    .ok_or(RegionError::OutOfMemory { requested: size_of::<Shard>() })?;
                // SAFETY: valid as long as the pool's bookkeeping (P2).
                let shard = unsafe { header.as_ref() };
                Self::enlist(&self.headers, header, &shard.all_next);
                shard
            }
        };
        // ORDER: Relaxed: memory that is as old as a `clear` at the same moment may be either.
        let generation = self.generation.load(Ordering::Relaxed);
        if let Err(refused) = shard.furnish(bytes, self.settings.alignment, generation) {
            // SAFETY: the header is the caller's alone, who gives it up.
            unsafe { self.vacant.push(shard, shard) };
            return Err(refused);
        }
        self.add_ref();
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
