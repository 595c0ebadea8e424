//! The pool that does not pool.

use bufcore::{Buf, ConfigError, HeapLease, HeapPool};

use super::whole::{Planned, Whole};
use crate::harness::contestant::{Contestant, Kind};
use crate::harness::plan::{Plan, Unsupported};
use crate::harness::serve::{Frames, OpenFrame};

pub(super) fn contestant() -> Contestant {
    Contestant::new(
        "heap",
        Kind::Control,
        "`HeapPool`: each buffer a fresh, zeroed allocation; a frame is one of the largest size, appended to",
    )
    .whole::<Whole<HeapPool>>()
    .sends::<Whole<HeapPool>>()
    .threads_each::<Whole<HeapPool>>()
    .frames::<HeapFrames>()
}

impl Planned for HeapPool {
    fn planned(_plan: &Plan) -> Result<Self, ConfigError> {
        Ok(Self::new())
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
