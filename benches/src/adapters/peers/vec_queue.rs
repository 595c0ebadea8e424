//! What one writes with a queue at hand: vectors that go back to where the next request takes one
//! from.

use crossbeam_queue::ArrayQueue;

use crate::harness::block::Block;
use crate::harness::contestant::{Contestant, Kind};
use crate::harness::plan::{Plan, Unsupported};
use crate::harness::serve::Pool;

pub(super) fn contestant() -> Contestant {
    Contestant::new(
        "vec-queue",
        Kind::Peer,
        "vectors of the largest size in an `ArrayQueue` of `crossbeam-queue`: a request pops one, or allocates; a drop pushes it \
         back",
    )
    .whole::<Queue>()
    .sends::<Queue>()
    .threads_share::<Queue>()
    .no_frames(super::NO_FRAMES)
}

#[derive(Clone)]
struct Queue {
    free: &'static ArrayQueue<Vec<u8>>,
    bytes: usize,
}

/// A vector that goes back to the queue.
struct Queued {
    bytes: Vec<u8>,
    free: &'static ArrayQueue<Vec<u8>>,
}

// SAFETY: a vector with the plan's largest size as capacity, which nobody grows or moves.
unsafe impl Block for Queued {
    #[inline(always)]
    fn start(&mut self) -> *mut u8 {
        self.bytes.as_mut_ptr()
    }
}

impl Drop for Queued {
    #[inline(always)]
    fn drop(&mut self) {
        // One that finds no room is dropped; there is room for all that the plan has out.
        let _ = self.free.push(core::mem::take(&mut self.bytes));
    }
}

impl Pool for Queue {
    type Buf = Queued;

    fn build(plan: &Plan) -> Result<Self, Unsupported> {
        plan.bytes_of_equals()?;
        let free = ArrayQueue::new(plan.room);
        for _ in 0..plan.room {
            let _ = free.push(Vec::with_capacity(plan.largest));
        }
        Ok(Self { free: Box::leak(Box::new(free)), bytes: plan.largest })
    }

    #[inline(always)]
    fn acquire(&mut self, _bytes: usize) -> Queued {
        let bytes = self.free.pop().unwrap_or_else(|| Vec::with_capacity(self.bytes));
        Queued { bytes, free: self.free }
    }
}
