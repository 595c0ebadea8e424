//! All headers of shards that a pool has, and those of them that nobody owns.
//!
//! A header is made when there is none without memory, and goes with the pool, or in a `trim`.
//! Until then it is used again.
//!
//! # Invariants
//!
//! - H1: the headers on the stack `Idle` have memory, and those on `Vacant` have none; nothing is
//!   out of either, and nobody owns them.
//! - H2: each header is on the list from `first` on, once, or on the list from `leaving` on, and
//!   then it was vacant, and is on no stack.
//! - H3: a header is freed by whoever has locked `leaving`, after it was taken off the list, and
//!   when nobody visits. A *visit* is a use of headers that the visitor does not own. It begins
//!   with its count, then a full fence, then the first look. A header is taken off the list and off
//!   its stack, then comes a full fence, then the look at the count. So either the visitor does not
//!   find the header, or its visit is seen.
//! - H4: with the lock of `leaving` comes the right to take headers off the list. Others add to the
//!   front of the list only.
//! - H5: a header is freed by the pointer that it was made with, which only the list has. All
//!   others may come from references.

mod large;

use alloc::boxed::Box;
use core::mem;
use core::ptr::{self, NonNull};

use bufcore::author::try_box;
use bufkit::sync::{AtomicPtr, AtomicUsize, Mutex, Ordering, fence, lock, try_lock};

pub(crate) use self::large::CLASSES;
use self::large::Large;
use crate::shard::{Chain, Shard};
use crate::stack::{Stacks, Which};

/// Shards with memory that nobody owns.
pub(crate) const IDLE: Which = Which::First;
/// Headers without memory.
const VACANT: Which = Which::Second;

/// How often a trim looks whether somebody visits, before it leaves the headers to the next one.
const LOOKS: usize = 64;

/// The headers of a pool.
pub(crate) struct Depot {
    stacks: Stacks<Shard>,
    /// Pieces larger than a shard, with memory, that nobody owns.
    large: Large,
    /// The newest (H2).
    first: AtomicPtr<Shard>,
    /// How many are on the list, or were a moment ago.
    count: AtomicUsize,
    /// Visits at this moment (H3).
    visitors: AtomicUsize,
    /// Headers that are about to be freed (H2, H4).
    leaving: Mutex<Chain>,
}

/// A visit (H3), until it is dropped.
#[must_use = "the visit ends otherwise"]
pub(crate) struct Visit<'a>(&'a AtomicUsize);

impl Drop for Visit<'_> {
    fn drop(&mut self) {
        // ORDER: Release pairs with the Acquire in `is_unvisited`: this visit's accesses happened
        // before the headers are freed.
        self.0.fetch_sub(1, Ordering::Release);
    }
}

impl Depot {
    pub(crate) fn new() -> Self {
        Self {
            stacks: Stacks::new(),
            large: Large::new(),
            first: AtomicPtr::new(ptr::null_mut()),
            count: AtomicUsize::new(0),
            visitors: AtomicUsize::new(0),
            leaving: Mutex::default(),
        }
    }

