//! Bytes that stream through a ring or a buffer, lent in place on both sides.

use crate::copying::copy_bytes;
use crate::{Buf, Lease, ReserveError};

/// Takes bytes: lends room, then counts what was written into it.
pub trait ByteSink {
    /// Lends exactly `n` bytes of room, contiguous. Nothing counts as written until [`commit`](Self::commit).
    ///
    /// # Errors
    ///
    /// When there is less room than `n` now; `available` says how much there is in one piece.
    fn reserve(&mut self, n: usize) -> Result<&mut [u8], ReserveError>;

    /// Counts the first `n` bytes of the last reservation as written.
    ///
    /// # Panics
    ///
    /// When `n` is over what there is room for.
    fn commit(&mut self, n: usize);
}

/// Gives bytes: lends what is there, then drops what was used.
pub trait ByteSource {
    /// The bytes that can be read now in one piece; empty when there are none.
    fn peek(&mut self) -> &[u8];

    /// Drops the first `n` bytes.
    ///
    /// # Panics
    ///
    /// When `n` is over the length of what [`peek`](Self::peek) lends.
    fn consume(&mut self, n: usize);
}

impl<L: Lease> ByteSink for Buf<L> {
    #[inline]
    fn reserve(&mut self, n: usize) -> Result<&mut [u8], ReserveError> {
        let available = self.spare_capacity();
        self.spare_mut().get_mut(..n).ok_or(ReserveError { requested: n, available })
    }

    #[inline]
    fn commit(&mut self, n: usize) {
        self.commit(n);
    }
}

/// Reading a buffer as a source drops what was consumed, front first.
impl<L: Lease> ByteSource for Buf<L> {
    #[inline]
    fn peek(&mut self) -> &[u8] {
        self
    }

    #[inline]
    fn consume(&mut self, n: usize) {
        self.consume(n);
    }
}

impl ByteSource for &[u8] {
    #[inline]
    fn peek(&mut self) -> &[u8] {
        self
    }

    #[inline]
    fn consume(&mut self, n: usize) {
        *self = &self[n..];
    }
}

impl<S: ByteSink + ?Sized> ByteSink for &mut S {
    #[inline]
    fn reserve(&mut self, n: usize) -> Result<&mut [u8], ReserveError> {
        (**self).reserve(n)
    }

    #[inline]
    fn commit(&mut self, n: usize) {
        (**self).commit(n);
    }
}

impl<S: ByteSource + ?Sized> ByteSource for &mut S {
    #[inline]
    fn peek(&mut self) -> &[u8] {
        (**self).peek()
    }

    #[inline]
    fn consume(&mut self, n: usize) {
        (**self).consume(n);
    }
}

/// Moves bytes from `source` to `sink` until one has no more to give or to take; returns how many.
///
/// ```
/// # #[cfg(feature = "alloc")] {
/// # use bufcore::{BufferPool, HeapPool};
/// let mut sink = HeapPool::new().acquire(3).unwrap();
/// let mut source = &b"hello"[..];
/// assert_eq!(bufcore::copy(&mut source, &mut sink), 3);
/// assert_eq!((&sink[..], source), (&b"hel"[..], &b"lo"[..]));
/// # }
/// ```
pub fn copy(source: &mut impl ByteSource, sink: &mut impl ByteSink) -> usize {
    let mut moved = 0;
    loop {
        let bytes = source.peek();
        let wanted = bytes.len();
        let (room, n) = match sink.reserve(wanted) {
            // A second call, because the first one's borrow would otherwise outlive its match.
            Ok(_) => (sink.reserve(wanted), wanted),
            Err(ReserveError { available, .. }) => {
                let n = available.min(wanted);
                (sink.reserve(n), n)
            }
        };
        let Ok(room) = room else { return moved };
        // Nothing to move, or a sink of the user's that does not lend what it says.
        if n == 0 || room.len() != n {
            return moved;
        }
        copy_bytes(room, &bytes[..n]);
        sink.commit(n);
        source.consume(n);
        moved += n;
    }
}
