//! The slot pool.

use bufcore::ConfigError;
use bufslot::SlotPool;

use super::whole::{Growing, Planned, Whole};
use crate::harness::engine::{Engine, Kind};
use crate::harness::plan::{Plan, Settings, Spare};

/// Slots beyond what is out where memory is short.
const SPARE_SLOTS: usize = 2;

pub(super) fn engine() -> Engine {
    Engine::new(
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
pub(super) fn without_settings() -> Engine {
    let idiom = "`SlotPool::builder().build()`; the heap serves what it has no slot or no room for";
    engine().without_settings("slot-default", idiom)
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

pub(crate) type SlotBuffers = Whole<SlotPool>;
pub(crate) type SlotFrames = Growing<SlotPool>;
