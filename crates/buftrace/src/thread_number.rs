//! Small numbers for threads, the same for all recordings.
//!
//! The number of a thread that has ended is given to a later one. So a program that starts a thread
//! for each connection has only as many numbers as it has threads at once.

use alloc::collections::BinaryHeap;
use core::cell::Cell;
use core::cmp::Reverse;
use core::mem;
use std::sync::{Mutex, MutexGuard, PoisonError};

const UNSET: u32 = u32::MAX;

/// For how many numbers the first memory is.
const LEAST_ROOM: usize = 16;

static NUMBERS: Mutex<Numbers> = Mutex::new(Numbers { used: 0, free: BinaryHeap::new() });

struct Numbers {
    /// All below have been given out.
    used: u32,
    /// Those that were given back. There is room for all that have been given out: so nothing is
    /// allocated when one comes back, nor ever while this is locked. The allocator is the user's
    /// code, and may use pools that are recorded.
    free: BinaryHeap<Reverse<u32>>,
}

impl Numbers {
    /// Takes a number. Without room for one more, says how much is to be offered in `room`, which
    /// takes the place of the old.
    fn take(&mut self, room: &mut BinaryHeap<Reverse<u32>>) -> Result<u32, usize> {
        if let Some(Reverse(number)) = self.free.pop() {
            return Ok(number);
        }
        let given = self.used as usize;
        if self.free.capacity() <= given {
            if room.capacity() <= given {
                return Err((2 * given).max(LEAST_ROOM));
            }
            // There are none in the old one.
            mem::swap(&mut self.free, room);
        }
        self.used += 1;
        Ok(self.used - 1)
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
    let mut room = BinaryHeap::new();
    let number = loop {
        let taken = lock().take(&mut room);
        match taken {
            Ok(number) => break number,
            Err(wanted) => room = BinaryHeap::with_capacity(wanted),
        }
    };
    drop(room);
    if NUMBER.get() != UNSET {
        // The allocator has used a recorded pool meanwhile, on this thread: one number is enough.
        give_back(number);
        return NUMBER.get();
    }
    NUMBER.set(number);
    // In a thread whose destructors have run the number is not given back: one number lost, nothing
    // else.
    let _ = GIVE_BACK.try_with(|give_back| give_back.0.set(number));
    number
}

fn give_back(number: u32) {
    lock().free.push(Reverse(number));
}

/// Gives the number back when the thread ends.
struct GiveBack(Cell<u32>);

impl Drop for GiveBack {
    fn drop(&mut self) {
        if self.0.get() != UNSET {
            give_back(self.0.get());
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
