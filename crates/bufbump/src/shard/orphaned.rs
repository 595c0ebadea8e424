//! A shard whose pool was dropped by another thread than the owner's: what of it is out, and what
//! its owner still releases by plain stores.

use core::ptr::NonNull;

use bufkit::orphan;
use bufkit::sync::{AtomicUsize, Ordering};

use super::{NOBODY, ORPHANED, Shard};

impl Shard {
    /// Marks a shard whose owner is another thread as one without pool. Returns whether nothing is
    /// out: the caller then has it alone.
    ///
    /// Nothing is being carved any more: no handle of the pool is left.
    pub(crate) fn orphan(&self) -> bool {
        // ORDER: Relaxed: where the owner reads the old value, its release is the plain one, which
        // is as good.
        self.owner.store(NOBODY, Ordering::Relaxed);
        let own = &self.own;
        // ORDER: Acquire pairs with the Release of `release_elsewhere`: the last owners are done
        // before the memory goes. Whoever adds to `word` from here on is not counted by it.
        let others = self.word.fetch_add(ORPHANED, Ordering::Acquire);
        // ORDER: Acquire pairs with the Release of `release_here`, likewise.
        let returned = own.returned.load(Ordering::Acquire);
        // ORDER: Relaxed: `adopt` publishes it.
        self.settled.store(returned, Ordering::Relaxed);
        // ORDER: Relaxed: nothing is carved any more.
        let taken = own.taken.load(Ordering::Relaxed);
        self.left.set(taken.wrapping_sub(returned).wrapping_sub(others));
        self.left.get() == 0
    }

    /// Leaves an orphaned shard to the list.
    ///
    /// # Safety
    ///
    /// [`orphan`](Self::orphan) was called, once, and `self` is not used after this.
    pub(crate) unsafe fn adopt(this: NonNull<Shard>) {
        // SAFETY: valid, until it is adopted.
        let left = unsafe { this.as_ref() }.left.get();
        // SAFETY: `orphan` is the first field (`repr(C)`), and nobody but the leases uses the
        // shard. Each buffer that was out is released by `release_orphaned`, or counted in
        // `returned`.
        unsafe { orphan::defer_free(this.cast(), left, 1) };
    }

    /// Counts the buffers of an orphaned shard that its owner has released without seeing that the
    /// pool ended, since the last such call.
    pub(crate) fn settle(&self) -> usize {
        newly_returned(&self.own.returned, &self.settled)
    }
}

/// Counts what `returned` has beyond `settled`, for one of the threads that do so at the same time.
pub(crate) fn newly_returned(returned: &AtomicUsize, settled: &AtomicUsize) -> usize {
    // ORDER: Relaxed: a count, which publishes nothing.
    let mut counted = settled.load(Ordering::Relaxed);
    loop {
        // ORDER: Acquire pairs with the Release of `release_here` and `fold`: the owner is done
        // with those buffers before the memory goes.
        let new = returned.load(Ordering::Acquire).wrapping_sub(counted);
        // No more, or this thread reads an older value than another one has counted.
        if new as isize <= 0 {
            return 0;
        }
        let sum = counted.wrapping_add(new);
        // ORDER: Relaxed: as above.
        match settled.compare_exchange(counted, sum, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => return new,
            Err(now) => counted = now,
        }
    }
}
