//! The ends of a cache: that of its pool, and that of its thread. Either may come first.
//!
//! ```text
//!  the pool's end    closes the cache, executes a fence, looks whether the thread is at rest;
//!                    if so, drains the cache, and gives the thread's reference back
//!  the thread        in a slow path that ends, or at the stub on its list:
//!                    drains the cache, if that was not done, likewise
//!                    off its list: lets go of the stub
//!  the bookkeeping   goes with its last reference: the cache is freed, and leaves the stub to the
//!                    thread
//! ```
//!
//! A thread that ends while the pool exists leaves the cache to the next (`FREE`), and gives its
//! reference back itself.

use core::ptr::NonNull;

use bufkit::thread_cache::{self, Cache, Methods};

use super::stub::{self, Stub};
use super::{CLOSED, FREE, ThreadCache, WAITED, growth};
use crate::chain::Chain;
use crate::class::MAX_CLASSES;
use crate::counts::Why;
use crate::shared::{CoreRef, Shared};
use crate::sync::{self, Ordering};
use crate::wait_queue::Event;

/// What the lists of a thread do with a cache.
pub(super) static METHODS: Methods =
    Methods { is_closed, end_of_thread, on_pool_closed: ThreadCache::on_pool_closed };

/// The thread lets go of the stub when this is dropped.
struct LettingGo(NonNull<Stub>);

impl LettingGo {
    /// Makes the guard that lets go of `stub` when it is dropped.
    ///
    /// # Safety
    ///
    /// The pool is gone, and the calling thread, which had the cache then, does not use the stub
    /// when this has been dropped.
    unsafe fn new(stub: NonNull<Stub>) -> Self {
        Self(stub)
    }
}

impl Drop for LettingGo {
    fn drop(&mut self) {
        // SAFETY: the promise of `new`.
        unsafe { Stub::on_pool_closed(self.0) };
    }
}

/// A thread's part of draining a cache whose pool is gone, after a slow path. It does not need the
/// cache, which may be gone as well.
pub(crate) struct Gone(NonNull<Stub>);

impl Gone {
    /// Looks whether the pool is gone, and returns the proof if it is.
    ///
    /// # Safety
    ///
    /// The stub is that of a cache of the calling thread's, which it has not let go of.
    pub(super) unsafe fn look(stub: NonNull<Stub>) -> Option<Self> {
        // SAFETY: valid until the thread lets go of it (`stub`, B1).
        let mut flags = unsafe { stub.as_ref() }.flags();
        if flags & stub::PLAIN != 0 {
            sync::full_fence();
            // SAFETY: likewise.
            flags = unsafe { stub.as_ref() }.flags();
        }
        (flags & stub::CLOSED != 0).then_some(Self(stub))
    }

    /// Empties the cache, and gives back the thread's reference, if the pool's end has not done
    /// that. The caller is the thread, which is not at work. The allocator may use pools in this,
    /// and the thread let go of the stub there.
    #[cold]
    #[inline(never)]
    pub(crate) fn drain(self) {
        // SAFETY: valid until the thread lets go of it, as for `look`.
        let stub = unsafe { self.0.as_ref() };
        if stub.drain() {
            // SAFETY: the thread's reference keeps the cache (`stub`, B2).
            let cache = unsafe { stub.cache().as_ref() };
            // SAFETY: the right to that is this call's from just now.
            unsafe { cache.drain(true) };
        }
    }
}

/// Returns whether the pool is gone.
///
/// # Safety
///
/// `head` is that of a stub on the calling thread's list.
unsafe fn is_closed(head: NonNull<Cache>) -> bool {
    // SAFETY: the caller's promise; the head is the first field.
    unsafe { head.cast::<Stub>().as_ref() }.flags() & stub::CLOSED != 0
}

