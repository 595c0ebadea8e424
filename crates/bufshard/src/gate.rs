//! A lock for a few instructions, which a forked process takes over.
//!
//! A fork copies a lock as it is at that moment: one that another thread has is locked in the child
//! for ever, since the child lacks that thread. So the word of this lock is the number of the
//! process whose thread has it. A child that finds another number gives up the value, which may be
//! half changed, and begins with a new one.
//!
//! # Invariants
//!
//! - G1: `value` is accessed by the thread that has made `holder` the number of its own process,
//!   until it makes it 0.
//! - G2: nothing that is done meanwhile panics, waits, or calls the user's code.

#[cfg(any(loom, shuttle))]
pub(crate) use models::{Entered, Gate};
#[cfg(not(any(loom, shuttle)))]
pub(crate) use own::{Entered, Gate};

// Also for a model of its own.
#[cfg(any(not(any(loom, shuttle)), all(test, loom)))]
mod own {
    use core::cell::UnsafeCell;
    use core::marker::PhantomData;
    use core::ops::{Deref, DerefMut};
    use std::process;

    use crate::sync::{AtomicU32, Ordering};

    /// `holder` while nobody has the lock.
    const NOBODY: u32 = 0;

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
        bufcore::strategy::sync::checker::thread::yield_now();
    }

    /// See the head of the file.
    pub(crate) struct Gate<T> {
        holder: AtomicU32,
        value: UnsafeCell<T>,
    }

    // SAFETY: one thread has the value at a time (G1), and it may be moved to any.
    unsafe impl<T: Send> Sync for Gate<T> {}

    /// The lock, until this is dropped.
    pub(crate) struct Entered<'a, T>(&'a Gate<T>, PhantomData<*mut T>);

    impl<T: Default> Gate<T> {
        pub(crate) fn new() -> Self {
            Self { holder: AtomicU32::new(NOBODY), value: UnsafeCell::new(T::default()) }
        }

        pub(crate) fn lock(&self) -> Entered<'_, T> {
            let own = process::id();
            let mut tries = 0;
            loop {
                if let Some(entered) = self.enter(own) {
                    return entered;
                }
                pause(tries);
                tries = tries.saturating_add(1);
            }
        }

        /// The lock, if no thread of this process has it.
        pub(crate) fn try_lock(&self) -> Option<Entered<'_, T>> {
            self.enter(process::id())
        }

        fn enter(&self, own: u32) -> Option<Entered<'_, T>> {
            // ORDER: Acquire pairs with the Release in `drop`: the value is as it was left.
            let locked = self.holder.compare_exchange(NOBODY, own, Ordering::Acquire, Ordering::Relaxed);
            match locked {
                Ok(_) => Some(Entered(self, PhantomData)),
                Err(other) if other != own => {
                    // ORDER: Relaxed: the thread that had it is not in this process.
                    self.holder.compare_exchange(other, own, Ordering::Relaxed, Ordering::Relaxed).ok()?;
                    // SAFETY: this thread has the lock (G1). The old value is not dropped: it may
                    // be half changed.
                    unsafe { self.value.get().write(T::default()) };
                    Some(Entered(self, PhantomData))
                }
                Err(_) => None,
            }
        }
    }

    impl<T> Deref for Entered<'_, T> {
        type Target = T;

        fn deref(&self) -> &T {
            // SAFETY: this thread has the lock (G1).
            unsafe { &*self.0.value.get() }
        }
    }

    impl<T> DerefMut for Entered<'_, T> {
        fn deref_mut(&mut self) -> &mut T {
            // SAFETY: likewise, and the borrow of this is exclusive.
            unsafe { &mut *self.0.value.get() }
        }
    }

    impl<T> Drop for Entered<'_, T> {
        fn drop(&mut self) {
            // ORDER: Release pairs with the Acquire in `enter`.
            self.0.holder.store(NOBODY, Ordering::Release);
        }
    }
}

/// The same with the model checker's lock: it has no processes.
#[cfg(any(loom, shuttle))]
mod models {
    use crate::sync::{self, Mutex, MutexGuard};

    pub(crate) struct Gate<T>(Mutex<T>);
    pub(crate) type Entered<'a, T> = MutexGuard<'a, T>;

    impl<T: Default> Gate<T> {
        pub(crate) fn new() -> Self {
            Self(Mutex::new(T::default()))
        }

        pub(crate) fn lock(&self) -> Entered<'_, T> {
            sync::lock(&self.0)
        }

        pub(crate) fn try_lock(&self) -> Option<Entered<'_, T>> {
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
        let gate = Gate::<[usize; 2]>::new();
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..ROUNDS {
                        let mut both = gate.lock();
                        both[0] += 1;
                        both[1] += 1;
                        assert_eq!(both[0], both[1]);
                    }
                });
            }
        });
        assert_eq!(*gate.lock(), [4 * ROUNDS; 2]);
    }

    /// The lock is held at the moment of the fork, by a thread that the child lacks.
    #[test]
    #[cfg(unix)]
    fn a_child_takes_it_over() {
        alone(module_path!(), "a_child_takes_it_over", Duration::from_secs(60), || {
            let gate = Gate::<Vec<u8>>::new();
            gate.lock().push(1);
            let mut held = gate.lock();
            assert!(gate.try_lock().is_none());
            let ended = forked(Duration::from_secs(10), || {
                let len = gate.lock().len() as u8;
                gate.lock().push(2);
                len * 10 + gate.lock().len() as u8
            });
            assert_eq!(ended, Ended::With(1), "it begins anew, and its lock is one");
            held.push(3);
            assert_eq!(*held, [1, 3], "the parent's is its own");
            let ended = forked(Duration::from_secs(10), || {
                gate.try_lock().map_or(100, |value| value.len() as u8) + gate.lock().len() as u8
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

    use super::own::Gate;

    /// Two threads use the value: what one did with it, the other sees.
    #[test]
    fn loom_gate_one_at_a_time() {
        loom::model(|| {
            let gate = Arc::new(Gate::<Shadow>::new());
            let other = {
                let gate = Arc::clone(&gate);
                thread::spawn(move || gate.lock().write())
            };
            gate.lock().write();
            other.join().unwrap();
            assert_eq!(gate.lock().read(), 2);
        });
    }
    /// Likewise, where one of them does without.
    #[test]
    fn loom_gate_tried() {
        loom::model(|| {
            let gate = Arc::new(Gate::<Shadow>::new());
            let other = {
                let gate = Arc::clone(&gate);
                thread::spawn(move || gate.try_lock().map(|value| value.write()).is_some())
            };
            gate.lock().write();
            let tried = other.join().unwrap();
            assert_eq!(gate.lock().read(), 1 + u32::from(tried));
        });
    }
}
