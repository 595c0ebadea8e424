//! The parts that strategies are built with, beyond the vocabulary: for authors of strategies, not
//! for their users.

#[cfg(feature = "std")]
pub use crate::coop::Coop;
pub use crate::copying::copy_bytes;
pub use crate::growth::Growth;
#[cfg(feature = "alloc")]
pub use crate::handle::{Bookkeeping, Handle, Refs, WeakHandle};
#[cfg(feature = "std")]
pub use crate::integrations::count_filled;
#[cfg(feature = "std")]
pub use crate::keeper::Bell;
#[cfg(feature = "std")]
pub use crate::own_pages::{OwnPages, PoolSource};
pub use crate::pieces::find_byte;
pub use crate::ref_counts::RefCounts;
pub use crate::release_state::ReleaseState;
#[cfg(feature = "alloc")]
pub use crate::roll::{Link, Listed, Roll};
pub use crate::settings::{SettingsText, check_alignment};
#[cfg(feature = "alloc")]
pub use crate::sleeper::{Sleeper, TaskWaker};
pub use crate::stats::{Counters, Released, Served, SharedCounters};
pub use crate::tagged_ptr::TaggedPtr;
pub use crate::track::Tracker;
#[cfg(feature = "alloc")]
pub use crate::unwind::caught;
pub use crate::views::Views;

/// Zeroes `range` in a way that the compiler cannot leave out.
///
/// # Safety
///
/// 1. The range is valid for reads and writes, and initialised.
/// 2. Nobody else uses it during the call.
///
/// ```
/// use std::ptr::NonNull;
///
/// let mut key = *b"secret";
/// // SAFETY: a whole array, of which nobody else knows.
/// unsafe { bufcore::strategy::wipe(NonNull::from(&mut key[..])) };
/// assert_eq!(key, [0; 6]);
/// ```
#[cfg(feature = "wipe")]
#[cold]
pub unsafe fn wipe(range: core::ptr::NonNull<[u8]>) {
    // SAFETY: the caller's promise.
    let bytes = unsafe { &mut *range.as_ptr() };
    zeroize::Zeroize::zeroize(bytes);
}

/// Atomics and locks that strategies use.
///
/// They are those of `core` and `std`, or of `portable-atomic` with the feature of that name. Under
/// `--cfg loom` or `--cfg shuttle` they are those of a model checker. Other packages in the program
/// may decide which they are.
pub mod sync {
    #[cfg(any(loom, shuttle))]
    pub use crate::sync::checker;
    pub use crate::sync::{AtomicBool, AtomicPtr, AtomicU32, AtomicUsize, Ordering, RELEASE, fence};
    #[cfg(any(feature = "std", loom, shuttle))]
    pub use crate::sync::{Mutex, MutexGuard, lock, try_lock};
}

/// Two fences that belong together, of which one costs nothing, and the other a system call.
///
/// Two threads may each announce something and then look for the other's announcement. Between the
/// two steps each needs a fence, so that not both can miss the other (Dekker 1965). Where one side
/// does so all the time, its fence should cost nothing.
///
/// On Linux, [`light`](fences::light) only keeps the compiler from moving the two steps.
/// [`heavy`](fences::heavy), on the other side, makes every running thread of the process execute a
/// full fence, wherever it is, by `membarrier(2)`. The hazard pointers of folly and the proposal
/// P1202 for C++ do the same. Elsewhere, under Miri and in models both sides execute a full fence.
///
/// ```
/// use std::sync::atomic::{AtomicBool, Ordering};
///
/// use bufcore::strategy::fences;
///
/// /// Set by a thread while it uses its cache, many million times a second.
/// static IN_USE: AtomicBool = AtomicBool::new(false);
/// /// Set by another thread that wants to take the cache over, once in a while.
/// static CLAIMED: AtomicBool = AtomicBool::new(false);
///
/// let both_full = !fences::has_heavy(); // asked for once, when the pool is made
/// let fast_path = || {
///     IN_USE.store(true, Ordering::Relaxed);
///     if both_full { fences::full() } else { fences::light() }
///     let may_use = !CLAIMED.load(Ordering::Acquire);
///     IN_USE.store(false, Ordering::Release);
///     may_use
/// };
/// let claim = || {
///     CLAIMED.store(true, Ordering::Relaxed);
///     fences::heavy(both_full) && !IN_USE.load(Ordering::Acquire)
/// };
/// assert!(fast_path() && claim() && !fast_path());
/// ```
#[cfg(feature = "fences")]
pub mod fences {
    pub use crate::fences::{full, has_heavy, heavy, light};
}

/// Memory that outlived its pool.
///
/// Some strategies release with a plain store. It cannot tell whether it was the last one of a pool
/// that has ended. Two threads that only load and store cannot agree on which of them is last. So
/// the pool, when it is dropped with buffers out, marks and counts them. It gives its memory to a
/// list here ([`adopt_counted`](orphans::adopt_counted)). A release that sees the mark counts
/// itself ([`release_late`](orphans::release_late)). The last one frees the memory, in constant
/// time, however long the list is.
///
/// One release is not counted: the scheduler stopped it between reading "pool alive" and storing
/// "free", and the pool was dropped on another thread at that moment. A later look finds it. One of
/// the last late releases of the same pool looks. Later ends of pools look at a bounded part of the
/// list each, and [`sweep`](orphans::sweep) looks at all of it.
pub mod orphans {
    pub use crate::orphans::sweep;
    #[cfg(feature = "alloc")]
    pub use crate::orphans::{Methods, Orphan, adopt_counted, pending, release_late};
}

/// How a thread finds what it has in a pool, for strategies with caches for each thread.
///
/// A cache is the strategy's own type, with a [`Cache`](threads::Cache) as its head. A thread has
/// one for each pool that it uses, on a list that this module keeps. For the fast paths there is a
/// table without a destructor: a look into it takes a few instructions. When the thread ends, or
/// the pool is found to have ended, the list calls one of the cache's
/// [`Methods`](threads::Methods).
///
/// A thread looks at some of its caches whenever it looks for one, and at more when it has none
/// yet. So a thread that continues to use new pools keeps few caches of pools that ended on other
/// threads: about as many as it ever had at once. A thread that does nothing keeps its caches until
/// it uses a pool or ends.
#[cfg(feature = "std")]
pub mod threads {
    #[cfg(any(loom, shuttle))]
    pub use crate::threads::end_of_thread;
    pub use crate::threads::{
        Cache, Methods, NO_TOKEN, Place, add, find, new_id, recall, recall_at, register, remember, remove,
        token,
    };
}

/// Puts `value` on the heap, and returns `None` when there is no room. `Box::from_raw` takes it
/// back.
///
/// ```
/// use bufcore::strategy::boxed;
///
/// let value = boxed(String::from("bookkeeping")).expect("room for a string");
/// // SAFETY: made by `boxed`, and taken back once.
/// let value = unsafe { Box::from_raw(value.as_ptr()) };
/// assert_eq!(*value, "bookkeeping");
/// ```
#[cfg(feature = "alloc")]
pub fn boxed<T>(value: T) -> Option<core::ptr::NonNull<T>> {
    let mut place = alloc::vec::Vec::new();
    place.try_reserve_exact(1).ok()?;
    place.push(value);
    // No copy and no allocation: the vector is full. A slice of one is laid out as its element.
    core::ptr::NonNull::new(alloc::boxed::Box::into_raw(place.into_boxed_slice()).cast())
}
