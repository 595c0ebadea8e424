//! What happens to the heap when the process forks.
//!
//! # Invariants
//!
//! - F1: from before a fork until after it, the thread that forks holds the heap's lock, in the
//!   parent and in the child. It does not use the heap meanwhile: what other fork handlers free is
//!   deferred, and what they allocate is of the allocator below.
//! - F2: a deferred block is free, and its first bytes link to the next.

#[cfg(unix)]
pub(crate) use self::unix::{defer, is_here, register};

/// No process forks.
#[cfg(not(unix))]
pub(crate) fn register() -> bool {
    true
}

/// Returns `false`.
#[cfg(not(unix))]
#[inline]
pub(crate) fn is_here() -> bool {
    false
}

/// Does nothing.
///
/// # Safety
///
/// Not called.
#[cfg(not(unix))]
pub(crate) unsafe fn defer(_: bufkit::Span) {}

#[cfg(unix)]
mod unix {
    use core::cell::{Cell, UnsafeCell};
    use core::ffi::c_int;
    use core::ptr::{self, NonNull};
    use std::thread_local;

    use bufkit::{Given, HeldHeap, PageHeap, Span};

    use crate::{heap, upkeep};

    unsafe extern "C" {
        fn pthread_atfork(
            prepare: Option<extern "C" fn()>,
            parent: Option<extern "C" fn()>,
            child: Option<extern "C" fn()>,
        ) -> c_int;
    }

    /// What the thread that forks has.
    struct Fork {
        heap: &'static PageHeap,
        lock: HeldHeap<'static>,
        /// The first of the deferred blocks (F2).
        deferred: *mut u8,
    }

    struct Place(UnsafeCell<Option<Fork>>);

    // SAFETY: only the thread that holds the lock of the heap reaches it (F1).
    unsafe impl Sync for Place {}

    static FORK: Place = Place(UnsafeCell::new(None));

    thread_local! {
        /// Whether this thread forks, and has the lock. Without a destructor, it is always there.
        static IS_HERE: Cell<bool> = const { Cell::new(false) };
    }

    /// Has the handlers called at each fork. Returns `false` where the system refuses.
    pub(crate) fn register() -> bool {
        // SAFETY: functions of this crate, which do not unwind.
        unsafe { pthread_atfork(Some(prepare), Some(parent), Some(child)) == 0 }
    }

    /// Returns whether this thread is between the handlers of a fork.
    #[inline]
    pub(crate) fn is_here() -> bool {
        IS_HERE.try_with(Cell::get).unwrap_or(false)
    }

    /// Keeps a span until after the fork.
    ///
    /// # Safety
    ///
    /// As for `PageHeap::give`, and the fork is here.
    #[cold]
    pub(crate) unsafe fn defer(span: Span) {
        // SAFETY: this thread has the lock.
        if let Some(fork) = unsafe { &mut *FORK.0.get() } {
            // SAFETY: the caller's span, who gives it up.
            let start = unsafe { span.start() };
            // SAFETY: likewise: a page and more.
            unsafe { start.cast::<*mut u8>().write(fork.deferred) };
            fork.deferred = start.as_ptr();
        }
    }

    extern "C" fn prepare() {
        if let Some(heap) = heap::get() {
            let lock = heap.hold();
            let fork = Fork { heap, lock, deferred: ptr::null_mut() };
            // SAFETY: this thread has the lock.
            unsafe { *FORK.0.get() = Some(fork) };
            IS_HERE.set(true);
        }
    }

    extern "C" fn parent() {
        if !is_here() {
            // The heap was made since.
            return;
        }
        // SAFETY: this thread has the lock.
        let fork = unsafe { (*FORK.0.get()).take() };
        IS_HERE.set(false);
        let Some(Fork { heap, lock, deferred }) = fork else { return };
        drop(lock);
        let mut next = NonNull::new(deferred);
        let deferred = || {
            let start = next?;
            // SAFETY: a link to the next (F2).
            next = NonNull::new(unsafe { start.cast::<*mut u8>().read() });
            heap.span_at(start).map(Given::Span)
        };
        // SAFETY: each was given up.
        unsafe { heap.give_all(deferred) };
    }

    extern "C" fn child() {
        upkeep::in_child();
        parent();
    }
}
