//! `bytes`: one `BytesMut` as an arena.

use core::mem;

use bytes::{BufMut, BytesMut};

use super::Theirs;
use crate::harness::block::Block;
use crate::harness::engine::{Engine, Kind};
use crate::harness::plan::{Plan, Unsupported};
use crate::harness::serve::{Frames, OpenFrame, Pool};

/// How often the peak fits into the arena, so that it is not reclaimed each time.
const LAPS: usize = 4;

pub(super) fn engine() -> Engine {
    Engine::new(
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

struct Arena {
    rest: BytesMut,
    largest: usize,
}

// SAFETY: a `BytesMut` owns its capacity, which is at least what was reserved for it, and is not
// grown after.
unsafe impl Block for Theirs<BytesMut> {
    #[inline(always)]
    fn start(&mut self) -> *mut u8 {
        let bytes = &mut self.0;
        if bytes.is_empty() { bytes.spare_capacity_mut().as_mut_ptr().cast() } else { bytes.as_mut_ptr() }
    }
}

impl Pool for Arena {
    type Buf = Theirs<BytesMut>;

    fn build(plan: &Plan) -> Result<Self, Unsupported> {
        Ok(Self { rest: BytesMut::with_capacity(LAPS * plan.peak_bytes), largest: plan.largest })
    }

    #[inline(always)]
    fn acquire(&mut self, bytes: usize) -> Theirs<BytesMut> {
        self.rest.reserve(bytes);
        let rest = self.rest.split_off(bytes);
        Theirs(mem::replace(&mut self.rest, rest))
    }
}

impl Frames for Arena {
    type Frame = Theirs<BytesMut>;
    type Open<'a> = &'a mut BytesMut;

    fn build(plan: &Plan) -> Result<Self, Unsupported> {
        <Self as Pool>::build(plan)
    }

    #[inline(always)]
    fn open(&mut self) -> &mut BytesMut {
        // Bytes that the frame does not use stay in the arena.
        self.rest.reserve(self.largest);
        &mut self.rest
    }
}

impl OpenFrame for &mut BytesMut {
    type Frame = Theirs<BytesMut>;

    #[inline(always)]
    fn append(&mut self, chunk: &[u8]) {
        self.put_slice(chunk);
    }

    #[inline(always)]
    fn detach(self) -> Theirs<BytesMut> {
        Theirs(self.split())
    }
}
