//! Weak handles: they find a pool, and do not keep it from its end.

use core::fmt;
use core::ptr::NonNull;

use super::{CoreRef, Handle, PoolCore};

/// A weak handle of a pool, which does not keep the pool alive.
///
/// It keeps the pool's bookkeeping, as a [`Weak`](alloc::sync::Weak) keeps the allocation of its
/// `Arc`. Buffers and idle memory are freed with the last strong handle.
///
/// ```
/// # use std::ptr::NonNull;
/// use bufkit::{PoolCore, Handle, RefCounts};
///
/// struct Shared {
///     counts: RefCounts,
///     name: &'static str,
/// }
/// # // SAFETY: one field, made with the value; nothing but handles is counted.
/// # unsafe impl PoolCore for Shared {
/// #     fn ref_counts(&self) -> &RefCounts {
/// #         &self.counts
/// #     }
/// #     unsafe fn close(_: NonNull<Self>) {}
/// # }
///
/// let shared = Shared { counts: RefCounts::one_handle(), name: "packets" };
/// let handle = Handle::new(shared).expect("room for the bookkeeping");
/// let weak = handle.downgrade();
/// assert_eq!(weak.upgrade().map(|handle| handle.name), Some("packets"));
/// drop(handle); // the last one: the pool ends
/// assert!(weak.upgrade().is_none());
/// ```
pub struct WeakHandle<S: PoolCore> {
    kept: CoreRef<S>,
}

// SAFETY: it gives out handles, which may be sent and shared, and the last reference, on whatever
// thread, drops the value.
unsafe impl<S: PoolCore + Send + Sync> Send for WeakHandle<S> {}
// SAFETY: likewise.
unsafe impl<S: PoolCore + Send + Sync> Sync for WeakHandle<S> {}

impl<S: PoolCore> Handle<S> {
    /// Makes a weak handle of the same pool. See [`WeakHandle`].
    ///
    /// Cost: one locked instruction.
    ///
    /// # Panics
    ///
    /// Panics if more than `usize::MAX / 2` weak handles exist, which is possible only if most were
    /// forgotten. The pool is unchanged then.
    #[must_use]
    pub fn downgrade(&self) -> WeakHandle<S> {
        self.ref_counts().add_weak();
        // SAFETY: of a handle; the reference was counted just now.
        WeakHandle { kept: unsafe { CoreRef::new(self.shared, 1) } }
    }
}

impl<S: PoolCore> WeakHandle<S> {
    /// Makes a handle of the pool, or returns `None` if the pool was dropped.
    ///
    /// If all other handles are dropped before this one, the pool ends with this one.
    ///
    /// Cost: a locked instruction.
    #[must_use]
    pub fn upgrade(&self) -> Option<Handle<S>> {
        let shared = self.kept.shared;
        // SAFETY: the reference keeps it valid.
        let counts = unsafe { shared.as_ref() }.ref_counts();
        // Not made before it is counted: its drop would count it off.
        counts.try_add_handle().then(|| Handle { shared })
    }

    /// Returns the address of the bookkeeping, which is valid while this handle exists.
    #[must_use]
    pub fn as_ptr(&self) -> NonNull<S> {
        self.kept.shared
    }
}

impl<S: PoolCore> fmt::Debug for WeakHandle<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WeakHandle").finish_non_exhaustive()
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use alloc::rc::Rc;
    use core::cell::Cell;
    use core::panic::AssertUnwindSafe;
    use std::panic::catch_unwind;

    use super::*;
    use crate::shared_pool::ref_counts::RefCounts;

    /// Counts its ends, and notes when it is freed.
    struct Shared {
        counts: RefCounts,
        ends: Rc<Cell<u32>>,
        _freed: Rc<()>,
    }

    // SAFETY: one field, which only these tests reach; they take what they added.
    unsafe impl PoolCore for Shared {
        fn ref_counts(&self) -> &RefCounts {
            &self.counts
        }

        unsafe fn close(this: NonNull<Self>) {
            // SAFETY: the caller keeps it.
            let ends = &unsafe { this.as_ref() }.ends;
            ends.set(ends.get() + 1);
        }
    }

    /// Makes a pool's one handle, and what notes its end.
    fn pool() -> (Handle<Shared>, Rc<Cell<u32>>, Rc<()>) {
        let (ends, freed) = (Rc::new(Cell::new(0)), Rc::new(()));
        let shared =
            Shared { counts: RefCounts::one_handle(), ends: Rc::clone(&ends), _freed: Rc::clone(&freed) };
        (Handle::new(shared).expect("room"), ends, freed)
    }

    #[test]
    fn it_keeps_the_bookkeeping_and_not_the_pool() {
        let (handle, ends, freed) = pool();
        let weak = handle.downgrade();
        let upgraded = weak.upgrade().expect("the pool lives");
        drop(handle);
        assert_eq!(ends.get(), 0, "the upgraded handle holds it");
        drop(upgraded);
        assert_eq!(ends.get(), 1, "it was the last handle");
        assert!(weak.upgrade().is_none());
        assert!(weak.upgrade().is_none());
        assert_eq!((ends.get(), Rc::strong_count(&freed)), (1, 2), "ended once, and kept");
        drop(weak);
        assert_eq!(Rc::strong_count(&freed), 1, "freed");
    }
    /// As many were forgotten as make the count wrap soon. That they are counted is all that is
    /// left of them.
    #[test]
    fn too_many_are_refused() {
        const FORGOTTEN: usize = usize::MAX / 2;
        let (handle, ends, freed) = pool();
        assert!(!handle.ref_counts().drop_refs(FORGOTTEN.wrapping_neg()));
        for _ in 0..3 {
            let refused = catch_unwind(AssertUnwindSafe(|| handle.downgrade()));
            assert!(refused.is_err(), "one too many");
        }
        assert!(!handle.ref_counts().drop_refs(FORGOTTEN));
        drop(handle.downgrade());
        drop(handle);
        assert_eq!((ends.get(), Rc::strong_count(&freed)), (1, 1), "each was counted once");
    }
}
