//! Small numbers for threads, the same for all recordings.
//!
//! The number of a thread that has ended is given to a later one. So a program that starts a thread
//! for each connection has only as many numbers as it has threads at once.

use alloc::collections::BinaryHeap;
use core::cell::Cell;
use core::cmp::Reverse;
use std::sync::{Mutex, MutexGuard, PoisonError};

const UNSET: u32 = u32::MAX;

static NUMBERS: Mutex<Numbers> = Mutex::new(Numbers { used: 0, free: BinaryHeap::new() });

struct Numbers {
    /// All below have been given out.
    used: u32,
    /// Those that were given back.
    free: BinaryHeap<Reverse<u32>>,
}

impl Numbers {
    fn take(&mut self) -> u32 {
        if let Some(Reverse(number)) = self.free.pop() {
            return number;
        }
        self.used += 1;
        self.used - 1
    }
}

fn lock() -> MutexGuard<'static, Numbers> {
    NUMBERS.lock().unwrap_or_else(PoisonError::into_inner)
}

thread_local! {
    /// Needs no destructor, so it is there until the thread has ended.
    static NUMBER: Cell<u32> = const { Cell::new(UNSET) };
    static GIVE_BACK: GiveBack = const { GiveBack(Cell::new(UNSET)) };
}

/// This thread's number. Two threads have the same only if one of them is already running its
/// destructors.
#[inline]
pub(crate) fn get() -> u32 {
    let number = NUMBER.get();
    if number == UNSET { take() } else { number }
}

#[cold]
fn take() -> u32 {
    let number = lock().take();
    NUMBER.set(number);
    // In a thread whose destructors have run the number is not given back: one number lost, nothing
    // else.
    let _ = GIVE_BACK.try_with(|give_back| give_back.0.set(number));
    number
}

/// Gives the number back when the thread ends.
struct GiveBack(Cell<u32>);

impl Drop for GiveBack {
    fn drop(&mut self) {
        if self.0.get() != UNSET {
            lock().free.push(Reverse(self.0.get()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;
    use std::sync::Barrier;
    use std::thread;

    #[test]
    fn numbers_differ_at_once_and_come_back() {
        let here = get();
        assert_eq!(get(), here);
        let mut seen = HashSet::new();
        for _ in 0..50 {
            let barrier = Barrier::new(4);
            let numbers: HashSet<u32> = thread::scope(|scope| {
                let number = || {
                    let number = get();
                    barrier.wait();
                    number
                };
                let threads: Vec<_> =
                    (0..4).map(|_| thread::Builder::new().spawn_scoped(scope, number)).collect();
                threads.into_iter().map(|thread| thread.unwrap().join().unwrap()).collect()
            });
            assert_eq!(numbers.len(), 4);
            assert!(!numbers.contains(&here));
            seen.extend(numbers);
        }
        // A thread is joined when its destructors have run; the other tests of this binary use some
        // numbers meanwhile.
        assert!(seen.len() < 100, "200 threads, 4 at once, had {} numbers", seen.len());
    }
}
