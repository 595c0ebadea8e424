//! How a pool wakes a keeper that sleeps; see [`crate::GrowthSignal`].

use alloc::vec::Vec;
use core::mem;
use core::task::Waker;

use bufcore::author::catch_user_panic;

use crate::sync::waiter::TaskWaker;
use crate::sync::{AtomicU32, Mutex, Ordering, try_lock};

/// Wakes the keepers of a pool that has grown.
///
/// A strategy has one with its bookkeeping. [`register`](Self::register) implements
/// `Trim::wake_when_grown`; the pool calls [`notify`](Self::notify) after it allocates memory.
///
/// A pool that allocates memory first records the size, then notifies. A keeper first registers,
/// then checks the pool's size once more. Either that check finds the new memory, or the
/// notification wakes the keeper. Between the two steps of each there is a fence. It costs the pool
/// nothing if the system supports asymmetric fences.
///
/// No thread waits for its lock. A notification during a registration is left to the check that
/// follows the registration; one during another notification is left to that one. The waker of a
/// keeper that has ended is kept until the next notification.
///
/// ```
/// use std::sync::Arc;
/// use std::sync::atomic::{AtomicU32, Ordering};
/// use std::task::{Wake, Waker};
///
/// use bufkit::GrowthSignal;
///
/// #[derive(Default)]
/// struct Wakes(AtomicU32);
/// impl Wake for Wakes {
///     fn wake(self: Arc<Self>) {
///         self.0.fetch_add(1, Ordering::Relaxed);
///     }
/// }
///
/// let (growth, wakes) = (GrowthSignal::default(), Arc::new(Wakes::default()));
/// growth.notify(); // no waker is registered
/// assert!(growth.register(&Waker::from(wakes.clone())));
/// growth.notify();
/// growth.notify(); // once for each registration
/// assert_eq!(wakes.0.load(Ordering::Relaxed), 1);
/// ```
#[derive(Debug, Default)]
pub struct GrowthSignal {
    /// Not 0 while there are wakers.
    is_armed: AtomicU32,
    wakers: Mutex<Vec<TaskWaker>>,
}

impl GrowthSignal {
    /// Wakes the wakers that were registered since the last notification. The caller holds no lock
    /// and has no inconsistent state: wakers are users' code. A panic of a waker is caught after
    /// its hook ran.
    ///
    /// Cost: one load if no waker is registered.
    #[inline]
    pub fn notify(&self) {
        // No part of the models of pools, which would have more steps in each request.
        if !cfg!(any(loom, shuttle)) {
            self.notify_now();
        }
    }

    /// Rings as `notify` does, in models too.
    #[inline]
    pub(crate) fn notify_now(&self) {
        light_fence();
        // ORDER: Relaxed: the fence pairs with that of `register`. Either this finds the bell
        // armed, or the keeper's next look finds what its caller did before.
        if self.is_armed.load(Ordering::Relaxed) != 0 {
            self.wake_all();
        }
    }

    #[cold]
    #[inline(never)]
    fn wake_all(&self) {
        let wakers = {
            let Some(mut wakers) = try_lock(&self.wakers) else { return };
            // ORDER: Relaxed: the lock orders it before the next `register`.
            self.is_armed.store(0, Ordering::Relaxed);
            mem::take(&mut *wakers)
        };
        // Users' code, with nothing locked. A panic of one waker is neither for the others nor for
        // this caller.
        for waker in wakers {
            let _ = catch_user_panic(|| waker.wake());
        }
    }

    /// Keeps a clone of `waker` for the next notification. It returns `false` if another thread
    /// uses the signal at this moment, if the allocation fails, or if the system refuses the fence.
    ///
    /// Cost: an allocation for the first waker, and a system call on Linux.
    #[must_use = "the waker may not be kept"]
    pub fn register(&self, waker: &Waker) -> bool {
        // Wakers are users' code: cloned before the lock, and dropped after it.
        let waker = waker.clone();
        let Some(mut wakers) = try_lock(&self.wakers) else { return false };
        if !wakers.iter().any(|other| other.will_wake(&waker)) {
            if wakers.try_reserve(1).is_err() {
                return false;
            }
            wakers.push(TaskWaker::new(waker));
        }
        // ORDER: Relaxed: the fence orders it before what the caller looks at next.
        self.is_armed.store(1, Ordering::Relaxed);
        // A ring that finds the lock held is left to that look.
        drop(wakers);
        heavy_fence()
    }
}

/// Executes the fence between what a pool does and its ring.
#[inline(always)]
fn light_fence() {
    // Models look at the fences of this file.
    #[cfg(all(feature = "fences", not(any(loom, shuttle))))]
    crate::sync::fences::light();
    // ORDER: SeqCst pairs with that in `heavy_fence`.
    #[cfg(not(all(feature = "fences", not(any(loom, shuttle)))))]
    crate::sync::fence(Ordering::SeqCst);
}

/// Executes the fence between what `register` does and the keeper's next look. Returns `false` when
/// the system refuses it.
fn heavy_fence() -> bool {
    #[cfg(all(feature = "fences", not(any(loom, shuttle))))]
    return crate::sync::fences::has_heavy() && crate::sync::fences::heavy(false);
    // ORDER: SeqCst pairs with that in `light_fence`.
    #[cfg(not(all(feature = "fences", not(any(loom, shuttle)))))]
    {
        crate::sync::fence(Ordering::SeqCst);
        true
    }
}
