//! A lock for a few instructions, which a forked process takes over; see
//! [`crate::strategy::sync::ForkLock`].
//!
//! # Invariants
//!
//! - G1: `value` is accessed by the thread that has made `holder` the number of its own process,
//!   until it makes it 0.

#[cfg(any(loom, shuttle))]
pub use models::{ForkGuard, Modelled as ForkLock};
#[cfg(not(any(loom, shuttle)))]
pub use own::{ForkGuard, ForkLock};

// Also for a model of its own.
#[cfg(any(not(any(loom, shuttle)), all(test, loom)))]
mod own {
    use core::cell::UnsafeCell;
    use core::fmt;
    use core::marker::PhantomData;
    use core::ops::{Deref, DerefMut};
    use core::panic::{RefUnwindSafe, UnwindSafe};
    use std::process;

    use crate::sync::{AtomicU32, Ordering};

    /// `holder` while nobody has the lock.
    const NOBODY: u32 = 0;

    /// Returns the number of this process, where processes fork, or 1.
    fn own_process() -> u32 {
        if cfg!(unix) { process::id() } else { 1 }
    }

    /// Lets others run before the next look, of which there were `tries`.
    #[cfg(not(loom))]
    fn pause(tries: u32) {
        use core::hint;
        use core::time::Duration;
        use std::thread;

        /// Looks in a row, then one for each time that others may run, then some that are apart.
        const LOOKS: u32 = 100;
        const YIELDS: u32 = 1000;
        const PAUSE: Duration = Duration::from_micros(50);

        match tries {
            0..LOOKS => hint::spin_loop(),
            LOOKS..YIELDS => thread::yield_now(),
            _ => thread::sleep(PAUSE),
        }
    }

    #[cfg(loom)]
    fn pause(_tries: u32) {
        crate::sync::checker::thread::yield_now();
    }

    /// A lock that a forked process takes over, for what takes a few instructions.
    ///
    /// A fork copies a lock as it is at that moment. One that another thread has is locked in the
    /// child for ever, since the child lacks that thread. So the word of this lock is the number of
    /// the process whose thread has it. A child that finds another number gives up the value, which
    /// may be half changed, and begins with a new one. The old value is leaked there.
    ///
    /// A thread that has the lock does not wait, and calls no code of the user's. A thread that
    /// wants the lock looks again and again, with short sleeps after a while.
    ///
    /// A thread that forks has no such lock: in the child, a guard of the parent's would be beside
    /// that of a thread which takes the lock over. `fork` is unsafe, so its caller has to see to
    /// that. A process that gets the number of a dead ancestor, which had the lock at a fork, waits
    /// for that one.
    ///
    /// Cost: an exchange and a call for the number of the process to lock it, and an exchange to
    /// unlock.
    ///
    /// ```
    /// use bufcore::strategy::sync::ForkLock;
    ///
    /// let lock = ForkLock::<Vec<u8>>::default();
    /// lock.lock().push(1);
    /// let guard = lock.lock();
    /// assert!(lock.try_lock().is_none());
    /// assert_eq!(*guard, [1]);
    /// ```
    pub struct ForkLock<T> {
        holder: AtomicU32,
        value: UnsafeCell<T>,
    }

    // SAFETY: one thread has the value at a time (G1), and it may be moved to any.
    unsafe impl<T: Send> Sync for ForkLock<T> {}
    // As a lock that ignores poisoning.
    impl<T> UnwindSafe for ForkLock<T> {}
    impl<T> RefUnwindSafe for ForkLock<T> {}

    /// Holds a [`ForkLock`] until it is dropped.
    ///
    /// ```
    /// use bufcore::strategy::sync::{ForkGuard, ForkLock};
    ///
    /// fn count(numbers: &mut ForkGuard<'_, Vec<u8>>) -> usize {
    ///     numbers.push(7);
    ///     numbers.len()
    /// }
    /// assert_eq!(count(&mut ForkLock::default().lock()), 1);
    /// ```
    #[must_use = "the lock is unlocked otherwise"]
    pub struct ForkGuard<'a, T> {
        lock: &'a ForkLock<T>,
        /// The number of the process that has it.
        own: u32,
        _here: PhantomData<*mut T>,
    }

    impl<T: Default> Default for ForkLock<T> {
        fn default() -> Self {
            Self { holder: AtomicU32::new(NOBODY), value: UnsafeCell::new(T::default()) }
        }
    }

    impl<T: Default> ForkLock<T> {
        /// Locks it, after the thread of this process that has it.
        pub fn lock(&self) -> ForkGuard<'_, T> {
            let mut tries = 0;
            loop {
                // A handler of a signal may have forked meanwhile.
                if let Some(guard) = self.enter(own_process()) {
                    return guard;
                }
                pause(tries);
                tries = tries.saturating_add(1);
            }
        }

        /// Locks it, if no thread of this process has it.
        pub fn try_lock(&self) -> Option<ForkGuard<'_, T>> {
            self.enter(own_process())
        }

        fn enter(&self, own: u32) -> Option<ForkGuard<'_, T>> {
            // ORDER: Acquire pairs with the Release in `drop`: the value is as it was left.
            let locked = self.holder.compare_exchange(NOBODY, own, Ordering::Acquire, Ordering::Relaxed);
            match locked {
                Ok(_) => Some(ForkGuard { lock: self, own, _here: PhantomData }),
                Err(other) if other != own => {
                    // Before the lock is taken: it is others' code.
                    let new = T::default();
                    // ORDER: Relaxed: the thread that had it is not in this process.
                    self.holder.compare_exchange(other, own, Ordering::Relaxed, Ordering::Relaxed).ok()?;
                    // SAFETY: this thread has the lock (G1). The old value is not dropped: it may
                    // be half changed.
                    unsafe { self.value.get().write(new) };
                    Some(ForkGuard { lock: self, own, _here: PhantomData })
                }
                Err(_) => None,
            }
        }
    }

    impl<T> fmt::Debug for ForkLock<T> {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.debug_struct("ForkLock").finish_non_exhaustive()
        }
    }

    impl<T: fmt::Debug> fmt::Debug for ForkGuard<'_, T> {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            (**self).fmt(f)
        }
    }

    impl<T> Deref for ForkGuard<'_, T> {
        type Target = T;

        fn deref(&self) -> &T {
            // SAFETY: this thread has the lock (G1).
            unsafe { &*self.lock.value.get() }
        }
    }

    impl<T> DerefMut for ForkGuard<'_, T> {
        fn deref_mut(&mut self) -> &mut T {
            // SAFETY: likewise, and the borrow of this is exclusive.
            unsafe { &mut *self.lock.value.get() }
        }
    }

    impl<T> Drop for ForkGuard<'_, T> {
        fn drop(&mut self) {
            // Not that of a child's thread which has taken the lock over.
            // ORDER: Release pairs with the Acquire in `enter`. A failure reads nothing.
            let _ = self.lock.holder.compare_exchange(self.own, NOBODY, Ordering::Release, Ordering::Relaxed);
        }
    }
}

