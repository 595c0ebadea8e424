//! The slot pool.

use bufcore::{Buf, ConfigError, HeapLease, Writer};
use bufslot::{SlotLease, SlotPool};

use super::whole::{Planned, Whole};
use crate::harness::contestant::{Contestant, Kind};
use crate::harness::plan::{Plan, Settings, Spare, Unsupported};
use crate::harness::serve::{Frames, OpenFrame};

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
    .threads_each::<SlotBuffers>()
    .frames::<SlotFrames>()
}

/// As a program makes it that sets nothing: 8 MiB, 1024 slots.
pub(super) fn without_settings() -> Contestant {
    let idiom = "`SlotPool::builder().build()`; the heap serves what it has no slot or no room for";
    contestant().without_settings("slot-default", idiom)
}

impl Planned for SlotPool {
    fn planned(plan: &Plan) -> Result<Self, ConfigError> {
        if plan.settings == Settings::Unset {
            return Self::builder().build();
        }
        // Buffers of different sizes leave holes, and slots that came back where nothing fits.
        let slots = match plan.spare {
            Spare::Quarter => plan.room.saturating_add(SPARE_SLOTS),
            Spare::None | Spare::Twice => plan.with_spare(plan.room),
        };
        Self::builder().slots(slots).capacity(plan.with_spare(plan.peak_bytes)).build()
    }
}

fn pool(plan: &Plan) -> Result<SlotPool, Unsupported> {
    SlotPool::planned(plan).map_err(|error| Unsupported(error.to_string()))
}

/// Whole buffers.
pub(crate) type SlotBuffers = Whole<SlotPool>;

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
