//! The ends of a cache: that of its pool, and that of its thread. Either may come first.
//!
//! ```text
//!  the pool's end    closes the cache, executes a fence, looks whether the thread is at rest;
//!                    if so, drains the cache, and gives the thread's reference back
//!  the thread        in a slow path that ends, or at the entry on its list:
//!                    drains the cache, if that was not done, likewise
//!                    off its list: lets go of the entry
//!  the bookkeeping   goes with its last reference: the cache is freed, and leaves the entry to the
//!                    thread
//! ```
//!
//! A thread that ends while the pool exists leaves the cache to the next (`FREE`), and gives its
//! reference back itself.

use core::ptr::NonNull;

use bufkit::thread_cache::{self, Cache, Methods};

use super::tls_entry::{self, TlsEntry};
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

/// The thread lets go of the entry when this is dropped.
struct LetGo(NonNull<TlsEntry>);

impl LetGo {
    /// Makes the guard that lets go of `tls_entry` when it is dropped.
    ///
    /// # Safety
    ///
    /// The pool is gone, and the calling thread, which had the cache then, does not use the entry
    /// when this has been dropped.
    unsafe fn new(tls_entry: NonNull<TlsEntry>) -> Self {
        Self(tls_entry)
    }
}

impl Drop for LetGo {
    fn drop(&mut self) {
        // SAFETY: the promise of `new`.
        unsafe { TlsEntry::on_pool_closed(self.0) };
    }
}

/// A thread's part of draining a cache whose pool is gone, after a slow path. It does not need the
/// cache, which may be gone as well.
pub(crate) struct Closed(NonNull<TlsEntry>);

impl Closed {
    /// Looks whether the pool is gone, and returns the proof if it is.
    ///
    /// # Safety
    ///
    /// The entry is that of a cache of the calling thread's, which it has not let go of.
    pub(super) unsafe fn look(tls_entry: NonNull<TlsEntry>) -> Option<Self> {
        // SAFETY: valid until the thread lets go of it (`tls_entry`, B1).
        let mut flags = unsafe { tls_entry.as_ref() }.flags();
        if flags & tls_entry::PLAIN != 0 {
            sync::full_fence();
            // SAFETY: likewise.
            flags = unsafe { tls_entry.as_ref() }.flags();
        }
        (flags & tls_entry::CLOSED != 0).then_some(Self(tls_entry))
    }

    /// Empties the cache, and gives back the thread's reference, if the pool's end has not done
    /// that. The caller is the thread, which is not at work. The allocator may use pools in this,
    /// and the thread let go of the entry there.
    #[cold]
    #[inline(never)]
    pub(crate) fn drain(self) {
        // SAFETY: valid until the thread lets go of it, as for `look`.
        let tls_entry = unsafe { self.0.as_ref() };
        if tls_entry.drain() {
            // SAFETY: the thread's reference keeps the cache (`tls_entry`, B2).
            let cache = unsafe { tls_entry.cache().as_ref() };
            // SAFETY: the right to that is this call's from just now.
            unsafe { cache.drain(true) };
        }
    }
}

/// Returns whether the pool is gone.
///
/// # Safety
///
/// `head` is that of an entry on the calling thread's list.
unsafe fn is_closed(head: NonNull<Cache>) -> bool {
    // SAFETY: the caller's promise; the head is the first field.
    unsafe { head.cast::<TlsEntry>().as_ref() }.flags() & tls_entry::CLOSED != 0
}

/// Ends the use of the cache by its thread, which ends: its blocks go to the shards.
///
/// # Safety
///
/// `head` is that of an entry, off the thread's list, and is not used by it again.
unsafe fn end_of_thread(head: NonNull<Cache>) {
    // SAFETY: valid until the thread lets go of it (`tls_entry`, B1).
    let tls_entry = unsafe { head.cast::<TlsEntry>().as_ref() };
    if !tls_entry.begin_end() {
        // SAFETY: the pool is gone, and the rest is the caller's promise.
        return unsafe { ThreadCache::on_pool_closed(head) };
    }
    // SAFETY: the thread's reference is its own from here on, and keeps the cache (`tls_entry`,
    // B2).
    let cache = unsafe { tls_entry.cache().as_ref() };
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
        if cache.last_freed_class() == class
            && let Some(block) = cache.take_last_freed()
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
    if !tls_entry.free() {
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
        self.tls_entry().close();
        // ORDER: Acquire pairs with the Release in `unclaim` and `end_of_thread`. What the fence
        // orders is said there.
        self.word.fetch_or(CLOSED, Ordering::AcqRel);
    }

    /// Completes the cache's part of the pool's end, behind a full fence (a heavy one if
    /// `is_heavy`). It empties the cache, unless the thread is amid something or cannot be asked.
    /// In that case the thread empties it.
    pub(crate) fn empty_closed(&self, is_heavy: bool) {
        let is_held = self.tls_entry().is_held();
        if (is_heavy || self.is_fenced() || !is_held) && self.rest().is_some() && self.tls_entry().overtake()
        {
            // SAFETY: the right to that is this call's from just now.
            unsafe { self.drain(is_held) };
        }
    }

    /// Empties the cache by its own thread after the pool's end. Something else keeps the
    /// bookkeeping.
    #[cold]
    #[inline(never)]
    pub(crate) fn drain_closed(&self) {
        Closed(self.tls_entry).drain();
    }

    /// Frees what is in the cache of a pool that is gone, and gives back the reference of the
    /// thread that has it, if there is one.
    ///
    /// # Safety
    ///
    /// The caller has set `DRAINED` in the entry (N5).
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

    /// Lets go of the entry of a pool that is gone, for the thread that meets it. The thread
    /// empties the cache and gives back its reference, if that was not done.
    ///
    /// # Safety
    ///
    /// The pool is gone. `head` is that of an entry, off the thread's list, and is not used by the
    /// thread again.
    pub(crate) unsafe fn on_pool_closed(head: NonNull<Cache>) {
        let this = head.cast::<TlsEntry>();
        // SAFETY: the caller's promise; when this function ends, whatever wakers and the allocator
        // do.
        let _letting_go = unsafe { LetGo::new(this) };
        Closed(this).drain();
    }

    /// Puts the cache on the calling thread's list, which has just adopted it. The thread's
    /// reference to the bookkeeping is counted already. Returns `false` when the pool is gone: then
    /// no thread has the cache.
    pub(crate) fn list(&self) -> bool {
        let is_held = self.tls_entry().hold(self);
        if is_held {
            // SAFETY: on no list, since it was free; valid until the thread lets go of it
            // (`tls_entry`, B1), which is in `end_of_thread` or `on_pool_closed`, or
            // `Shared::close` for its own.
            unsafe { thread_cache::add(self.tls_entry.cast()) };
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
        unsafe { TlsEntry::orphan(self.tls_entry) };
    }
}
