//! The slot pool.

use std::io;

use bufcore::{Buf, HeapLease, Writer};
use bufslot::{Builder, SlotLease, SlotPool};

use super::lines::{BatchPool, Pooled};
use crate::harness::contestant::{Contestant, Kind};
use crate::harness::plan::{Plan, Settings, Spare, Unsupported};
use crate::harness::serve::{Frames, OpenFrame, Pool};

/// Slots beyond what is out where memory is short.
const SPARE_SLOTS: usize = 2;

pub(super) fn contestant() -> Contestant {
    Contestant::new(
        "slot",
        Kind::Strategy,
        "`SlotPool` with as many slots and bytes as the workload has out at once (twice as many where sizes differ; in \
         `queue` two slots and a quarter of the bytes more), the heap as fallback. Whole buffers through `acquire`, frames in \
         place through a `Writer`",
    )
    .whole::<SlotBuffers>()
    .sends::<SlotBuffers>()
    .lines::<Pooled<SlotPool>>()
    .threads_each::<SlotBuffers>()
    .frames::<SlotFrames>()
}

/// As a program makes it that sets nothing: 8 MiB, 1024 slots.
pub(super) fn without_settings() -> Contestant {
    let idiom = "`SlotPool::builder().build()`; the heap serves what it has no slot or no room for";
    super::defaults::of(contestant(), "slot-default", idiom)
}

impl BatchPool for SlotPool {
    fn for_batches(plan: &Plan) -> io::Result<Self> {
        builder(plan).build().map_err(io::Error::other)
    }
}

pub(super) fn builder(plan: &Plan) -> Builder {
    if plan.settings == Settings::Unset {
        return SlotPool::builder();
    }
    // Buffers of different sizes leave holes, and slots that came back where nothing fits.
    let slots = match plan.spare {
        Spare::Quarter => plan.room.saturating_add(SPARE_SLOTS),
        Spare::None | Spare::Twice => plan.with_spare(plan.room),
    };
    SlotPool::builder().slots(slots).capacity(plan.with_spare(plan.peak_bytes))
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

/// The frame that is being filled.
pub(crate) struct Open<'a>(Writer<&'a mut SlotPool>);

impl Frames for SlotFrames {
    type Frame = Buf<SlotLease<HeapLease>>;
    type Open<'a> = Open<'a>;

    fn build(plan: &Plan) -> Result<Self, Unsupported> {
        pool(plan).map(Self)
    }

    #[inline(always)]
    fn open(&mut self) -> Open<'_> {
        Open(Writer::new(&mut self.0))
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
    fn detach(mut self) -> Self::Frame {
        self.0.finish()
    }
}
