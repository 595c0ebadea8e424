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
        // ORDER: Acquire pairs with the Release of `release_remote`: the last owners are done
        // before the memory goes. Whoever adds to `remote_frees` from here on is not counted by it.
        let others = self.remote_frees.fetch_add(ORPHANED, Ordering::Acquire);
        // ORDER: Acquire pairs with the Release of `release_local`, likewise.
        let local_frees = own.local_frees.load(Ordering::Acquire);
        // ORDER: Relaxed: `defer_free` publishes it.
        self.known_frees.store(local_frees, Ordering::Relaxed);
        // ORDER: Relaxed: nothing is carved any more.
        let allocated = own.allocated.load(Ordering::Relaxed);
        self.left_in_use.set(allocated.wrapping_sub(local_frees).wrapping_sub(others));
        self.left_in_use.get() == 0
    }

    /// Leaves an orphaned shard to the list.
    ///
    /// # Safety
    ///
    /// [`orphan`](Self::orphan) was called, once, and `self` is not used after this.
    pub(crate) unsafe fn defer_free(this: NonNull<Shard>) {
        // SAFETY: valid, until it is adopted.
        let left_in_use = unsafe { this.as_ref() }.left_in_use.get();
        // SAFETY: `orphan` is the first field (`repr(C)`), and nobody but the leases uses the
        // shard. Each buffer that was out is released by `release_orphaned`, or counted in
        // `local_frees`.
        unsafe { orphan::defer_free(this.cast(), left_in_use, 1) };
    }

    /// Counts the buffers of an orphaned shard that its owner has released without seeing that the
    /// pool ended, since the last such call.
    pub(crate) fn count_missed(&self) -> usize {
        newly_freed(&self.own.local_frees, &self.known_frees)
    }
}

/// Counts what `local_frees` has beyond `known_frees`, for one of the threads that do so at the
/// same time.
pub(crate) fn newly_freed(local_frees: &AtomicUsize, known_frees: &AtomicUsize) -> usize {
    // ORDER: Relaxed: a count, which publishes nothing.
    let mut counted = known_frees.load(Ordering::Relaxed);
    loop {
        // ORDER: Acquire pairs with the Release of `release_local` and `fold`: the owner is done
        // with those buffers before the memory goes.
        let new = local_frees.load(Ordering::Acquire).wrapping_sub(counted);
        // No more, or this thread reads an older value than another one has counted.
        if new as isize <= 0 {
            return 0;
        }
        let sum = counted.wrapping_add(new);
        // ORDER: Relaxed: as above.
        match known_frees.compare_exchange(counted, sum, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => return new,
            Err(now) => counted = now,
        }
    }
}
