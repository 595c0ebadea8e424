//! The ring allocator.

use std::io;

use bufcore::{Buf, Writer};
use bufring::{Builder, RingLease, RingPool};

use super::lines::{BatchPool, Pooled};
use crate::harness::case::size;
use crate::harness::contestant::{Contestant, Kind};
use crate::harness::plan::{Plan, Settings, Unsupported};
use crate::harness::serve::{Frames, OpenFrame, Pool};

pub(super) fn contestant() -> Contestant {
    Contestant::new(
        "ring",
        Kind::Strategy,
        "`RingPool` with as many bytes as the workload has out at once (twice as many where sizes differ, a quarter \
         more in `queue`). A ring of its own for each buffer where it is exhausted. Whole buffers through `acquire`, frames \
         through a `Writer`",
    )
    .whole::<RingBuffers>()
    .sends::<RingBuffers>()
    .lines::<Pooled<RingPool>>()
    .threads_each::<RingBuffers>()
    .frames::<RingFrames>()
}

/// As a program makes it that sets nothing: 8 MiB.
pub(super) fn without_settings() -> Contestant {
    let idiom =
        "`RingPool::builder().build()`; where it is exhausted a ring of its own for each whole buffer";
    super::defaults::of(contestant(), "ring-default", idiom)
}

impl BatchPool for RingPool {
    fn for_batches(plan: &Plan) -> io::Result<Self> {
        builder(plan).build().map_err(io::Error::other)
    }
}

pub(super) fn builder(plan: &Plan) -> Builder {
    if plan.settings == Settings::Unset {
        return RingPool::builder();
    }
    // Buffers of different sizes leave holes.
    RingPool::builder().buffers(plan.with_spare(plan.room)).capacity(plan.with_spare(plan.peak_bytes))
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

impl RingFrames {
    /// Makes the ring without settings. Refuses what the ring might refuse in the middle of a
    /// frame: no program could go on there.
    fn without_settings(plan: &Plan) -> Result<Self, Unsupported> {
        let ring = ring(plan)?;
        let has = RingPool::builder().capacity(ring.capacity()).required_bytes();
        // A frame that moves to the ring's front has two places for a moment, and what is left at
        // the ring's end is too small for it.
        let bytes = plan.peak_bytes.saturating_add(plan.largest.saturating_mul(2));
        let needs = RingPool::builder().buffers(plan.room + 2).capacity(bytes).required_bytes();
        let why = |error: bufcore::ConfigError| Unsupported(error.to_string());
        if needs.map_err(why)? > has.map_err(why)? {
            return Err(format!(
                "without settings a ring has {}, which is too little for frames of {} together",
                size(ring.capacity()),
                size(plan.peak_bytes)
            )
            .into());
        }
        Ok(Self(ring))
    }
}

/// Frames.
pub(crate) struct RingFrames(RingPool);

/// The frame that is being filled.
pub(crate) struct Open<'a>(Writer<&'a mut RingPool>);

impl Frames for RingFrames {
    type Frame = Buf<RingLease>;
    type Open<'a> = Open<'a>;

    fn build(plan: &Plan) -> Result<Self, Unsupported> {
        if plan.settings == Settings::Unset {
            return Self::without_settings(plan);
        }
        // A frame may have to move to the ring's front.
        let plan = Plan { peak_bytes: plan.peak_bytes + plan.largest, room: plan.room + 1, ..*plan };
        ring(&plan).map(Self)
    }

    #[inline(always)]
    fn open(&mut self) -> Open<'_> {
        Open(Writer::with_capacity(&mut self.0, 64))
    }
}

impl OpenFrame for Open<'_> {
    type Frame = Buf<RingLease>;

    #[inline(always)]
    fn append(&mut self, chunk: &[u8]) {
        self.0.extend_from_slice(chunk).expect("the ring has room for one frame more than are out");
    }

    #[inline(always)]
    fn detach(mut self) -> Self::Frame {
        self.0.finish()
    }
}
