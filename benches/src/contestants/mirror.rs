//! The mirrored-mmap ring.

use bufmirror::MirrorRing;

use crate::contestant::{Contestant, Kind, STREAMS, Stream, Unsupported};

pub(super) fn contestant() -> Contestant {
    Contestant::only("mirror", Kind::Strategy, STREAMS, "`MirrorRing`: `put` and `get`")
        .streams::<MirrorRing>()
}

impl Stream for MirrorRing {
    fn build(bytes: usize) -> Result<Self, Unsupported> {
        Self::new(bytes).map_err(|error| error.to_string().into())
    }

    #[inline(always)]
    fn write(&mut self, bytes: &[u8]) {
        self.put(bytes).expect("the workload keeps within the capacity");
    }

    #[inline(always)]
    fn read(&mut self, into: &mut [u8]) {
        self.get(into).expect("the workload reads what it wrote");
    }
}
