//! `sharded-slab`: a lock-free pool of objects by key.

use sharded_slab::Pool as Slab;
use sharded_slab::pool::RefMut;

use crate::harness::block::Block;
use crate::harness::contestant::{Contestant, Kind};
use crate::harness::plan::{Plan, Unsupported};
use crate::harness::serve::Pool;

pub(super) fn contestant() -> Contestant {
    Contestant::new(
        "sharded-slab",
        Kind::Peer,
        "`sharded_slab::Pool` of vectors, `create`, given the largest size at their first use; `clear` by key on release",
    )
    .whole::<Keyed>()
    .no_sends("its `RefMut` is not `Send`, and a shared reference by key cannot be written to")
    .threads_share::<Keyed>()
    .no_frames(super::NO_FRAMES)
}

#[derive(Clone)]
struct Keyed {
    slab: &'static Slab<Vec<u8>>,
    largest: usize,
}

struct Guard {
    /// `Some` until it is dropped.
    slot: Option<RefMut<'static, Vec<u8>>>,
    slab: &'static Slab<Vec<u8>>,
}

impl Drop for Guard {
    #[inline(always)]
    fn drop(&mut self) {
        if let Some(slot) = self.slot.take() {
            let key = slot.key();
            // In this order: clearing a slot that is still being written does not free it.
            drop(slot);
            self.slab.clear(key);
        }
    }
}

// SAFETY: `acquire` gave the vector the plan's largest size as capacity, and nobody grows or moves
// it.
unsafe impl Block for Guard {
    #[inline(always)]
    fn start(&mut self) -> *mut u8 {
        self.slot.as_mut().expect("held until the drop").as_mut_ptr()
    }
}

impl Pool for Keyed {
    type Buf = Guard;

    fn build(plan: &Plan) -> Result<Self, Unsupported> {
        plan.bytes_of_equals()?;
        Ok(Self { slab: Box::leak(Box::new(Slab::new())), largest: plan.largest })
    }

    #[inline(always)]
    fn acquire(&mut self, _bytes: usize) -> Guard {
        let mut slot = self.slab.create().expect("room in the slab");
        if slot.capacity() < self.largest {
            slot.reserve_exact(self.largest);
        }
        Guard { slot: Some(slot), slab: self.slab }
    }
}
