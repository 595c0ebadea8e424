//! A lock that an allocator may take: it allocates nothing, and nobody waits for it for ever.

use core::cell::UnsafeCell;
use core::hint;
use core::ops::{Deref, DerefMut};
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use super::system;

const FREE: u32 = 0;
const TAKEN: u32 = 1;

/// A turn of work under a lock is shorter than this many looks, unless its thread is not running.
const SPINS: u32 = 200;
/// The owner may be off the processor, or waiting for a disk: some tenths of a second to seconds.
const NAPS: u32 = 10_000;

/// A value that one thread at a time has.
#[derive(Debug)]
pub(super) struct Lock<T> {
    word: AtomicU32,
    /// The last one who wanted it gave up.
    is_given_up: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: `Held` is made by the one thread whose exchange found the word free, so the value is
// never reached from two threads at once. It moves between threads, hence `Send`.
unsafe impl<T: Send> Sync for Lock<T> {}

impl<T> Lock<T> {
    /// Takes the lock, or gives up after a long time.
    ///
    /// The owner may be gone: a thread that was killed, or that jumped out of a signal's handler.
    /// The program is worth more than an event, so only one thread waits that long. Whoever comes
    /// later looks once, until the owner is back after all.
    pub(super) fn take(&self) -> Option<Held<'_, T>> {
        // ORDER: Relaxed, for all of `is_given_up`: it says how long to wait, and nothing else.
        let is_given_up = self.is_given_up.load(Ordering::Relaxed);
        let held = self.take_within(if is_given_up { 1 } else { SPINS + NAPS });
        if held.is_some() == is_given_up {
            // ORDER: as above.
            self.is_given_up.store(!is_given_up, Ordering::Relaxed);
        }
        held
    }

    /// Takes the lock, or gives up after a long time, whatever others did: for what is done once.
    pub(super) fn take_in_any_case(&self) -> Option<Held<'_, T>> {
        self.take_within(SPINS + NAPS)
    }

    fn take_within(&self, turns: u32) -> Option<Held<'_, T>> {
        for turn in 0..turns {
            // ORDER: Acquire pairs with the Release in `Held::drop`: what the last owner wrote is
            // seen. A failure reads nothing, hence Relaxed.
            let taken = self.word.compare_exchange(FREE, TAKEN, Ordering::Acquire, Ordering::Relaxed);
            if taken.is_ok() {
                return Some(Held { lock: self });
            }
            if turn < SPINS {
                hint::spin_loop();
            } else {
                system::nap();
            }
        }
        None
    }
}

/// The lock is taken.
#[derive(Debug)]
pub(super) struct Held<'a, T> {
    lock: &'a Lock<T>,
}

impl<T> Deref for Held<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: this thread alone has the lock as long as `self` is there, and `&self` allows no
        // change through it.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T> DerefMut for Held<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: this thread alone has the lock, and `&mut self` is the only way to it.
        unsafe { &mut *self.lock.value.get() }
    }
}

impl<T> Drop for Held<'_, T> {
    fn drop(&mut self) {
        // ORDER: Release pairs with the Acquire in `take`: the next owner sees what was written.
        self.lock.word.store(FREE, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lock(value: u64) -> Lock<u64> {
        Lock {
            word: AtomicU32::new(FREE),
            is_given_up: AtomicBool::new(false),
            value: UnsafeCell::new(value),
        }
    }

    #[test]
    fn one_at_a_time() {
        let lock = lock(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..1000 {
                        *lock.take().expect("nobody keeps it") += 1;
                    }
                });
            }
        });
        assert_eq!(*lock.take().unwrap(), 4000);
    }

    #[test]
    fn an_owner_that_never_comes_back_is_given_up() {
        let lock = lock(7);
        core::mem::forget(lock.take());
        assert!(lock.take().is_none());
        // The program does not wait like that, for half a second, for each event. The best of some:
        // others have the processor too.
        let look = |_| {
            let started = std::time::Instant::now();
            assert!(lock.take().is_none());
            started.elapsed()
        };
        let least = (0..5).map(look).min().unwrap();
        assert!(least < core::time::Duration::from_millis(200), "{least:?}");
        drop(Held { lock: &lock });
        assert_eq!(*lock.take().unwrap(), 7);
        core::mem::forget(lock.take());
        assert!(lock.take().is_none(), "the owner was back, so this one waited again");
    }
}
