//! `object-pool`: a stack under a lock.

use object_pool::Reusable;

use super::Theirs;
use crate::harness::block::Block;
use crate::harness::contestant::{Contestant, Kind};
use crate::harness::plan::{Plan, Unsupported};
use crate::harness::serve::Pool;

pub(super) fn contestant() -> Contestant {
    Contestant::new(
        "object-pool",
        Kind::Peer,
        "`object_pool::Pool` filled with as many vectors of the largest size as are out at once, `pull`",
    )
    .whole::<Stack>()
    .sends::<Stack>()
    .threads_share::<Stack>()
    .no_frames(super::NO_FRAMES)
}

#[derive(Clone)]
struct Stack {
    pool: &'static object_pool::Pool<Vec<u8>>,
    largest: usize,
}

// SAFETY: the pool makes vectors with the plan's largest size as capacity, and nobody grows or
// moves them.
unsafe impl Block for Theirs<Reusable<'static, Vec<u8>>> {
    #[inline(always)]
    fn start(&mut self) -> *mut u8 {
        self.0.as_mut_ptr()
    }
}

impl Pool for Stack {
    type Buf = Theirs<Reusable<'static, Vec<u8>>>;

    fn build(plan: &Plan) -> Result<Self, Unsupported> {
        plan.bytes_of_equals()?;
        let largest = plan.largest;
        let pool = object_pool::Pool::new(plan.room, || Vec::with_capacity(largest));
        Ok(Self { pool: Box::leak(Box::new(pool)), largest })
    }

    #[inline(always)]
    fn acquire(&mut self, _bytes: usize) -> Self::Buf {
        Theirs(self.pool.pull(|| Vec::with_capacity(self.largest)))
    }
}
