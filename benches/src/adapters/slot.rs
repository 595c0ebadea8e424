//! The slot pool.

use bufcore::{Buf, FrameBuffer, HeapLease, Lease};
use bufslot::{Builder, SlotLease, SlotPool};

use crate::harness::block::Block;
use crate::harness::contestant::{Contestant, Kind};
use crate::harness::plan::{Plan, Unsupported};
use crate::harness::serve::{Frames, OpenFrame, Pool};

pub(super) fn contestant() -> Contestant {
    Contestant::new(
        "slot",
        Kind::Strategy,
        "`SlotPool` with as many slots and bytes as the workload has out at once (twice as many where sizes differ), the \
         heap as fallback; whole buffers through `acquire`, frames in place through `open_frame`",
    )
    .whole::<SlotBuffers>()
    .sends::<SlotBuffers>()
    .threads_each::<SlotBuffers>()
    .frames::<SlotFrames>()
}

// SAFETY: the buffer's memory: stable, exclusive and initialised from its creation to its drop
// (`bufcore`), and at least as large as was asked for. Only the harness reads it, and it keeps
// either to the filled or to the spare part.
unsafe impl<L: Lease> Block for Buf<L> {
    #[inline(always)]
    fn start(&mut self) -> *mut u8 {
        if self.is_empty() { self.spare_mut().as_mut_ptr() } else { self.as_mut_slice().as_mut_ptr() }
    }
}

pub(super) fn builder(plan: &Plan) -> Builder {
    // Buffers of different sizes leave holes, and slots that came back where nothing fits.
    let spare = if plan.varied { 2 } else { 1 };
    SlotPool::builder().slots(plan.room.saturating_mul(spare)).capacity(plan.peak_bytes.saturating_mul(spare))
}

fn pool(plan: &Plan) -> Result<SlotPool, Unsupported> {
    builder(plan).build().map_err(|error| Unsupported(error.to_string()))
}

/// Whole buffers.
pub(crate) struct SlotBuffers(SlotPool);

impl Pool for SlotBuffers {
    type Buf = Buf<SlotLease<HeapLease>>;

    fn build(plan: &Plan) -> Result<Self, Unsupported> {
        pool(plan).map(Self)
    }

    #[inline(always)]
    fn acquire(&mut self, bytes: usize) -> Self::Buf {
        self.0.acquire(bytes).expect("the heap is the fallback")
    }

    fn fallbacks(&self) -> Option<u64> {
        cfg!(feature = "count").then(|| self.0.stats().fallbacks)
    }
}

/// Frames.
pub(crate) struct SlotFrames(SlotPool);

/// The frame that is open in the pool.
pub(crate) struct Open<'a>(bufslot::OpenFrame<'a, bufcore::HeapPool>);

impl Frames for SlotFrames {
    type Frame = Buf<SlotLease<HeapLease>>;
    type Open<'a> = Open<'a>;

    fn build(plan: &Plan) -> Result<Self, Unsupported> {
        pool(plan).map(Self)
    }

    #[inline(always)]
    fn open(&mut self) -> Open<'_> {
        Open(self.0.open_frame())
    }

    fn fallbacks(&self) -> Option<u64> {
        cfg!(feature = "count").then(|| self.0.stats().fallbacks)
    }
}

impl OpenFrame for Open<'_> {
    type Frame = Buf<SlotLease<HeapLease>>;

    #[inline(always)]
    fn append(&mut self, chunk: &[u8]) {
        self.0.extend_from_slice(chunk).expect("the heap is the fallback");
    }

    #[inline(always)]
    fn detach(self) -> Self::Frame {
        self.0.detach().expect("the frame has its place")
    }
}
