//! Handles of a pool, and references to its bookkeeping; see [`crate::Handle`].

mod weak;

use alloc::boxed::Box;
use core::fmt;
use core::ops::Deref;
use core::ptr::NonNull;

pub use self::weak::WeakHandle;
use crate::shared_pool::ref_counts::RefCounts;
use bufcore::author::try_box;

/// The state that all handles of a pool share, with their reference counts.
///
/// # Safety
///
/// 1. [`ref_counts`](Self::ref_counts) always returns the same counts for a value. They were made
///    with the value, by [`RefCounts::one_handle`], and the strategy gives no other code access to
///    them.
/// 2. The strategy removes from the counts only references that it added, and never a handle.
///
/// ```
/// use std::ptr::NonNull;
/// use std::sync::atomic::{AtomicBool, Ordering};
///
/// use bufkit::{PoolCore, Handle, RefCounts};
///
/// struct Shared {
///     counts: RefCounts,
///     is_closed: &'static AtomicBool,
/// }
///
/// // SAFETY: one field, made with the value; nothing but handles is counted.
/// unsafe impl PoolCore for Shared {
///     fn ref_counts(&self) -> &RefCounts {
///         &self.counts
///     }
///
///     unsafe fn close(this: NonNull<Self>) {
///         // SAFETY: the caller keeps it until this returns.
///         unsafe { this.as_ref() }.is_closed.store(true, Ordering::Relaxed);
///     }
/// }
///
/// /// A pool that threads share.
/// #[derive(Clone)]
/// struct Pool(Handle<Shared>);
///
/// static IS_CLOSED: AtomicBool = AtomicBool::new(false);
/// let shared = Shared { counts: RefCounts::one_handle(), is_closed: &IS_CLOSED };
/// let pool = Pool(Handle::new(shared).expect("room for the bookkeeping"));
/// let other = pool.clone();
/// drop(pool);
/// assert!(!IS_CLOSED.load(Ordering::Relaxed));
/// drop(other); // the last handle ends the pool
/// assert!(IS_CLOSED.load(Ordering::Relaxed));
/// ```
pub unsafe trait PoolCore: Sized {
    /// Returns the counts of the handles, and of the references.
    fn ref_counts(&self) -> &RefCounts;

    /// Ends the pool: the last handle was dropped.
    ///
    /// # Safety
    ///
    /// 1. No handle is left, and this is called once.
    /// 2. The caller keeps the reference of all handles until this returns.
    unsafe fn close(this: NonNull<Self>);
}

/// A handle of a shared pool: the pool's type is built from it. Clones share one pool, which lives
/// until the last of them is dropped. [`PoolCore`] has an example of a whole pool.
///
/// # Invariants
///
/// - `shared` was made by [`try_box`], and is valid while the handle lives: the handle is counted,
///   and all handles have a reference.
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
/// let other = handle.clone();
/// let name = std::thread::spawn(move || other.name).join();
/// assert_eq!(name.unwrap(), handle.name);
/// ```
pub struct Handle<S: PoolCore> {
    shared: NonNull<S>,
}

// SAFETY: it gives out shared references, and the last one, on whatever thread, drops the value.
unsafe impl<S: PoolCore + Send + Sync> Send for Handle<S> {}
// SAFETY: likewise.
unsafe impl<S: PoolCore + Send + Sync> Sync for Handle<S> {}

impl<S: PoolCore> Handle<S> {
    /// Allocates the bookkeeping of a new pool. It returns the pool's first handle, or `None` if
    /// the allocation fails.
    pub fn new(shared: S) -> Option<Self> {
        Some(Self { shared: try_box(|| shared)? })
    }

    /// Returns the address of the bookkeeping, which is valid while a handle or a reference exists.
    #[inline]
    #[must_use]
    pub fn as_ptr(&self) -> NonNull<S> {
        self.shared
    }
}

impl<S: PoolCore> Deref for Handle<S> {
    type Target = S;

    #[inline]
    fn deref(&self) -> &S {
        // SAFETY: valid while this handle lives.
        unsafe { self.shared.as_ref() }
    }
}

impl<S: PoolCore> Clone for Handle<S> {
    /// Makes another handle of the same pool.
    ///
    /// Cost: one locked instruction.
    ///
    /// # Panics
    ///
    /// Panics as [`RefCounts::add_handle`] does.
    #[inline]
    fn clone(&self) -> Self {
        self.ref_counts().add_handle();
        Self { shared: self.shared }
    }
}

