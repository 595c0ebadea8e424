//! The ring allocator.

use bufcore::Buf;
use bufring::{Builder, Extendable, RingLease, RingPool};

use crate::harness::contestant::{Contestant, Kind};
use crate::harness::plan::{Plan, Unsupported};
use crate::harness::serve::{Frames, OpenFrame, Pool};

pub(super) fn contestant() -> Contestant {
    Contestant::new(
        "ring",
        Kind::Strategy,
        "`RingPool` with as many bytes as the workload has out at once (twice as many where sizes differ), a ring of \
         its own for each buffer where it is exhausted; whole buffers through `acquire`, frames through `extendable` and \
         `finish`",
    )
    .whole::<RingBuffers>()
    .sends::<RingBuffers>()
    .threads_each::<RingBuffers>()
    .frames::<RingFrames>()
}

pub(super) fn builder(plan: &Plan) -> Builder {
    // Buffers of different sizes leave holes.
    let spare = if plan.varied { 2 } else { 1 };
    RingPool::builder()
        .buffers(plan.room.saturating_mul(spare))
        .capacity(plan.peak_bytes.saturating_mul(spare))
}

fn ring(plan: &Plan) -> Result<RingPool, Unsupported> {
    builder(plan).build().map_err(|error| Unsupported(error.to_string()))
}

/// Whole buffers.
pub(crate) struct RingBuffers {
    ring: RingPool,
    fallbacks: u64,
}

impl Pool for RingBuffers {
    type Buf = Buf<RingLease>;

    fn build(plan: &Plan) -> Result<Self, Unsupported> {
        Ok(Self { ring: ring(plan)?, fallbacks: 0 })
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

/// Frames.
pub(crate) struct RingFrames(RingPool);

/// The frame that is being filled.
pub(crate) struct Open<'a>(Extendable<'a>);

impl Frames for RingFrames {
    type Frame = Buf<RingLease>;
    type Open<'a> = Open<'a>;

    fn build(plan: &Plan) -> Result<Self, Unsupported> {
        // A frame may have to move to the ring's front.
        ring(&Plan { peak_bytes: plan.peak_bytes + plan.largest, room: plan.room + 1, ..*plan }).map(Self)
    }

    #[inline(always)]
    fn open(&mut self) -> Open<'_> {
        Open(self.0.extendable(64).expect("the ring has room for one frame more than are out"))
    }
}

impl OpenFrame for Open<'_> {
    type Frame = Buf<RingLease>;

    #[inline(always)]
    fn append(&mut self, chunk: &[u8]) {
        self.0.extend_from_slice(chunk).expect("the ring has room for one frame more than are out");
    }

    #[inline(always)]
    fn detach(self) -> Self::Frame {
        self.0.finish()
    }
}
