//! The published rings over memory that is mapped twice.

use slice_ring_buffer::SliceRingBuffer;
use vmcircbuffer::sync::{Circular, Reader, Writer};

use crate::harness::contestant::{Contestant, Kind};
use crate::harness::plan::Unsupported;
use crate::harness::serve::{STREAMS, Stream};

pub(super) fn slice_ring_buffer() -> Contestant {
    Contestant::only(
        "slice-ring-buffer",
        Kind::Peer,
        STREAMS,
        "`SliceRingBuffer<u8>`: `extend_from_slice`, a copy out, `move_head`",
    )
    .streams::<Slices>()
    .uncounted()
}

pub(super) fn vmcircbuffer() -> Contestant {
    Contestant::only(
        "vmcircbuffer",
        Kind::Peer,
        &["stream", "parse", "spsc"],
        "`sync::Circular<u8>` with one reader: copies into and out of `try_slice`",
    )
    .streams::<Halves>()
    .pipes::<Halves>()
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

/// Both ends of a buffer that is made for two threads.
pub(crate) struct Halves {
    writer: Writer<u8>,
    reader: Reader<u8>,
}

impl Halves {
    pub(super) fn ends(bytes: usize) -> Result<(Writer<u8>, Reader<u8>), Unsupported> {
        let writer = Circular::with_capacity::<u8>(bytes).map_err(|error| Unsupported(error.to_string()))?;
        let reader = writer.add_reader();
        Ok((writer, reader))
    }
}

impl Stream for Halves {
    fn build(bytes: usize) -> Result<Self, Unsupported> {
        let (writer, reader) = Self::ends(bytes)?;
        Ok(Self { writer, reader })
    }

    #[inline(always)]
    fn write(&mut self, bytes: &[u8]) {
        self.writer.try_slice()[..bytes.len()].copy_from_slice(bytes);
        self.writer.produce(bytes.len());
    }

    #[inline(always)]
    fn read(&mut self, into: &mut [u8]) {
        let filled = self.reader.try_slice().expect("the writer lives");
        into.copy_from_slice(&filled[..into.len()]);
        self.reader.consume(into.len());
    }

    /// In place.
    #[inline(always)]
    fn look<T>(&mut self, len: usize, _scratch: &mut [u8], look: impl FnOnce(&[u8]) -> T) -> T {
        let filled = self.reader.try_slice().expect("the writer lives");
        let seen = look(&filled[..len]);
        self.reader.consume(len);
        seen
    }
}