/// Ends the use of the cache by its thread, which ends: its blocks go to the shards.
///
/// # Safety
///
/// `head` is that of a stub, off the thread's list, and is not used by it again.
unsafe fn end_of_thread(head: NonNull<Cache>) {
    // SAFETY: valid until the thread lets go of it (`stub`, B1).
    let stub = unsafe { head.cast::<Stub>().as_ref() };
    if !stub.begin_end() {
        // SAFETY: the pool is gone, and the rest is the caller's promise.
        return unsafe { ThreadCache::on_pool_closed(head) };
    }
    // SAFETY: the thread's reference is its own from here on, and keeps the cache (`stub`, B2).
    let cache = unsafe { stub.cache().as_ref() };
    let (shared, home) = (cache.shared, cache.home);
    for class in 0..MAX_CLASSES {
        // Where somebody else has the cache at this moment, what he leaves is the next thread's, or
        // goes with the pool.
        if !cache.enter() {
            break;
        }
        let chain = cache.take_magazine(class);
        let _array = cache.narrow(class);
        let mut apart = Chain::new();
        if cache.hot_class() == class
            && let Some(block) = cache.take_hot()
        {
            // SAFETY: just taken.
            unsafe { apart.push(block) };
        }
        // Where the pool is gone, it is drained below.
        let _gone = cache.leave();
        for chain in [chain, apart] {
            // SAFETY: the thread's reference keeps the pool.
            unsafe { Shared::store(shared, home, class, chain) };
        }
    }
    if !stub.free() {
        // SAFETY: the pool is gone, and the rest is the caller's promise.
        return unsafe { ThreadCache::on_pool_closed(head) };
    }
    // SAFETY: the thread's reference, once. The pool's end leaves it alone, as no thread has the
    // cache.
    let _thread = unsafe { CoreRef::new(shared, 1) };
    // ORDER: Release pairs with the Acquire in `adopt` and `claimed`: the cache is seen as it was
    // left.
    let before = cache.word.fetch_or(FREE, Ordering::Release);
    if before & WAITED != 0 {
        // Memory that was not to be had is to be had now.
        // SAFETY: the thread's reference keeps the pool.
        unsafe { Shared::notify(shared, Event::Put) };
    }
}

impl ThreadCache {
    /// Returns whether the pool is gone.
    pub(crate) fn is_gone(&self) -> bool {
        // ORDER: Relaxed: nothing is read that this would order.
        self.word.load(Ordering::Relaxed) & CLOSED != 0
    }

    /// Begins the cache's part of the pool's end. From here on the thread puts nothing in that it
    /// did not begin to put in before.
    pub(crate) fn close(&self) {
        self.stub().close();
        // ORDER: Acquire pairs with the Release in `unclaim` and `end_of_thread`. What the fence
        // orders is said there.
        self.word.fetch_or(CLOSED, Ordering::AcqRel);
    }

    /// Completes the cache's part of the pool's end, behind a full fence (a heavy one if
    /// `is_heavy`). It empties the cache, unless the thread is amid something or cannot be asked.
    /// In that case the thread empties it.
    pub(crate) fn empty_closed(&self, is_heavy: bool) {
        let is_held = self.stub().is_held();
        if (is_heavy || self.is_fenced() || !is_held) && self.rest().is_some() && self.stub().overtake() {
            // SAFETY: the right to that is this call's from just now.
            unsafe { self.drain(is_held) };
        }
    }

    /// Empties the cache by its own thread after the pool's end. Something else keeps the
    /// bookkeeping.
    #[cold]
    #[inline(never)]
    pub(crate) fn drain_closed(&self) {
        Gone(self.stub).drain();
    }

    /// Frees what is in the cache of a pool that is gone, and gives back the reference of the
    /// thread that has it, if there is one.
    ///
    /// # Safety
    ///
    /// The caller has set `DRAINED` in the stub (N5).
    unsafe fn drain(&self, is_held: bool) {
        self.touch();
        let shared = self.shared;
        // SAFETY: the thread's reference, which the caller has with `DRAINED`.
        let _thread = is_held.then(|| unsafe { CoreRef::new(shared, 1) });
        // Everything first, for what the allocator may do.
        let mut all = Chain::new();
        for class in 0..MAX_CLASSES {
            all.append(self.take_all(class));
        }
        // SAFETY: the chain is ours, of this pool; the reference, or else the caller's handles,
        // keep it.
        unsafe { Shared::free_chain(shared, all, Why::Uncounted) };
    }

    /// Lets go of the stub of a pool that is gone, for the thread that meets it. The thread empties
    /// the cache and gives back its reference, if that was not done.
    ///
    /// # Safety
    ///
    /// The pool is gone. `head` is that of a stub, off the thread's list, and is not used by the
    /// thread again.
    pub(crate) unsafe fn on_pool_closed(head: NonNull<Cache>) {
        let this = head.cast::<Stub>();
        // SAFETY: the caller's promise; when this function ends, whatever wakers and the allocator
        // do.
        let _letting_go = unsafe { LettingGo::new(this) };
        Gone(this).drain();
    }

    /// Puts the cache on the calling thread's list, which has just adopted it. The thread's
    /// reference to the bookkeeping is counted already. Returns `false` when the pool is gone: then
    /// no thread has the cache.
    pub(crate) fn list(&self) -> bool {
        let is_held = self.stub().hold(self);
        if is_held {
            // SAFETY: on no list, since it was free; valid until the thread lets go of it (`stub`,
            // B1), which is in `end_of_thread` or `on_pool_closed`, or `Shared::close` for its own.
            unsafe { thread_cache::add(self.stub.cast()) };
        }
        is_held
    }
}

impl Drop for ThreadCache {
    fn drop(&mut self) {
        self.touch();
        // The charge is the pool's, which is gone too.
        drop(growth::arrays_of(self));
        // SAFETY: the cache is gone.
        unsafe { Stub::orphan(self.stub) };
    }
}
