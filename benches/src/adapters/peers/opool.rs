//! `opool`: one pool for one thread, another for several.

use opool::{PoolAllocator, RefGuard, RefLocalGuard};

use super::Theirs;
use crate::harness::block::Block;
use crate::harness::contestant::{Contestant, Kind};
use crate::harness::plan::{Plan, Unsupported};
use crate::harness::serve::Pool;

pub(super) fn contestant() -> Contestant {
    Contestant::new(
        "opool",
        Kind::Peer,
        "filled with as many vectors of the largest size as are out at once: `LocalPool` where one thread does all, `Pool` \
         where several do",
    )
    .whole::<Local>()
    .sends::<Shared>()
    .threads_share::<Shared>()
    .no_frames(super::NO_FRAMES)
}

/// Makes vectors of one size.
struct Vectors(usize);

impl PoolAllocator<Vec<u8>> for Vectors {
    fn allocate(&self) -> Vec<u8> {
        Vec::with_capacity(self.0)
    }
}

struct Local(&'static opool::LocalPool<Vectors, Vec<u8>>);

#[derive(Clone)]
struct Shared(&'static opool::Pool<Vectors, Vec<u8>>);

// SAFETY: `Vectors` makes vectors with the plan's largest size as capacity, and nobody grows or
// moves them.
unsafe impl Block for Theirs<RefLocalGuard<'static, Vectors, Vec<u8>>> {
    #[inline(always)]
    fn start(&mut self) -> *mut u8 {
        self.0.as_mut_ptr()
    }
}

// SAFETY: as above.
unsafe impl Block for Theirs<RefGuard<'static, Vectors, Vec<u8>>> {
    #[inline(always)]
    fn start(&mut self) -> *mut u8 {
        self.0.as_mut_ptr()
    }
}

impl Pool for Local {
    type Buf = Theirs<RefLocalGuard<'static, Vectors, Vec<u8>>>;

    fn build(plan: &Plan) -> Result<Self, Unsupported> {
        plan.bytes_of_equals()?;
        let pool = opool::LocalPool::new_prefilled(plan.room, Vectors(plan.largest));
        Ok(Self(Box::leak(Box::new(pool))))
    }

    #[inline(always)]
    fn acquire(&mut self, _bytes: usize) -> Self::Buf {
        Theirs(self.0.get())
    }
}

impl Pool for Shared {
    type Buf = Theirs<RefGuard<'static, Vectors, Vec<u8>>>;

    fn build(plan: &Plan) -> Result<Self, Unsupported> {
        plan.bytes_of_equals()?;
        let pool = opool::Pool::new_prefilled(plan.room, Vectors(plan.largest));
        Ok(Self(Box::leak(Box::new(pool))))
    }

    #[inline(always)]
    fn acquire(&mut self, _bytes: usize) -> Self::Buf {
        Theirs(self.0.get())
    }
}
