//! How a block comes to the list when its pool ends, and how its late releases are counted.
//!
//! `out` starts at `RUNNING`, which it never reaches otherwise. The pool's end adds the number of
//! marked buffers and subtracts `RUNNING`; additions commute, so releases in between need no
//! order, and one step brings `out` to 0. Until its own step the block is valid for each of them,
//! because its share is in `out`. All steps are AcqRel, so the last one has seen what the others
//! did.
//!
//! A release that raced with the end is not counted by itself. The end looks for such before it
//! adds to `out`; a late release looks when 1, 2, 4, 8 or 16 others are left; ends of other pools
//! look at a bounded part of the list, and `sweep` at all of it. Until then the memory stays.

use core::ptr::NonNull;

use super::head::{JOINED, Orphan, RUNNING, count_missed};
use super::sweeper::{ASKED, arrive, finish, request};
use crate::sync::Ordering;

/// A late release that leaves 1, 2, 4, 8 or 16 others looks whether they have been released without
/// being counted.
const FEW: usize = 16;

/// Takes over a block whose pool was dropped. `out` of its buffers, in `slots` slots, were marked
/// as outliving the pool. [`Orphan`] has an example.
///
/// The memory is freed with the last buffer, with one exception: if another thread was in the
/// middle of a plain-store release when the pool was dropped, that release is not noticed. A later
/// sweep frees the memory then.
///
/// Cost: a check of each slot of the block, and of some slots of other waiting blocks: on average
/// twice as many, plus a few dozen.
///
/// # Safety
///
/// 1. `orphan` was made by [`Orphan::counted`]. It is the first field of a block that its functions
///    can handle, and was not adopted before.
/// 2. `out` releases happen later, or have happened. Each is counted by one [`release_orphaned`],
///    which may have been called already, or is found by one call of `count_missed`, but not both.
/// 3. No other code uses the block from now on, except the buffers until their release.
pub unsafe fn defer_free(orphan: NonNull<Orphan>, out: usize, slots: usize) {
    // SAFETY: valid, and until the block arrives this field is the caller's.
    unsafe { orphan.as_ref() }.slots.set(slots);
    // Before the block can be finished, so that what is finished is on the list, or among the
    // arrived ones.
    // SAFETY: the caller's promise. `RUNNING` is this thread's share: the block is valid up to the
    // addition below (O2).
    unsafe { arrive(orphan) };
    // SAFETY: valid, as above.
    let settled = unsafe { count_missed(orphan) };
    // SAFETY: likewise.
    let count = unsafe { &(*orphan.as_ptr()).out };
    let added = (out - settled).wrapping_sub(RUNNING);
    if count.fetch_add(added, JOINED).wrapping_add(added) == 0 {
        // SAFETY: this was the step to 0.
        unsafe { finish(orphan) };
    }
    // The models' checker does not find by itself that the last release may come in between.
    #[cfg(all(test, loom))]
    crate::sync::checker::thread::yield_now();
    request(ASKED);
}

/// Counts the release of a buffer that was marked before its pool was dropped, and frees the block
/// if it was the last one. [`Orphan`] has an example.
///
/// Cost: one locked instruction. The last releases of a block, up to five, check each of its slots
/// as well.
///
/// # Safety
///
/// 1. `orphan` is that of the buffer's block, and was made by [`Orphan::counted`].
/// 2. The buffer was one of those that were marked, and was not counted before.
/// 3. After this call no code uses the buffer, nor the block for it.
pub unsafe fn release_orphaned(orphan: NonNull<Orphan>) {
    // SAFETY: valid until this release is counted (O2).
    let count = unsafe { &(*orphan.as_ptr()).out };
    let mut settled = 1;
    // ORDER: Acquire, so that the look below sees what the others did before they were counted.
    let mut out = count.load(Ordering::Acquire);
    loop {
        let others = out.wrapping_sub(settled);
        if others.is_power_of_two() && others <= FEW {
            // These may all have been released without being counted, and then nobody would come
            // any more.
            // SAFETY: valid, as above.
            settled += unsafe { count_missed(orphan) };
        }
        let left = out.wrapping_sub(settled);
        // ORDER: JOINED, see there. Acquire on failure as above. Behind a success the block may be
        // gone.
        match count.compare_exchange_weak(out, left, JOINED, Ordering::Acquire) {
            Ok(_) if left == 0 => break,
            Ok(_) => return,
            Err(now) => out = now,
        }
    }
    // SAFETY: this was the step to 0.
    unsafe { finish(orphan) };
    request(ASKED);
}
