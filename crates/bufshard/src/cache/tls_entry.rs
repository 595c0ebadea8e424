//! The entry: it is on a thread's list for a cache, and is left of the cache while the pool is gone
//! and the thread sleeps.
//!
//! ```text
//!  flags    HELD      a thread has the cache
//!           CLOSED    the pool is gone
//!           PLAIN     as in the cache's `word`: for the thread, when it may look there no more
//!           ENDING    the thread ends: it keeps its reference to the bookkeeping until it says
//!                     otherwise
//!           DRAINED   a thread empties, or has emptied, the cache, and gives the reference of the
//!                     cache's thread back (`cache`, N5)
//!           LET_GO    the thread has let go of the entry;  ORPHANED   the cache is gone
//! ```
//!
//! # Invariants
//!
//! - B1: an entry is freed by the second of its thread and its cache (`LET_GO`, `ORPHANED`), or by
//!   the cache while no thread has it.
//! - B2: the cache is valid while the bookkeeping exists. Holders of a handle or a block know that
//!   it does. The thread knows it from when it has set `ENDING` or `DRAINED`, and found `DRAINED`
//!   not set, until it gives its reference back.
//! - B3: `DRAINED` is set only once the pool is gone, and by the pool's end only while `ENDING` is
//!   not set.

use alloc::boxed::Box;
use core::ptr::NonNull;

use bufcore::author::try_box;
use bufkit::thread_cache::Cache;

use super::{ThreadCache, shutdown};
use crate::sync::{AtomicU32, Ordering};

const HELD: u32 = 1;
pub(super) const CLOSED: u32 = 2;
pub(super) const PLAIN: u32 = 4;
const ENDING: u32 = 8;
const DRAINED: u32 = 16;
const LET_GO: u32 = 32;
const ORPHANED: u32 = 64;

/// See the head of the file. A search of the thread's list reads its first cache line and no
/// other.
#[repr(C, align(64))]
pub(super) struct TlsEntry {
    /// Its value is the address of the cache (B2). That is written before a thread has the cache.
    head: Cache,
    flags: AtomicU32,
    /// In models: an entry that is never freed is reported.
    #[cfg(all(test, loom))]
    _freed: loom::sync::Arc<()>,
    /// Stands for this, to the model checker.
    #[cfg(all(test, loom))]
    shadow: buftest::models::Shadow,
}

impl TlsEntry {
    /// Makes an entry that has no cache yet; returns `None` when there is no memory.
    pub(super) fn new(id: usize, is_plain: bool) -> Option<NonNull<Self>> {
        try_box(Self {
            head: Cache::new(id, &shutdown::METHODS),
            flags: AtomicU32::new(if is_plain { PLAIN } else { 0 }),
            #[cfg(all(test, loom))]
            _freed: loom::sync::Arc::new(()),
            #[cfg(all(test, loom))]
            shadow: buftest::models::Shadow::default(),
        })
    }

    /// Returns the pool's number.
    pub(super) fn id(&self) -> usize {
        self.head.id()
    }

    /// Returns the cache (B2).
    pub(super) fn cache(&self) -> NonNull<ThreadCache> {
        self.head.value().cast()
    }

    pub(super) fn flags(&self) -> u32 {
        // ORDER: Relaxed: nothing is read that this would order.
        self.flags.load(Ordering::Relaxed)
    }

    /// Notes that the system gives no fence for the fast paths.
    pub(super) fn set_plain(&self) {
        // ORDER: Relaxed: a later look is as good.
        self.flags.fetch_or(PLAIN, Ordering::Relaxed);
    }

    /// Notes that a thread has just taken `cache`, which this is the entry of. Returns `false` when
    /// the pool is gone: then no thread has the cache.
    pub(super) fn hold(&self, cache: &ThreadCache) -> bool {
        self.head.set_value(NonNull::from(cache).cast());
        let held = |flags| (flags & CLOSED == 0).then_some(flags | HELD);
        // ORDER: Relaxed: the cache's `word` orders threads that have it one after the other.
        self.flags.fetch_update(Ordering::Relaxed, Ordering::Relaxed, held).is_ok()
    }

