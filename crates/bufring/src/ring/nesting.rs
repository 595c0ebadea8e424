//! Whether a ring may lie within a buffer of another ring.
//!
//! A buffer that is leaked is `&'static mut` memory, of which a region can be made, and a
//! `MemoryProvider` may have its memory from a ring. The guards of the inner ring then lie between
//! those of the outer one. So an address between the ends of a ring is that of one of its guards
//! only while every ring of the program has its memory from the global allocator.

#[cfg(not(any(loom, shuttle)))]
use bufcore::author::sync::{AtomicBool, Ordering};

/// Whether a ring was built in a region that was given to it. Set, it stays so.
#[cfg(not(any(loom, shuttle)))]
static HAS_GIVEN_REGION: AtomicBool = AtomicBool::new(false);

/// Notes that a ring is about to be built in a given region.
pub(crate) fn note_region() {
    // ORDER: Relaxed: whatever hands a buffer of that ring to another thread orders this before it.
    #[cfg(not(any(loom, shuttle)))]
    HAS_GIVEN_REGION.store(true, Ordering::Relaxed);
}

/// Returns whether a ring of this program may lie within a buffer of another one. It is called for
/// a buffer at hand, and true if that buffer is of such a ring.
#[inline]
pub(crate) fn may_nest() -> bool {
    // ORDER: Relaxed, as in `note_region`.
    #[cfg(not(any(loom, shuttle)))]
    return HAS_GIVEN_REGION.load(Ordering::Relaxed);
    // A checker's atomics are not statics.
    #[cfg(any(loom, shuttle))]
    true
}
