//! The place of the one request that waits.

use alloc::boxed::Box;
use core::fmt;
use core::mem;
use core::ptr::{self, NonNull};

use crate::strategy::{Sleeper, boxed};
use crate::sync::{AtomicPtr, Ordering};

/// Keeps whom to wake, for the one request that waits for a pool. One thread puts a sleeper in, any
/// thread takes it out.
///
/// There is no lock, so it works in the destructors of buffers, and in the child after a fork.
///
/// # Invariants
///
/// - L1: the pointer is null, or that of a box from `boxed`. A thread that takes it out of here has
///   the box alone.
///
/// ```
/// use std::task::Waker;
///
/// use bufcore::strategy::{Sleeper, WaitPlace};
///
/// let place = WaitPlace::new();
/// let before = place.put(Sleeper::task(Waker::noop().clone())).expect("room for it");
/// assert!(before.is_none());
/// place.take().expect("it was put there").wake();
/// assert!(place.take().is_none());
/// ```
pub struct WaitPlace(AtomicPtr<Waiter>);

/// A sleeper that was taken out of its [`WaitPlace`]. It is woken by [`wake`](Self::wake), when the
/// memory is free.
///
/// ```
/// use std::task::Waker;
///
/// use bufcore::strategy::{Sleeper, WaitPlace};
///
/// let place = WaitPlace::new();
/// let mut taken = None;
/// for _ in 0..2 {
///     place.put(Sleeper::task(Waker::noop().clone())).expect("room for it");
///     taken = place.take().map(|newer| newer.and(taken.take()));
/// }
/// // Here the memory is given back. What follows is the user's code.
/// taken.expect("two were put there").wake();
/// ```
pub struct Taken(Box<Waiter>);

struct Waiter {
    sleeper: Sleeper,
    /// Those that were taken before by the same release.
    older: Option<Box<Self>>,
}

impl WaitPlace {
    /// Makes a place where nobody waits.
    #[must_use]
    pub fn new() -> Self {
        Self(AtomicPtr::new(ptr::null_mut()))
    }

    /// Puts `sleeper` in, and returns the one that it replaces. That one is to be dropped when
    /// nothing is half-made, since its drop may be the user's code.
    ///
    /// It returns `None` when there is no memory for it. Then nobody is in the place.
    ///
    /// Cost: an allocation of a few words, unless one is replaced.
    pub fn put(&self, sleeper: Sleeper) -> Option<Option<Sleeper>> {
        let (mut own, before) = match self.take() {
            Some(Taken(mut own)) => {
                let before = mem::replace(&mut own.sleeper, sleeper);
                (own, Some(before))
            }
            None => {
                let own = boxed(Waiter { sleeper, older: None })?;
                // SAFETY: made by `boxed`, and nobody else has it.
                (unsafe { Box::from_raw(own.as_ptr()) }, None)
            }
        };
        loop {
            let place = Box::into_raw(own);
            // ORDER: Release pairs with the Acquire in `take`: whoever takes it out sees the
            // sleeper. A failure reads nothing that is used.
            let put = self.0.compare_exchange(ptr::null_mut(), place, Ordering::Release, Ordering::Relaxed);
            if put.is_ok() {
                return Some(before);
            }
            // SAFETY: it was not put in, so this thread still has it alone (L1).
            own = unsafe { Box::from_raw(place) };
            // Of another request, which a pool that serves one at a time does not have.
            drop(self.take());
        }
    }

    /// Takes out whom to wake, if there is anybody.
    #[must_use]
    pub fn take(&self) -> Option<Taken> {
        // ORDER: Acquire pairs with the Release in `put`.
        let own = NonNull::new(self.0.swap(ptr::null_mut(), Ordering::Acquire))?;
        // SAFETY: made by `boxed` in `put`, and taken out of the place by this exchange (L1).
        Some(Taken(unsafe { Box::from_raw(own.as_ptr()) }))
    }
}

impl Taken {
    /// Adds those to wake that were taken before.
    #[must_use]
    pub fn and(mut self, before: Option<Self>) -> Self {
        self.0.older = before.map(|before| before.0);
        self
    }

    /// Wakes, whatever the wakers do: see [`Sleeper::wake_caught`]. They are the user's code, so
    /// the caller has nothing locked or half-made.
    pub fn wake(self) {
        let mut next = Some(self.0);
        while let Some(waiter) = next {
            let Waiter { sleeper, older } = *waiter;
            next = older;
            sleeper.wake_caught();
        }
    }
}

impl Default for WaitPlace {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for WaitPlace {
    fn drop(&mut self) {
        drop(self.take());
    }
}

impl fmt::Debug for WaitPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WaitPlace").finish_non_exhaustive()
    }
}

impl fmt::Debug for Taken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Taken").field("sleeper", &self.0.sleeper).finish_non_exhaustive()
    }
}
