//! The ring allocator.

use bufcore::{Buf, ConfigError, Writer};
use bufring::{RingLease, RingPool};

use super::whole::{Growing, Planned};
use crate::harness::engine::{Engine, Kind};
use crate::harness::plan::{Plan, Settings, Unsupported};
use crate::harness::serve::Pool;

/// Bytes that a frame starts with.
const FIRST_BYTES: usize = 64;

pub(super) fn engine() -> Engine {
    Engine::new(
        "ring",
        Kind::Strategy,
        "`RingPool` with as many bytes as the workload has out at once (twice as many where sizes differ, a quarter \
         more in `queue`). A ring of its own for each buffer where it is exhausted. Whole buffers through `acquire`, frames \
         through a `Writer`",
    )
    .whole::<RingBuffers>()
    .sends::<RingBuffers>()
    .threads_each::<RingBuffers>()
    .frames::<Growing<RingPool>>()
}

/// As a program makes it that sets nothing: 8 MiB.
pub(super) fn without_settings() -> Engine {
    let idiom =
        "`RingPool::builder().build()`; where it is exhausted a ring of its own for each whole buffer";
    engine().without_settings("ring-default", idiom)
}

impl Planned for RingPool {
    fn planned(plan: &Plan) -> Result<Self, ConfigError> {
        if plan.settings == Settings::Unset {
            return Self::builder().build();
        }
        // Buffers of different sizes leave holes.
        Self::builder().buffers(plan.with_spare(plan.room)).capacity(plan.with_spare(plan.peak_bytes)).build()
    }

    /// A frame may have to move to the ring's front.
    fn with_moves(plan: &Plan) -> Plan {
        Plan { peak_bytes: plan.peak_bytes + plan.largest, room: plan.room + 1, ..*plan }
    }

    #[inline(always)]
    fn writer(&mut self) -> Writer<&mut Self> {
        Writer::with_capacity(self, FIRST_BYTES)
    }
}

/// Whole buffers.
pub(crate) struct RingBuffers {
    ring: RingPool,
    fallbacks: u64,
}

impl Pool for RingBuffers {
    type Buf = Buf<RingLease>;

    fn build(plan: &Plan) -> Result<Self, Unsupported> {
        let ring = RingPool::planned(plan).map_err(|error| error.to_string())?;
        Ok(Self { ring, fallbacks: 0 })
    }

    #[inline(always)]
    fn acquire(&mut self, bytes: usize) -> Self::Buf {
        match self.ring.acquire(bytes) {
            Ok(buf) => buf,
            // As an `Option`, so that what comes back in memory does not force the other case there
            // too.
            Err(_) => self.fall_back(bytes).expect("the heap has room"),
        }
    }

    fn fallbacks(&self) -> Option<u64> {
        Some(self.fallbacks)
    }
}

impl RingBuffers {
    /// A ring of its own for the buffer, which goes with it.
    #[cold]
    #[inline(never)]
    fn fall_back(&mut self, bytes: usize) -> Option<Buf<RingLease>> {
        self.fallbacks += 1;
        RingPool::new(bytes).ok()?.acquire(bytes).ok()
    }
}
