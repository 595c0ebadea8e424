//! The ends of a cache: that of its pool, and that of its thread. Either may come first.
//!
//! ```text
//!  the pool's end    closes the cache, executes a fence, looks whether the thread is at rest;
//!                    if so, empties the cache
//!  the thread        in a slow path that ends, or at the cache on its list:
//!                    empties the cache, if that was not done
//!                    off its list: gives its reference to the bookkeeping back
//!  the bookkeeping   goes with its last reference, and the cache with it
//! ```
//!
//! A thread that ends while the pool exists leaves the cache to the next (`FREE`).

use core::ptr::NonNull;

use bufkit::thread_cache::{self, Cache, Methods};

use super::{CLOSED, DRAINED, FREE, ThreadCache, WAITED, growth};
use crate::chain::Chain;
use crate::class::MAX_CLASSES;
use crate::counts::Why;
use crate::shared::{CoreRef, Shared};
use crate::sync::Ordering;
use crate::wait_queue::Event;

/// What the lists of a thread do with a cache.
pub(super) static METHODS: Methods =
    Methods { is_closed, end_of_thread, on_pool_closed: ThreadCache::on_pool_closed };

/// Returns whether the pool is gone.
///
/// # Safety
///
/// `head` is that of a cache on the calling thread's list.
unsafe fn is_closed(head: NonNull<Cache>) -> bool {
    // SAFETY: the thread's reference keeps the cache (N6); the head is its first field.
    unsafe { head.cast::<ThreadCache>().as_ref() }.is_gone()
}

/// Ends the use of the cache by its thread, which ends: its blocks go to the shards.
///
/// # Safety
///
/// `head` is that of a cache, off the thread's list, and is not used by it again.
unsafe fn end_of_thread(head: NonNull<Cache>) {
    // SAFETY: the thread's reference keeps the cache (N6); the head is its first field.
    let cache = unsafe { head.cast::<ThreadCache>().as_ref() };
    let (shared, home) = (cache.shared, cache.home);
    // SAFETY: the thread's reference, once: the cache is off its list.
    let _thread = unsafe { CoreRef::new(shared, 1) };
    for class in 0..MAX_CLASSES {
        // Where somebody else has the cache at this moment, what he leaves is the next thread's, or
        // goes with the pool.
        if !cache.enter_to_take() {
            break;
        }
        let chain = cache.take_all(class);
        let _array = cache.narrow(class);
        // Where the pool is gone, the cache is emptied below.
        let _is_gone = cache.leave();
        // SAFETY: the thread's reference keeps the pool.
        unsafe { Shared::store(shared, home, class, chain) };
    }
    let free = |word| (word & CLOSED == 0).then_some(word | FREE);
    // ORDER: Release pairs with the Acquire in `adopt`, `claimed` and `close`: the cache is seen as
    // it was left. A failure leaves the cache to this thread.
    match cache.word.fetch_update(Ordering::Release, Ordering::Relaxed, free) {
        Err(_closed) => cache.drain_closed(),
        // Memory that was not to be had is to be had now.
        // SAFETY: the thread's reference keeps the pool.
        Ok(before) if before & WAITED != 0 => unsafe { Shared::notify(shared, Event::Put) },
        Ok(_) => {}
    }
}

impl ThreadCache {
    /// Returns whether the pool is gone.
    pub(crate) fn is_gone(&self) -> bool {
        // ORDER: Relaxed: nothing is read that this would order.
        self.word.load(Ordering::Relaxed) & CLOSED != 0
    }

    /// Begins the cache's part of the pool's end. From here on no thread gets the cache, and the
    /// thread that has it puts nothing in that it did not begin to put in before.
    pub(crate) fn close(&self) {
        // ORDER: Acquire pairs with the Release in `unclaim` and `end_of_thread`. What the fence
        // orders is said there.
        self.word.fetch_or(CLOSED, Ordering::AcqRel);
    }

    /// Completes the cache's part of the pool's end, behind a full fence (a heavy one if
    /// `is_heavy`). It empties the cache, unless the thread is amid something or cannot be asked.
    /// In that case the thread empties it.
    pub(crate) fn empty_closed(&self, is_heavy: bool) {
        // ORDER: Relaxed: the flag changes no more once the cache is closed.
        let is_free = self.word.load(Ordering::Relaxed) & FREE != 0;
        if (is_heavy || is_free) && self.rest().is_some() {
            self.drain_closed();
        }
    }

    /// Frees what is in the cache of a pool that is gone, unless another thread does (N5). The
    /// caller is the cache's thread, which is not at work, or the pool's end. User code runs in
    /// this, in which the cache's thread may give its reference back.
    #[cold]
    #[inline(never)]
    pub(crate) fn drain_closed(&self) {
        // ORDER: Acquire pairs with the Release in `unclaim`: what others did with the magazines is
        // seen. What the thread did, it has done itself, or `rest` has seen.
        if self.word.fetch_or(DRAINED, Ordering::Acquire) & DRAINED != 0 {
            return;
        }
        self.touch();
        let shared = self.shared;
        // Everything first, for what the allocator may do.
        let mut all = Chain::new();
        for class in 0..MAX_CLASSES {
            all.append(self.take_all(class));
        }
        // SAFETY: the chain is ours, of this pool.
        unsafe { Shared::free_chain(shared, all, Why::Uncounted) };
    }

    /// Lets go of the cache of a pool that is gone, for the thread that meets it. The thread
    /// empties the cache, if that was not done, and gives back its reference.
    ///
    /// # Safety
    ///
    /// The pool is gone. `head` is that of a cache, off the thread's list, and is not used by the
    /// thread again.
    pub(crate) unsafe fn on_pool_closed(head: NonNull<Cache>) {
        // SAFETY: the thread's reference keeps the cache (N6); the head is its first field.
        let cache = unsafe { head.cast::<Self>().as_ref() };
        // SAFETY: the thread's reference, once. Given back when this function ends, whatever wakers
        // and the allocator do.
        let _thread = unsafe { CoreRef::new(cache.shared, 1) };
        cache.drain_closed();
    }

    /// Puts the cache on the calling thread's list, which has just adopted it, and has a reference
    /// to the bookkeeping for it.
    pub(crate) fn list(&self) {
        // SAFETY: on no list, since it was free; valid by the thread's reference, which is given
        // back in `end_of_thread` or `on_pool_closed`.
        unsafe { thread_cache::add(NonNull::from(self).cast()) };
    }
}

impl Drop for ThreadCache {
    fn drop(&mut self) {
        self.touch();
        // The charge is the pool's, which is gone too.
        drop(growth::arrays_of(self));
    }
}
