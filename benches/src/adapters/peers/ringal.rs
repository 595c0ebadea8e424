//! `ringal`: a ring of guards.

use std::io::Write;

use ringal::{ExtBuf, FixedBufMut, RingAl};

use crate::harness::block::Block;
use crate::harness::engine::{Engine, Kind};
use crate::harness::plan::{Plan, Spare, Unsupported};
use crate::harness::serve::{Frames, OpenFrame, Pool};

/// Room for a buffer's guard and its rounding, in bytes.
const OVERHEAD_BYTES: usize = 128;
/// Bytes that an extendable buffer starts with at most, as in the crate's documentation.
const FIRST_BYTES: usize = 64;

pub(super) fn engine() -> Engine {
    Engine::new(
        "ringal",
        Kind::Peer,
        "`RingAl` of the planned bytes and one buffer more (twice where sizes differ, or for the few frames of `frame`), rounded \
         up to a power of two. Through `fixed`, or a `Vec` where it has nothing. Frames through `extendable` and `finalize`",
    )
    .whole::<Ring>()
    .sends::<Ring>()
    .threads_each::<Ring>()
    .frames::<Ring>()
}

struct Ring {
    ring: RingAl,
    /// Bytes that a frame starts with.
    first_bytes: usize,
    fallbacks: u64,
}

/// A buffer of the ring's, or of the heap where the ring was exhausted.
enum RingBuf {
    Ring(FixedBufMut),
    Heap(Vec<u8>),
}

// SAFETY: a fixed buffer has at least the capacity that was asked for, at one place. The ring turns
// addresses of its block into integers and back, which exposes the block's provenance; so a pointer
// to a whole buffer may be made from the address of the empty slice at its start.
unsafe impl Block for RingBuf {
    #[inline(always)]
    fn start(&mut self) -> *mut u8 {
        match self {
            Self::Ring(fixed) => core::ptr::with_exposed_provenance_mut(fixed.as_ptr().addr()),
            Self::Heap(heap) => heap.as_mut_ptr(),
        }
    }
}

fn build(plan: &Plan) -> Ring {
    let bytes = plan.peak_bytes + plan.largest + (plan.room + 1) * OVERHEAD_BYTES;
    Ring {
        ring: RingAl::new(plan.with_spare(bytes)),
        first_bytes: plan.first_bytes.min(FIRST_BYTES),
        fallbacks: 0,
    }
}

impl Pool for Ring {
    type Buf = RingBuf;

    fn build(plan: &Plan) -> Result<Self, Unsupported> {
        Ok(build(plan))
    }

    #[inline(always)]
    fn acquire(&mut self, bytes: usize) -> RingBuf {
        match self.ring.fixed(bytes) {
            Some(fixed) => RingBuf::Ring(fixed),
            None => {
                self.fallbacks += 1;
                RingBuf::Heap(Vec::with_capacity(bytes))
            }
        }
    }

    fn fallbacks(&self) -> Option<u64> {
        Some(self.fallbacks)
    }
}

impl Frames for Ring {
    type Frame = RingBuf;
    type Open<'a> = Open<'a>;

    fn build(plan: &Plan) -> Result<Self, Unsupported> {
        // A frame may have to move to the ring's front. Where many are held that costs no more than
        // what is left at the end, and they go oldest first; a ring that is larger than it has to
        // be is slower.
        let peak_bytes =
            if plan.spare == Spare::None { 2 * plan.peak_bytes } else { plan.peak_bytes + plan.largest };
        Ok(build(&Plan { peak_bytes, spare: Spare::None, ..*plan }))
    }

    #[inline(always)]
    fn open(&mut self) -> Open<'_> {
        Open(
            self.ring
                .extendable(self.first_bytes)
                .expect("the ring has room for twice the frames that are out"),
        )
    }
}

struct Open<'a>(ExtBuf<'a>);

impl OpenFrame for Open<'_> {
    type Frame = RingBuf;

    #[inline(always)]
    fn append(&mut self, chunk: &[u8]) {
        self.0.write_all(chunk).expect("the ring has room for twice the frames that are out");
    }

    #[inline(always)]
    fn detach(self) -> RingBuf {
        RingBuf::Ring(self.0.finalize())
    }
}