impl<S: PoolCore> Drop for Handle<S> {
    #[inline]
    fn drop(&mut self) {
        if self.ref_counts().drop_handle() {
            // SAFETY: the reference of all handles, of which this was the last.
            let _handles = unsafe { CoreRef::new(self.shared, 1) };
            // SAFETY: no handle is left, and the reference is given back when this has returned.
            unsafe { S::close(self.shared) };
        }
    }
}

impl<S: PoolCore> fmt::Debug for Handle<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handle").finish_non_exhaustive()
    }
}

/// Holds references to the bookkeeping of a pool, and drops them when it is dropped. The last one
/// frees the bookkeeping.
///
/// ```
/// # use std::ptr::NonNull;
/// use bufkit::{PoolCore, Handle, RefCounts, CoreRef};
///
/// struct Shared {
///     counts: RefCounts,
///     name: &'static str,
/// }
/// # // SAFETY: one field, made with the value; what is added is taken.
/// # unsafe impl PoolCore for Shared {
/// #     fn ref_counts(&self) -> &RefCounts {
/// #         &self.counts
/// #     }
/// #     unsafe fn close(_: NonNull<Self>) {}
/// # }
///
/// let shared = Shared { counts: RefCounts::one_handle(), name: "packets" };
/// let handle = Handle::new(shared).expect("room for the bookkeeping");
/// let bookkeeping = handle.as_ptr();
/// // SAFETY: of a handle, which keeps it.
/// let reference = unsafe { CoreRef::add(bookkeeping) }; // a thread's cache has one
/// drop(handle);
/// // SAFETY: the reference keeps it, although the pool has ended.
/// assert_eq!(unsafe { bookkeeping.as_ref() }.name, "packets");
/// drop(reference); // frees it
/// ```
pub struct CoreRef<S: PoolCore> {
    shared: NonNull<S>,
    count: usize,
}

impl<S: PoolCore> CoreRef<S> {
    /// Takes ownership of `count` references.
    ///
    /// # Safety
    ///
    /// 1. `shared` is the bookkeeping of a [`Handle`].
    /// 2. The references are the caller's, and not used otherwise.
    #[must_use = "the references are given back otherwise"]
    pub unsafe fn new(shared: NonNull<S>, count: usize) -> Self {
        Self { shared, count }
    }

    /// Adds a reference.
    ///
    /// # Safety
    ///
    /// 1. `shared` is the bookkeeping of a [`Handle`].
    /// 2. The caller holds a handle or a reference.
    #[must_use = "the reference is given back otherwise"]
    pub unsafe fn add(shared: NonNull<S>) -> Self {
        // SAFETY: the caller keeps it.
        unsafe { shared.as_ref() }.ref_counts().add_ref();
        Self { shared, count: 1 }
    }
}

impl<S: PoolCore> Drop for CoreRef<S> {
    fn drop(&mut self) {
        // SAFETY: the references keep it valid.
        let shared = unsafe { self.shared.as_ref() };
        if shared.ref_counts().drop_refs(self.count) {
            // SAFETY: made by `try_box`, and nobody has a reference (`PoolCore`, rules 1 and 2).
            drop(unsafe { Box::from_raw(self.shared.as_ptr()) });
        }
    }
}

impl<S: PoolCore> fmt::Debug for CoreRef<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CoreRef").field("count", &self.count).finish_non_exhaustive()
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use alloc::rc::Rc;
    use alloc::vec::Vec;
    use core::cell::RefCell;

    use super::*;

    struct Shared {
        counts: RefCounts,
        events: Rc<RefCell<Vec<&'static str>>>,
    }

    // SAFETY: one field, which only these tests reach; they take what they added.
    unsafe impl PoolCore for Shared {
        fn ref_counts(&self) -> &RefCounts {
            &self.counts
        }

        unsafe fn close(this: NonNull<Self>) {
            // SAFETY: the caller keeps it.
            unsafe { this.as_ref() }.events.borrow_mut().push("closed");
        }
    }

    impl Drop for Shared {
        fn drop(&mut self) {
            self.events.borrow_mut().push("freed");
        }
    }

    #[test]
    fn the_last_handle_closes_and_the_last_reference_frees() {
        let events = Rc::new(RefCell::new(Vec::new()));
        let shared = Shared { counts: RefCounts::one_handle(), events: Rc::clone(&events) };
        let handle = Handle::new(shared).expect("room");
        // SAFETY: the handle keeps it.
        let kept = unsafe { CoreRef::add(handle.as_ptr()) };
        drop(handle.clone());
        assert!(events.borrow().is_empty());
        drop(handle);
        assert_eq!(*events.borrow(), ["closed"]);
        drop(kept);
        assert_eq!(*events.borrow(), ["closed", "freed"]);
    }
}
