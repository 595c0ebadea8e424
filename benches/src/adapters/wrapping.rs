//! The ring of bytes that one writes by hand: over plain memory, with two copies where a message
//! wraps.

use crate::harness::contestant::{Contestant, Kind};
use crate::harness::plan::Unsupported;
use crate::harness::serve::{STREAMS, Stream};

pub(super) fn contestant() -> Contestant {
    Contestant::only(
        "wrapping",
        Kind::Control,
        STREAMS,
        "a circular buffer written by hand, of a power of two bytes: one copy, or two where the message wraps",
    )
    .streams::<Wrapping>()
}

/// A circular buffer. The counters wrap around; their difference is what is in it.
pub(crate) struct Wrapping {
    bytes: Box<[u8]>,
    written: usize,
    read: usize,
}

impl Stream for Wrapping {
    fn build(bytes: usize) -> Result<Self, Unsupported> {
        if !bytes.is_power_of_two() {
            return Err("of a power of two bytes only".into());
        }
        Ok(Self { bytes: vec![0; bytes].into(), written: 0, read: 0 })
    }

    #[inline(always)]
    fn write(&mut self, bytes: &[u8]) {
        let capacity = self.bytes.len();
        assert!(bytes.len() <= capacity - self.written.wrapping_sub(self.read), "no room");
        let at = self.written & (capacity - 1);
        if let Some(room) = self.bytes.get_mut(at..at + bytes.len()) {
            room.copy_from_slice(bytes);
        } else {
            let (first, second) = bytes.split_at(capacity - at);
            self.bytes[at..].copy_from_slice(first);
            self.bytes[..second.len()].copy_from_slice(second);
        }
        self.written = self.written.wrapping_add(bytes.len());
    }

    #[inline(always)]
    fn read(&mut self, into: &mut [u8]) {
        let capacity = self.bytes.len();
        assert!(into.len() <= self.written.wrapping_sub(self.read), "not as many are there");
        let at = self.read & (capacity - 1);
        if let Some(filled) = self.bytes.get(at..at + into.len()) {
            into.copy_from_slice(filled);
        } else {
            let (first, second) = into.split_at_mut(capacity - at);
            first.copy_from_slice(&self.bytes[at..]);
            second.copy_from_slice(&self.bytes[..second.len()]);
        }
        self.read = self.read.wrapping_add(into.len());
    }
}
