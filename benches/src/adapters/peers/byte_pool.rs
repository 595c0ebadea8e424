//! `byte-pool`: vectors in two lock-free queues.

use byte_pool::BytePool;

use super::Theirs;
use crate::harness::block::Block;
use crate::harness::contestant::{Contestant, Kind};
use crate::harness::plan::{Plan, Unsupported};
use crate::harness::serve::Pool;

pub(super) fn contestant() -> Contestant {
    Contestant::new("byte-pool", Kind::Peer, "`BytePool<Vec<u8>>::alloc`, one pool for all threads")
        .whole::<Blocks>()
        .sends::<Blocks>()
        .threads_share::<Blocks>()
        .no_frames(super::NO_FRAMES)
}

#[derive(Clone)]
struct Blocks(&'static BytePool);

// SAFETY: the vector in the block is made with, or was found to have, the size that was asked for,
// and is not moved.
unsafe impl Block for Theirs<byte_pool::Block<'static>> {
    #[inline(always)]
    fn start(&mut self) -> *mut u8 {
        self.0.as_mut_ptr()
    }
}

impl Pool for Blocks {
    type Buf = Theirs<byte_pool::Block<'static>>;

    fn build(_plan: &Plan) -> Result<Self, Unsupported> {
        Ok(Self(Box::leak(Box::new(BytePool::new()))))
    }

    #[inline(always)]
    fn acquire(&mut self, bytes: usize) -> Self::Buf {
        Theirs(self.0.alloc(bytes))
    }
}
