//! The traits of a ring: bytes go in and come out, and it can be shown.

use core::fmt;

use bufcore::{ByteSink, ByteSource, ReserveError};

use super::MirrorRing;

impl ByteSink for MirrorRing {
    #[inline]
    fn reserve(&mut self, n: usize) -> Result<&mut [u8], ReserveError> {
        self.reserve(n)
    }

    #[inline]
    #[track_caller]
    fn commit(&mut self, n: usize) {
        self.commit(n);
    }
}

/// Returns all bytes that can be read, at once.
impl ByteSource for MirrorRing {
    #[inline]
    fn peek(&mut self) -> &[u8] {
        (*self).peek()
    }

    #[inline]
    #[track_caller]
    fn consume(&mut self, n: usize) {
        self.consume(n);
    }
}

impl fmt::Debug for MirrorRing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MirrorRing")
            .field("len", &self.len())
            .field("capacity", &self.capacity())
            .field("is_mapped", &self.is_mapped())
            .finish_non_exhaustive()
    }
}
