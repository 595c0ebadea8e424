//! The counts of those that keep a pool; see [`crate::strategy::RefCounts`].

use crate::sync::{AtomicUsize, Ordering};

/// More handles of one pool than this are refused, long before the count could wrap: on 32 bits
/// that takes minutes of clones that are forgotten.
const MAX_HANDLES: usize = usize::MAX / 2;

/// Counts what keeps a pool that threads share.
///
/// The counts are of its handles, with the last of which it ends, and of everything that may
/// outlive them and still needs the pool's bookkeeping. All handles together count as one reference
/// to the bookkeeping, which the pool's end gives back.
///
/// It holds nothing but atomics. So a thread may count itself off through a reference to memory
/// that another thread frees at that moment.
///
/// ```
/// use bufcore::strategy::RefCounts;
///
/// let counts = RefCounts::one_handle();
/// counts.add_handle(); // a clone
/// counts.add_ref(); // a buffer that may outlive the pool
/// assert!(!counts.drop_handle());
/// assert!(counts.drop_handle()); // the last handle: the pool ends, and gives their reference back
/// assert!(!counts.drop_refs(1));
/// assert!(counts.drop_refs(1)); // the buffer's, the last one: the bookkeeping is freed
/// ```
#[derive(Debug)]
pub struct RefCounts {
    handles: AtomicUsize,
    refs: AtomicUsize,
    /// In models: a pool that is not freed, for want of one of its references, is reported.
    #[cfg(loom)]
    _freed: loom::sync::Arc<()>,
}

impl RefCounts {
    /// Makes counts of one handle, and of the reference of all handles.
    #[must_use]
    pub fn one_handle() -> Self {
        Self {
            handles: AtomicUsize::new(1),
            refs: AtomicUsize::new(1),
            #[cfg(loom)]
            _freed: loom::sync::Arc::new(()),
        }
    }

    /// Counts one more handle. The caller holds one.
    ///
    /// # Panics
    ///
    /// Panics with more than half as many handles as a `usize` counts, which only forgotten ones
    /// can be. The handle is not counted then.
    #[inline]
    pub fn add_handle(&self) {
        // ORDER: Relaxed: the caller's handle keeps the pool.
        if self.handles.fetch_add(1, Ordering::Relaxed) > MAX_HANDLES {
            self.too_many();
        }
    }

    #[cold]
    #[inline(never)]
    fn too_many(&self) -> ! {
        // ORDER: Relaxed, as the increment that it takes back. There are not as many threads as the
        // count is from its end.
        self.handles.fetch_sub(1, Ordering::Relaxed);
        panic!("more than {MAX_HANDLES} handles of one pool");
    }

    /// Counts one handle less. It returns `true` when it was the last: all uses of the other
    /// handles happened before.
    #[must_use = "the last handle ends the pool"]
    #[inline]
    pub fn drop_handle(&self) -> bool {
        // ORDER: Release pairs with the Acquire of the last: what other handles did happened before
        // the end.
        self.handles.fetch_sub(1, Ordering::AcqRel) == 1
    }

    /// Counts one more reference to the bookkeeping. The caller has a reference already, or holds a
    /// handle.
    ///
    /// Each reference has memory of its own that stays as long, or is on a thread's stack. So there
    /// is no room for as many as would make the count wrap.
    #[inline]
    pub fn add_ref(&self) {
        // ORDER: Relaxed: the caller has a reference already, or a handle.
        self.refs.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts `count` references to the bookkeeping less. It returns `true` when they were the
    /// last: all uses of the bookkeeping happened before.
    #[must_use = "the last reference frees the bookkeeping"]
    #[inline]
    pub fn drop_refs(&self, count: usize) -> bool {
        // ORDER: Release pairs with the Acquire of the last: all uses of the bookkeeping happened
        // before it is freed.
        self.refs.fetch_sub(count, Ordering::AcqRel) == count
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    /// The counts are as after that many clones that were forgotten.
    #[test]
    fn handles_do_not_wrap() {
        let counts = RefCounts { handles: AtomicUsize::new(MAX_HANDLES), refs: AtomicUsize::new(1) };
        counts.add_handle();
        for _ in 0..3 {
            let add = core::panic::AssertUnwindSafe(|| counts.add_handle());
            assert!(std::panic::catch_unwind(add).is_err(), "one too many");
            // ORDER: Relaxed: one thread.
            assert_eq!(counts.handles.load(Ordering::Relaxed), MAX_HANDLES + 1, "the pool has none more");
        }
        assert!(!counts.drop_handle());
        counts.add_handle();
    }

    #[test]
    fn the_last_is_told() {
        let counts = RefCounts::one_handle();
        counts.add_handle();
        assert_eq!([counts.drop_handle(), counts.drop_handle()], [false, true]);
        counts.add_ref();
        counts.add_ref();
        counts.add_ref();
        assert_eq!([counts.drop_refs(1), counts.drop_refs(2), counts.drop_refs(1)], [false, false, true]);
    }
}
