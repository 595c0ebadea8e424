//! The parts that strategies are built with, beyond the vocabulary: for authors of strategies, not
//! for their users.

pub use crate::copying::copy_bytes;
#[cfg(feature = "alloc")]
pub use crate::handle::{Bookkeeping, Handle, Refs};
pub use crate::ref_counts::RefCounts;
#[cfg(feature = "alloc")]
pub use crate::roll::{Link, Listed, Roll};
pub use crate::settings::SettingsText;
#[cfg(feature = "std")]
pub use crate::sleeper::Sleeper;
pub use crate::stats::{Counters, Released, Served, SharedCounters};
pub use crate::tagged_ptr::TaggedPtr;
pub use crate::track::Tracker;
pub use crate::views::Views;

/// Zeroes `range` in a way that the compiler cannot leave out.
///
/// # Safety
///
/// 1. The range is valid for reads and writes, and initialised.
/// 2. Nobody else uses it during the call.
#[cfg(feature = "wipe")]
#[cold]
pub unsafe fn wipe(range: core::ptr::NonNull<[u8]>) {
    // SAFETY: the caller's promise.
    let bytes = unsafe { &mut *range.as_ptr() };
    zeroize::Zeroize::zeroize(bytes);
}

/// The atomics and locks that strategies use: `core`'s and `std`'s, `portable-atomic`'s with the
/// feature of that name, or those of a model checker under `--cfg loom` or `--cfg shuttle`.
///
/// Other packages in the program may decide which they are.
pub mod sync {
    #[cfg(any(loom, shuttle))]
    pub use crate::sync::checker;
    pub use crate::sync::{AtomicBool, AtomicPtr, AtomicU32, AtomicUsize, Ordering, RELEASE, fence};
    #[cfg(any(feature = "std", loom, shuttle))]
    pub use crate::sync::{Mutex, MutexGuard, lock, try_lock};
}

/// Two fences that belong together, of which one costs nothing, and the other a system call.
///
/// Two threads that each announce something and then look for the other's announcement need a fence
/// between the two steps, so that not both can miss the other (Dekker 1965). Where one side does so
/// all the time, its fence should cost nothing: on Linux [`light`](fences::light) only keeps the
/// compiler from moving the two, and the other side's [`heavy`](fences::heavy) makes every running
/// thread of the process execute a full one in between, wherever it is, by `membarrier(2)`. So do
/// the hazard pointers of folly and the proposal P1202 for C++. Elsewhere, under Miri and in models
/// both sides execute a full fence.
#[cfg(feature = "fences")]
pub mod fences {
    pub use crate::fences::{full, has_heavy, heavy, light};
}

/// Memory that outlived its pool.
///
/// A strategy whose release is a plain store cannot tell, in that store, whether it was the last
/// buffer of a pool that is already gone: two threads that only load and store cannot agree on who
/// is last. So the pool, when it is dropped with buffers out, marks and counts them, and gives its
/// memory to a list here ([`adopt_counted`](orphans::adopt_counted)). A release that sees the mark
/// counts itself ([`release_late`](orphans::release_late)), and the last one frees the memory, in
/// constant time whatever else is on the list.
///
/// Only a release that was stopped by the scheduler between reading "pool alive" and storing
/// "free", while the pool was dropped on another thread in just that moment, is not counted. Looks
/// find it: by one of the last late releases of the same pool, by later ends of pools, which look
/// at a bounded part of the list each, or by [`sweep`](orphans::sweep), which looks at all of it.
///
/// A strategy that counts by itself asks for such a sweep instead: [`adopt`](orphans::adopt).
pub mod orphans {
    pub use crate::orphans::sweep;
    #[cfg(feature = "alloc")]
    pub use crate::orphans::{Methods, Orphan, adopt, adopt_counted, pending, release_late};
}

/// How a thread finds what it has in a pool, for strategies with caches for each thread.
///
/// A cache is the strategy's own type, with a [`Cache`](threads::Cache) as its head. A thread has
/// one for each pool that it uses, on a list that this module keeps, and a table without a
/// destructor for what the fast paths need: a look into it is a handful of instructions. When the
/// thread ends, or the pool is found to be gone, the cache is told by one of its
/// [`Methods`](threads::Methods).
///
/// A thread looks at some of its caches whenever it looks for one, at more when it has none yet. So
/// of pools that ended on other threads a thread that goes on to use new ones keeps at most about
/// as many caches as it ever had at once; one that does nothing keeps those that it has, until it
/// uses a pool or ends.
#[cfg(feature = "std")]
pub mod threads {
    #[cfg(any(loom, shuttle))]
    pub use crate::threads::end_of_thread;
    pub use crate::threads::{
        Cache, Methods, NO_TOKEN, add, find, new_id, recall, register, remember, remove, token,
    };
}

/// Puts `value` on the heap; `None` when there is no room. `Box::from_raw` takes it back.
#[cfg(feature = "alloc")]
pub fn boxed<T>(value: T) -> Option<core::ptr::NonNull<T>> {
    let mut place = alloc::vec::Vec::new();
    place.try_reserve_exact(1).ok()?;
    place.push(value);
    // No copy and no allocation: the vector is full. A slice of one is laid out as its element.
    core::ptr::NonNull::new(alloc::boxed::Box::into_raw(place.into_boxed_slice()).cast())
}
