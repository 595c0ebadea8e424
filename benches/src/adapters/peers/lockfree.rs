//! `lockfree-object-pool`.

use lockfree_object_pool::{LinearObjectPool, LinearReusable};

use super::Theirs;
use crate::harness::block::Block;
use crate::harness::contestant::{Contestant, Kind};
use crate::harness::plan::{Plan, Unsupported};
use crate::harness::serve::Pool;

pub(super) fn contestant() -> Contestant {
    Contestant::new(
        "lockfree-pool",
        Kind::Peer,
        "`lockfree_object_pool::LinearObjectPool` of vectors of the largest size, `pull`, nothing done on reset",
    )
    .whole::<Linear>()
    .sends::<Linear>()
    .threads_share::<Linear>()
    .no_frames(super::NO_FRAMES)
}

#[derive(Clone)]
struct Linear(&'static LinearObjectPool<Vec<u8>>);

// SAFETY: the pool makes vectors with the plan's largest size as capacity, and nobody grows or
// moves them.
unsafe impl Block for Theirs<LinearReusable<'static, Vec<u8>>> {
    #[inline(always)]
    fn start(&mut self) -> *mut u8 {
        self.0.as_mut_ptr()
    }
}

impl Pool for Linear {
    type Buf = Theirs<LinearReusable<'static, Vec<u8>>>;

    fn build(plan: &Plan) -> Result<Self, Unsupported> {
        plan.bytes_of_equals()?;
        let largest = plan.largest;
        Ok(Self(Box::leak(Box::new(LinearObjectPool::new(move || Vec::with_capacity(largest), |_| {})))))
    }

    #[inline(always)]
    fn acquire(&mut self, _bytes: usize) -> Self::Buf {
        Theirs(self.0.pull())
    }
}
