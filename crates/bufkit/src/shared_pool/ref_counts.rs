//! The counts of those that keep a pool; see [`crate::RefCounts`].

use crate::sync::{AtomicUsize, Ordering};

/// More handles of one pool than this are refused, long before the count could wrap: on 32 bits
/// that takes minutes of clones that are forgotten. So are weak handles of a pool with more
/// references.
const MAX_HANDLES: usize = usize::MAX / 2;

/// The reference counts of a shared pool.
///
/// They count the handles, and every reference that may outlive the handles and still needs the
/// pool's bookkeeping. The pool ends with the last handle. All handles together count as one
/// reference to the bookkeeping, which the end of the pool drops.
///
/// It consists of atomics only. A thread may therefore decrement it through a reference to memory
/// that another thread frees at that moment.
///
/// ```
/// use bufkit::RefCounts;
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
    /// Makes counts of one handle, and of the common reference of all handles.
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
    /// Panics if more than `usize::MAX / 2` handles exist, which needs forgotten ones. The handle
    /// is not counted then.
    #[inline]
    pub fn add_handle(&self) {
        // ORDER: Relaxed: the caller's handle keeps the pool.
        if self.handles.fetch_add(1, Ordering::Relaxed) > MAX_HANDLES {
            too_many(&self.handles);
        }
    }

    /// Counts one more handle, unless there is none: for a caller that has only a reference.
    ///
    /// It returns `false` if the pool was dropped, or is dropped at this moment. It also does so if
    /// [`add_handle`](Self::add_handle) would panic.
    ///
    /// ```
    /// use bufkit::RefCounts;
    ///
    /// let counts = RefCounts::one_handle();
    /// counts.add_ref(); // of a caller that holds no handle
    /// assert!(counts.try_add_handle());
    /// assert!(!counts.drop_handle());
    /// assert!(counts.drop_handle()); // the pool ends
    /// assert!(!counts.try_add_handle()); // it has ended for good
    /// # assert!(!counts.drop_refs(1));
    /// # assert!(counts.drop_refs(1));
    /// ```
    #[must_use = "a handle that was counted is to be dropped"]
    pub fn try_add_handle(&self) -> bool {
        // ORDER: Relaxed: the exchange below decides.
        let mut handles = self.handles.load(Ordering::Relaxed);
        while (1..=MAX_HANDLES).contains(&handles) {
            // ORDER: Relaxed, for both: as in `add_handle`, what the new handle reaches was made
            // before the caller's reference. What it does is ordered when it is dropped.
            let exchange = self.handles.compare_exchange_weak(
                handles,
                handles + 1,
                Ordering::Relaxed,
                Ordering::Relaxed,
            );
            match exchange {
                Ok(_) => return true,
                Err(now) => handles = now,
            }
        }
        false
    }

    /// Removes one handle from the count. It returns `true` if it was the last: all uses of the
    /// other handles happened before.
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
    /// Each such reference is stored in memory that lives as long, or on a thread's stack. Memory
    /// is therefore exhausted before the count wraps. A weak handle can be forgotten, and then uses
    /// no memory: `Handle::downgrade` counts it with another method.
    #[inline]
    pub fn add_ref(&self) {
        // ORDER: Relaxed: the caller has a reference already, or a handle.
        self.refs.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts one more reference, of a weak handle. The caller holds a handle.
    ///
    /// # Panics
    ///
    /// Panics with more than half as many references as a `usize` counts. The reference is not
    /// counted then.
    #[cfg(feature = "alloc")]
    pub(crate) fn add_weak(&self) {
        // ORDER: Relaxed: the caller's handle keeps the pool.
        if self.refs.fetch_add(1, Ordering::Relaxed) > MAX_HANDLES {
            too_many(&self.refs);
        }
    }

    /// Removes `count` references to the bookkeeping. It returns `true` if they were the last: all
    /// uses of the bookkeeping happened before.
    #[must_use = "the last reference frees the bookkeeping"]
    #[inline]
    pub fn drop_refs(&self, count: usize) -> bool {
        // ORDER: Release pairs with the Acquire of the last: all uses of the bookkeeping happened
        // before it is freed.
        self.refs.fetch_sub(count, Ordering::AcqRel) == count
    }
}

/// Takes back what was one too many.
#[cold]
#[inline(never)]
fn too_many(count: &AtomicUsize) -> ! {
    // ORDER: Relaxed, as the increment that it takes back. There are not as many threads as the
    // count is from its end.
    count.fetch_sub(1, Ordering::Relaxed);
    panic!("more than {MAX_HANDLES} handles of one pool");
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    /// The counts are as after this number of clones that were forgotten.
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
        assert!(!counts.try_add_handle(), "none for those who hold none either");
        assert!(!counts.drop_handle());
        counts.add_handle();
    }

    #[test]
    fn a_pool_that_ended_gets_no_handle() {
        let counts = RefCounts::one_handle();
        counts.add_ref();
        assert!(counts.try_add_handle());
        assert_eq!([counts.drop_handle(), counts.drop_handle()], [false, true]);
        assert!(!counts.try_add_handle(), "the pool has ended");
        assert_eq!([counts.drop_refs(1), counts.drop_refs(1)], [false, true]);
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
