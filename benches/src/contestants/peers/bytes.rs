//! `bytes`: one `BytesMut` as an arena.

use core::mem;

use bytes::{BufMut, BytesMut};

use crate::block::Block;
use crate::case::Plan;
use crate::contestant::{Contestant, Frames, Kind, OpenFrame, Pool, Unsupported};
use crate::workloads::frame::LARGEST;

/// How often the peak fits into the arena, so that it is not reclaimed each time.
const LAPS: usize = 4;

pub(super) fn contestant() -> Contestant {
    Contestant::new(
        "bytes",
        Kind::Peer,
        "one `BytesMut` of four times the planned bytes as an arena: `reserve`, then split the front off; frames are appended \
         and `split`",
    )
    .whole::<Arena>()
    .sends::<Arena>()
    .threads_each::<Arena>()
    .frames::<Arena>()
}

struct Arena(BytesMut);

// SAFETY: a `BytesMut` owns its capacity, which is at least what was reserved for it, and is not grown after.
unsafe impl Block for BytesMut {
    #[inline(always)]
    fn start(&mut self) -> *mut u8 {
        if self.is_empty() { self.spare_capacity_mut().as_mut_ptr().cast() } else { self.as_mut_ptr() }
    }
}

impl Pool for Arena {
    type Buf = BytesMut;

    fn build(plan: &Plan) -> Result<Self, Unsupported> {
        Ok(Self(BytesMut::with_capacity(LAPS * plan.peak_bytes)))
    }

    #[inline(always)]
    fn acquire(&mut self, bytes: usize) -> BytesMut {
        self.0.reserve(bytes);
        let rest = self.0.split_off(bytes);
        mem::replace(&mut self.0, rest)
    }
}

impl Frames for Arena {
    type Frame = BytesMut;
    type Open<'a> = &'a mut BytesMut;

    fn build(plan: &Plan) -> Result<Self, Unsupported> {
        <Self as Pool>::build(plan)
    }

    #[inline(always)]
    fn open(&mut self) -> &mut BytesMut {
        self.0.reserve(LARGEST);
        &mut self.0
    }
}

impl OpenFrame for &mut BytesMut {
    type Frame = BytesMut;

    #[inline(always)]
    fn append(&mut self, chunk: &[u8]) {
        self.put_slice(chunk);
    }

    #[inline(always)]
    fn detach(self) -> BytesMut {
        self.split()
    }
}
