//! The published ring over memory that is mapped twice.

use slice_ring_buffer::SliceRingBuffer;

use crate::harness::engine::{Engine, Kind};
use crate::harness::plan::Unsupported;
use crate::harness::serve::Stream;

pub(super) fn slice_ring_buffer() -> Engine {
    Engine::new(
        "slice-ring-buffer",
        Kind::Peer,
        "`SliceRingBuffer<u8>`: `extend_from_slice`, a copy out, `move_head`",
    )
    .streams::<Slices>()
    .uncounted()
}

/// A double-ended queue whose elements are one slice.
pub(crate) struct Slices(SliceRingBuffer<u8>);

impl Stream for Slices {
    fn build(bytes: usize) -> Result<Self, Unsupported> {
        Ok(Self(SliceRingBuffer::with_capacity(bytes)))
    }

    #[inline(always)]
    fn write(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    #[inline(always)]
    fn read(&mut self, into: &mut [u8]) {
        into.copy_from_slice(&self.0[..into.len()]);
        // SAFETY: as many elements are there (just indexed), and bytes need no drop.
        unsafe { self.0.move_head(into.len() as isize) };
    }

    /// In place.
    #[inline(always)]
    fn look<T>(&mut self, len: usize, _scratch: &mut [u8], look: impl FnOnce(&[u8]) -> T) -> T {
        let seen = look(&self.0[..len]);
        // SAFETY: as many elements are there (just indexed), and bytes need no drop.
        unsafe { self.0.move_head(len as isize) };
        seen
    }
}
