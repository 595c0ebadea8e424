//! The pool that does not pool.

use bufcore::{Buf, HeapLease, HeapPool};

use crate::harness::contestant::{Contestant, Kind};
use crate::harness::plan::{Plan, Unsupported};
use crate::harness::serve::{Frames, OpenFrame, Pool};

pub(super) fn contestant() -> Contestant {
    Contestant::new(
        "heap",
        Kind::Control,
        "`HeapPool`: each buffer a fresh, zeroed allocation; a frame is one of the largest size, appended to",
    )
    .whole::<Heap>()
    .sends::<Heap>()
    .threads_each::<Heap>()
    .frames::<HeapFrames>()
}

/// `HeapPool`.
pub(crate) struct Heap(HeapPool);

impl Pool for Heap {
    type Buf = Buf<HeapLease>;

    fn build(_plan: &Plan) -> Result<Self, Unsupported> {
        Ok(Self(HeapPool::new()))
    }

    #[inline(always)]
    fn acquire(&mut self, bytes: usize) -> Self::Buf {
        self.0.acquire(bytes).expect("the system has memory")
    }
}

/// `HeapPool`, whose buffers cannot grow: each is of the largest size.
pub(crate) struct HeapFrames {
    pool: HeapPool,
    largest: usize,
}

impl Frames for HeapFrames {
    type Frame = Buf<HeapLease>;
    type Open<'a> = Open;

    fn build(plan: &Plan) -> Result<Self, Unsupported> {
        Ok(Self { pool: HeapPool::new(), largest: plan.largest })
    }

    #[inline(always)]
    fn open(&mut self) -> Open {
        Open(self.pool.acquire(self.largest).expect("the system has memory"))
    }
}

/// A frame being filled.
pub(crate) struct Open(Buf<HeapLease>);

impl OpenFrame for Open {
    type Frame = Buf<HeapLease>;

    #[inline(always)]
    fn append(&mut self, chunk: &[u8]) {
        self.0.extend_from_slice(chunk).expect("room for the largest frame");
    }

    #[inline(always)]
    fn detach(self) -> Self::Frame {
        self.0
    }
}
