//! The lock of what is behind it, whose order tools can see.

use core::ops::{Deref, DerefMut};

use bufkit::sync::{self, AtomicUsize, Mutex, MutexGuard, Ordering};

/// A value that one thread at a time looks at.
///
/// Where threads contend for it, the standard library's lock is taken in a precompiled part of that
/// library, and ThreadSanitizer does not see the order which it makes. So each holder leaves the
/// same order a second time, in a word beside the lock: a plain store and a plain load in a line
/// that is there anyway.
pub(crate) struct Lock<T> {
    mutex: Mutex<T>,
    /// Always 0; only its order counts.
    turn: AtomicUsize,
}

impl<T> Lock<T> {
    pub(crate) fn new(value: T) -> Self {
        Self { mutex: Mutex::new(value), turn: AtomicUsize::new(0) }
    }

    /// Locks the value, whatever became of those who had it before: nothing that is done behind the
    /// lock panics half way.
    #[inline]
    pub(crate) fn lock(&self) -> Locked<'_, T> {
        let value = sync::lock(&self.mutex);
        if !cfg!(any(loom, shuttle)) {
            // ORDER: Acquire pairs with the Release in `Locked::drop`: what the last holder did
            // happened before.
            self.turn.load(Ordering::Acquire);
        }
        Locked { value, turn: &self.turn }
    }
}

/// The value, until this is dropped.
pub(crate) struct Locked<'a, T> {
    value: MutexGuard<'a, T>,
    turn: &'a AtomicUsize,
}

impl<T> Deref for Locked<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> DerefMut for Locked<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.value
    }
}

impl<T> Drop for Locked<'_, T> {
    #[inline]
    fn drop(&mut self) {
        if !cfg!(any(loom, shuttle)) {
            // ORDER: Release pairs with the Acquire in `Lock::lock`.
            self.turn.store(0, Ordering::Release);
        }
    }
}