    /// Begins a use of headers that the caller does not own (H3). It calls no code of others.
    pub(crate) fn visit(&self) -> Visit<'_> {
        // ORDER: Relaxed: the fence orders it before the first look (H3).
        self.visitors.fetch_add(1, Ordering::Relaxed);
        // ORDER: SeqCst pairs with the fence in `is_unvisited`.
        fence(Ordering::SeqCst);
        Visit(&self.visitors)
    }

    /// Returns whether nobody visits what the caller took off the list and the stacks before (H3).
    fn is_unvisited(&self) -> bool {
        // ORDER: SeqCst pairs with the fence in `visit`.
        fence(Ordering::SeqCst);
        // ORDER: Acquire pairs with the Release at the end of a visit.
        self.visitors.load(Ordering::Acquire) == 0
    }

    /// Takes one header off a stack. The caller holds a handle.
    fn pop(&self, which: Which) -> Option<NonNull<Shard>> {
        let _visit = self.visit();
        // SAFETY: stacks are closed when there is no handle, and no header is freed during a visit
        // (H3).
        unsafe { self.stacks.pop(which) }
    }

    /// Takes a free shard with memory, if there is one. The caller holds a handle.
    pub(crate) fn idle(&self) -> Option<NonNull<Shard>> {
        self.pop(IDLE)
    }

    /// Takes a header without memory, or adds the one that `make` makes; it is the caller's alone.
    /// Returns `None` when there is no header and no memory for one. The caller holds a handle.
    pub(crate) fn vacant(&self, make: impl FnOnce() -> Shard) -> Option<&Shard> {
        let header = match self.pop(VACANT) {
            Some(header) => header,
            None => self.add(make())?,
        };
        // SAFETY: valid until it is given up, which is after the borrow: it is the caller's.
        Some(unsafe { header.as_ref() })
    }

    /// Adds a new header to the list.
    fn add(&self, header: Shard) -> Option<NonNull<Shard>> {
        let header = try_box(header)?;
        // ORDER: Relaxed: a count.
        self.count.fetch_add(1, Ordering::Relaxed);
        // SAFETY: just made, and not freed before it is vacant.
        let shard = unsafe { header.as_ref() };
        // Now, as loom dates what is made back to the thread's last use of an atomic.
        #[cfg(all(test, loom))]
        shard.life.write();
        // ORDER: Relaxed: compared only; the exchange publishes.
        let mut first = self.first.load(Ordering::Relaxed);
        loop {
            // ORDER: Relaxed: the exchange publishes it.
            shard.rare().older.store(first, Ordering::Relaxed);
            // ORDER: Release pairs with the Acquire in `each` and `unlist`: the header is complete.
            // A failure publishes nothing.
            match self.first.compare_exchange_weak(
                first,
                header.as_ptr(),
                Ordering::Release,
                Ordering::Relaxed,
            ) {
                Ok(_) => return Some(header),
                Err(now) => first = now,
            }
        }
    }

    /// Puts a shard with memory where others find it; `false` when the pool is gone, and then it is
    /// still the caller's. The shard kept all of this, so it comes by pointer.
    ///
    /// # Safety
    ///
    /// The shard is free and the caller's, who does not use it again when this returns `true`. It
    /// keeps the bookkeeping until then, of which `this` is a part.
    pub(crate) unsafe fn keep(this: NonNull<Self>, shard: NonNull<Shard>) -> bool {
        // SAFETY: valid until the shard is kept.
        let stacks = unsafe { &(*this.as_ptr()).stacks };
        // SAFETY: the caller's promise; it is valid until it is vacant, popped, and freed.
        unsafe { stacks.push(IDLE, shard) }
    }

    /// Makes room for pieces, if there is memory for it. The caller holds a handle. The allocator
    /// may use the pool.
    pub(crate) fn expect_pieces(&self) {
        self.large.make();
    }

    /// Puts a piece of a class where others find it; `false` when there is no place, or the pool is
    /// gone, and then it is still the caller's.
    ///
    /// # Safety
    ///
    /// As for [`keep`](Self::keep).
    pub(crate) unsafe fn keep_piece(this: NonNull<Self>, piece: NonNull<Shard>, class: usize) -> bool {
        // SAFETY: valid until the piece is kept.
        let large = unsafe { &(*this.as_ptr()).large };
        // SAFETY: the caller's promise.
        unsafe { large.keep(piece, class) }
    }

    /// Takes a free piece for a request of a class, if there is one. The caller holds a handle.
    pub(crate) fn piece(&self, class: usize) -> Option<NonNull<Shard>> {
        self.large.take(class)
    }

    /// Takes a free piece of any class. The caller holds a handle.
    pub(crate) fn any_piece(&self) -> Option<NonNull<Shard>> {
        self.large.take_any()
    }

    /// Takes the pieces that nobody needed since the last call.
    ///
    /// # Safety
    ///
    /// The caller has a handle, and visits.
    pub(crate) unsafe fn take_unused_pieces(&self, chain: &mut Chain) {
        // SAFETY: the caller's promise.
        unsafe { self.large.take_unused(chain) };
    }

    /// Counts the pieces that are kept, as far as can be seen. The caller holds a handle.
    pub(crate) fn kept_pieces(&self) -> usize {
        self.large.count()
    }

    /// Puts a header without memory where others find it.
    ///
    /// # Safety
    ///
    /// As for [`keep`](Self::keep), except that something else keeps the bookkeeping.
    pub(crate) unsafe fn vacate(&self, shard: NonNull<Shard>) {
        // SAFETY: the caller's promise; it is valid until it is popped and freed.
        let is_open = unsafe { self.stacks.push(VACANT, shard) };
        debug_assert!(is_open, "this stack is never closed");
    }

    /// Closes the depot at the end of the pool, so that no shard is kept any more. Adds those that
    /// were kept to `chain`.
    ///
    /// # Safety
    ///
    /// No handle of the pool is left.
    pub(crate) unsafe fn close(&self, chain: &mut Chain) {
        // SAFETY: what was on the stack is free and nobody's (H1).
        let link = |shard: NonNull<Shard>| unsafe { chain.push(shard) };
        // SAFETY: only holders of a handle pop.
        unsafe { self.stacks.close(IDLE, link) };
        self.large.close(chain);
    }

    /// Shows each header to `f`, which uses atomics only, and no code of others, until it has a
    /// header alone.
    pub(crate) fn each(&self, mut f: impl FnMut(&Shard)) {
        let _visit = self.visit();
        // ORDER: Acquire pairs with the Release in `add`: headers are complete. For each, since a
        // trim may have put it there.
        let mut at = self.first.load(Ordering::Acquire);
        // SAFETY: found during a visit (H3).
        while let Some(shard) = unsafe { at.as_ref() } {
            #[cfg(all(test, loom))]
            shard.life.read();
            f(shard);
            // ORDER: Acquire, as above.
            at = shard.rare().older.load(Ordering::Acquire);
        }
    }

    /// Takes vacant headers off, and returns those that nobody may look at any more: they are the
    /// caller's, to be freed. The caller holds a handle.
    ///
    /// Never waits: while somebody visits, or takes headers off as well, there may be none. What
    /// was taken off then is for the next call.
    pub(crate) fn take_off(&self) -> Chain {
        let Some(mut rights) = try_lock(&self.leaving) else { return Chain::new() };
        let mut leaving = mem::take(&mut *rights);
        // At most one trim's worth is leaving, so this is bounded, however often somebody visits.
        if leaving.is_empty() && self.is_unvisited() && self.mark_vacant() {
            self.unlist(&mut leaving);
        }
        if !(0..LOOKS).any(|_| self.is_unvisited()) {
            leaving = mem::replace(&mut *rights, leaving);
        }
        leaving
    }

    /// Takes and marks the headers that are vacant now. Returns whether there are some.
    fn mark_vacant(&self) -> bool {
        let mut is_some = false;
        // ORDER: Relaxed: a bound, so that this ends while others vacate headers all the time.
        for _ in 0..self.count.load(Ordering::Relaxed) {
            let Some(header) = self.pop(VACANT) else { break };
            // SAFETY: the caller's now.
            unsafe { header.as_ref() }.rare().is_leaving.set(true);
            is_some = true;
        }
        is_some
    }

    /// Takes what is marked off the list (H4), to `chain`: by the list's own pointers (H5).
    fn unlist(&self, chain: &mut Chain) {
        let mut link = &self.first;
        loop {
            // ORDER: Acquire pairs with the Release in `add`.
            let at = link.load(Ordering::Acquire);
            let Some(header) = NonNull::new(at) else { return };
            // SAFETY: on the list, and nobody else takes off (H4).
            let shard = unsafe { header.as_ref() };
            #[cfg(all(test, loom))]
            shard.life.read();
            // Marks are set and read by who has the right to; new headers have none.
            if !shard.rare().is_leaving.get() {
                link = &shard.rare().older;
                continue;
            }
            // ORDER: Relaxed: written by `add`, or here.
            let older = shard.rare().older.load(Ordering::Relaxed);
            // ORDER: Release, so that what is behind it is seen as it was published; Relaxed as the
            // loop looks again. It fails where new headers come to the front: then these come
            // first.
            if link.compare_exchange(at, older, Ordering::Release, Ordering::Relaxed).is_err() {
                link = &self.first;
                continue;
            }
            // ORDER: Relaxed: a count.
            self.count.fetch_sub(1, Ordering::Relaxed);
            // SAFETY: vacant and marked, so nobody else uses its link.
            unsafe { chain.push(header) };
        }
    }

    /// Frees headers that were taken off. The allocator is others' code, so nothing may be held.
    ///
    /// # Safety
    ///
    /// They are from [`take_off`](Self::take_off).
    pub(crate) unsafe fn free(mut chain: Chain) {
        // SAFETY: vacant, and nobody's but the caller's.
        while let Some(header) = unsafe { chain.pop() } {
            // SAFETY: made by `try_box`, on no list or stack, and nobody looks at it (H3, H5).
            let header = unsafe { Box::from_raw(header.as_ptr()) };
            #[cfg(all(test, loom))]
            header.life.write();
            debug_assert!(header.is_alone(), "K1");
        }
    }
}

impl Drop for Depot {
    fn drop(&mut self) {
        // ORDER: Relaxed: whoever has them alone has seen all that was done with them.
        let mut at = self.first.load(Ordering::Relaxed);
        while !at.is_null() {
            // SAFETY: made by `try_box`, on the list once, and nobody uses it any more.
            let header = unsafe { Box::from_raw(at) };
            // ORDER: Relaxed, as above.
            at = header.rare().older.load(Ordering::Relaxed);
        }
        // SAFETY: taken off the list, and nobody visits.
        unsafe { Self::free(mem::take(&mut *lock(&self.leaving))) };
    }
}