    /// Notes that the pool is gone. From here on no thread gets the cache, and none is rid of it.
    pub(super) fn close(&self) {
        // ORDER: Relaxed: the fence that follows orders it.
        self.flags.fetch_or(CLOSED, Ordering::Relaxed);
    }

    /// Returns whether a thread has the cache.
    pub(super) fn is_held(&self) -> bool {
        // ORDER: Acquire pairs with the Release in `free`.
        self.flags.load(Ordering::Acquire) & HELD != 0
    }

    /// Claims the emptying of the cache of a pool that is gone, for the thread. Returns whether the
    /// thread is to empty the cache, which is valid then (B2).
    pub(super) fn drain(&self) -> bool {
        // ORDER: AcqRel: of the two who may come here the second does nothing, and the first has
        // seen all that the thread did: by itself, or by `rest`.
        self.flags.fetch_or(DRAINED, Ordering::AcqRel) & DRAINED == 0
    }

    /// Claims the emptying of the cache for the pool's end (B3). Returns whether the pool is to do
    /// it.
    pub(super) fn overtake(&self) -> bool {
        let drained = |flags| (flags & (DRAINED | ENDING) == 0).then_some(flags | DRAINED);
        // ORDER: AcqRel, as in `drain`. A failure leaves the cache to the other.
        self.flags.fetch_update(Ordering::AcqRel, Ordering::Relaxed, drained).is_ok()
    }

    /// Begins the end of the thread. Returns whether the thread has its reference, and keeps it
    /// until it gives that back itself (B2).
    pub(super) fn begin_end(&self) -> bool {
        // ORDER: Acquire: what the pool's end did comes before the thread lets go.
        self.flags.fetch_or(ENDING, Ordering::Acquire) & DRAINED == 0
    }

    /// Notes, for the thread that ends, that no thread has the cache, or will in a moment. Returns
    /// `false` when the pool is gone.
    pub(super) fn free(&self) -> bool {
        let free = |flags| (flags & CLOSED == 0).then_some(flags & PLAIN);
        // ORDER: Release pairs with the Acquire in `is_held`. A failure leaves the cache to the
        // thread.
        self.flags.fetch_update(Ordering::Release, Ordering::Relaxed, free).is_ok()
    }

    /// Gives up the entry on the side of the thread.
    ///
    /// # Safety
    ///
    /// The pool is gone, and the thread that had the cache then does not use this again.
    pub(super) unsafe fn on_pool_closed(this: NonNull<Self>) {
        // SAFETY: the caller's promise.
        unsafe { Self::give_up(this, LET_GO) };
    }

    /// Gives up the entry on the side of the cache, which is gone.
    ///
    /// # Safety
    ///
    /// The cache does not use this again.
    pub(super) unsafe fn orphan(this: NonNull<Self>) {
        // SAFETY: the caller's promise.
        unsafe { Self::give_up(this, ORPHANED) };
    }

    /// Gives up the entry on one side, and frees it if the other side has done so.
    ///
    /// # Safety
    ///
    /// The caller is the one that `side` names, comes here once, and does not use the entry again.
    unsafe fn give_up(this: NonNull<Self>, side: u32) {
        #[cfg(all(test, loom))]
        // SAFETY: it is there until both have come here (B1).
        unsafe { &(*this.as_ptr()).shadow }.read();
        // SAFETY: likewise.
        let flags = unsafe { &(*this.as_ptr()).flags };
        // ORDER: AcqRel: the second sees all that the first did with it.
        let before = flags.fetch_or(side, Ordering::AcqRel);
        if before & HELD == 0 || before & (LET_GO | ORPHANED) != 0 {
            #[cfg(all(test, loom))]
            // SAFETY: nobody uses it any more (B1).
            unsafe { &(*this.as_ptr()).shadow }.write();
            // SAFETY: made by `try_box`, and likewise.
            drop(unsafe { Box::from_raw(this.as_ptr()) });
        }
    }
}
