//! What the list of orphans asks of a ring that has ended.

use core::ptr::NonNull;

use bufkit::{ControlBlock, CountMissed};

use super::Ring;
use super::guard::{GUARD, Guard, UNIT};
use super::layout::CONTROL;

// SAFETY: each block that was freed after the mark is found by one exchange of its state.
unsafe impl CountMissed for Ring {
    unsafe fn count_missed(control: NonNull<ControlBlock>, blocks: usize) -> usize {
        // SAFETY: behind the control block stand the guard at the front (`Layout`), and the first
        // one that has a block (`Ring::build`).
        let mut at = unsafe { control.byte_add(CONTROL + GUARD) }.cast::<Guard>();
        let mut found = 0;
        for _ in 0..blocks {
            // SAFETY: a guard of the ring (R1), whose links nobody writes any more; its state is
            // atomic.
            let guard = unsafe { at.as_ref() };
            found += usize::from(guard.state.count_missed());
            // SAFETY: `size` leads to the next guard (R1).
            at = unsafe { at.byte_add(guard.size.get() as usize * UNIT) };
        }
        found
    }
}