/// The same with the model checker's lock: it has no processes.
#[cfg(any(loom, shuttle))]
mod models {
    use crate::sync::{self, Mutex, MutexGuard};

    #[derive(Debug)]
    pub struct Modelled<T>(Mutex<T>);
    pub type ForkGuard<'a, T> = MutexGuard<'a, T>;

    impl<T: Default> Default for Modelled<T> {
        fn default() -> Self {
            Self(Mutex::new(T::default()))
        }
    }

    impl<T> Modelled<T> {
        pub fn lock(&self) -> ForkGuard<'_, T> {
            sync::lock(&self.0)
        }

        pub fn try_lock(&self) -> Option<ForkGuard<'_, T>> {
            sync::try_lock(&self.0)
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle)), not(miri)))]
mod tests {
    use alloc::vec::Vec;
    use core::time::Duration;
    use std::thread;

    use buftest::process::alone;
    #[cfg(unix)]
    use buftest::sandbox::{Ended, forked};

    use super::*;

    #[test]
    fn one_at_a_time() {
        const ROUNDS: usize = 10_000;
        let lock = ForkLock::<[usize; 2]>::default();
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..ROUNDS {
                        let mut both = lock.lock();
                        both[0] += 1;
                        both[1] += 1;
                        assert_eq!(both[0], both[1]);
                    }
                });
            }
        });
        assert_eq!(*lock.lock(), [4 * ROUNDS; 2]);
    }

    /// The lock is held at the moment of the fork, by a thread that the child lacks.
    #[test]
    #[cfg(unix)]
    fn a_child_takes_it_over() {
        alone(module_path!(), "a_child_takes_it_over", Duration::from_secs(60), || {
            let lock = ForkLock::<Vec<u8>>::default();
            lock.lock().push(1);
            let mut held = lock.lock();
            assert!(lock.try_lock().is_none());
            let ended = forked(Duration::from_secs(10), || {
                let len = lock.lock().len() as u8;
                lock.lock().push(2);
                len * 10 + lock.lock().len() as u8
            });
            assert_eq!(ended, Ended::With(1), "it begins anew, and its lock is one");
            held.push(3);
            assert_eq!(*held, [1, 3], "the parent's is its own");
            let ended = forked(Duration::from_secs(10), || {
                lock.try_lock().map_or(100, |value| value.len() as u8) + lock.lock().len() as u8
            });
            assert_eq!(ended, Ended::With(0), "nor does it take no for an answer");
        });
    }
}

/// Models, which use the lock that the others replace.
#[cfg(all(test, loom))]
mod models_of_own {
    use buftest::models::Shadow;
    use loom::sync::Arc;
    use loom::thread;

    use super::own::ForkLock;

    /// Two threads use the value: what one did with it, the other sees.
    #[test]
    fn loom_lock_one_at_a_time() {
        loom::model(|| {
            let lock = Arc::new(ForkLock::<Shadow>::default());
            let other = {
                let lock = Arc::clone(&lock);
                thread::spawn(move || lock.lock().write())
            };
            lock.lock().write();
            other.join().unwrap();
            assert_eq!(lock.lock().read(), 2);
        });
    }
    /// Likewise, where one of them does without.
    #[test]
    fn loom_lock_tried() {
        loom::model(|| {
            let lock = Arc::new(ForkLock::<Shadow>::default());
            let other = {
                let lock = Arc::clone(&lock);
                thread::spawn(move || lock.try_lock().map(|value| value.write()).is_some())
            };
            lock.lock().write();
            let tried = other.join().unwrap();
            assert_eq!(lock.lock().read(), 1 + u32::from(tried));
        });
    }
}
