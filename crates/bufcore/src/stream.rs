//! Bytes that stream through a ring or a buffer, lent in place on both sides.

use crate::copying::copy_bytes;
use crate::{Buf, Frozen, Lease, Pieces, ReserveError};

/// Takes bytes: lends room, then counts what was written into it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` takes no bytes in place",
    label = "this is not a `ByteSink`",
    note = "a `Buf`, a mirrored ring and the writing end of a channel are; a `Vec<u8>` is in a `VecSink`; what implements `std::io::Write` alone is written to with `write_all`"
)]
pub trait ByteSink {
    /// Lends exactly `n` bytes of contiguous room. Nothing counts as written until
    /// [`commit`](Self::commit).
    ///
    /// # Errors
    ///
    /// When there is less room than `n` now; `available` says how much there is in one piece.
    ///
    /// ```
    /// # #[cfg(feature = "alloc")] {
    /// use bufcore::{ByteSink, HeapPool};
    ///
    /// let mut buf = HeapPool::new().acquire(8)?;
    /// buf.reserve(4)?.copy_from_slice(b"room");
    /// ByteSink::commit(&mut buf, 4);
    /// assert_eq!(&buf[..], b"room");
    /// # }
    /// # Ok::<(), bufcore::Error>(())
    /// ```
    fn reserve(&mut self, n: usize) -> Result<&mut [u8], ReserveError>;

    /// Counts the first `n` bytes of the last reservation as written.
    ///
    /// # Panics
    ///
    /// When `n` is over what there is room for.
    fn commit(&mut self, n: usize);
}

/// Gives bytes: lends what is there, then drops what was used.
#[diagnostic::on_unimplemented(
    message = "`{Self}` gives no bytes in place",
    label = "this is not a `ByteSource`",
    note = "a `Buf`, a `&[u8]`, a mirrored ring and the reading end of a channel are; of a `Vec<u8>` take a slice: `&mut &vec[..]`"
)]
pub trait ByteSource {
    /// Returns the bytes that can be read now in one piece; an empty slice when there are none.
    ///
    /// ```
    /// # #[cfg(feature = "alloc")] {
    /// use bufcore::ByteSource;
    ///
    /// let mut source = &b"GET / HTTP/1.1"[..];
    /// let method = source.peek().split(|&byte| byte == b' ').next().unwrap();
    /// assert_eq!(method, b"GET");
    /// ByteSource::consume(&mut source, 4);
    /// assert_eq!(source.peek(), b"/ HTTP/1.1");
    /// # }
    /// # Ok::<(), bufcore::Error>(())
    /// ```
    fn peek(&mut self) -> &[u8];

    /// Drops the first `n` bytes that [`peek`](Self::peek) shows.
    ///
    /// # Panics
    ///
    /// When `n` is over the length of what [`peek`](Self::peek) lends.
    fn consume(&mut self, n: usize);

    /// Returns the complete pieces that can be read now, each up to `delimiter`, in place: lines,
    /// for `b'\n'`.
    ///
    /// The pieces that were looked at are consumed when the returned value drops. See [`Pieces`].
    #[inline]
    fn pieces(&mut self, delimiter: u8) -> Pieces<'_, Self>
    where
        Self: Sized,
    {
        Pieces::new(self, delimiter)
    }
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

/// Reading a view as a source drops what was consumed, front first.
impl<L: Lease> ByteSource for Frozen<L> {
    #[inline]
    fn peek(&mut self) -> &[u8] {
        self
    }

    #[inline]
    fn consume(&mut self, n: usize) {
        self.consume(n);
    }
}

/// Fills the slice front first; what is left of it is the room.
///
/// ```
/// let mut memory = [0; 8];
/// let mut sink = &mut memory[..];
/// assert_eq!(bufcore::copy(&mut &b"hello"[..], &mut sink), 5);
/// assert_eq!(sink.len(), 3); // room
/// assert_eq!(memory, *b"hello\0\0\0");
/// ```
impl ByteSink for &mut [u8] {
    #[inline]
    fn reserve(&mut self, n: usize) -> Result<&mut [u8], ReserveError> {
        let available = self.len();
        self.get_mut(..n).ok_or(ReserveError { requested: n, available })
    }

    #[inline]
    #[track_caller]
    fn commit(&mut self, n: usize) {
        let room = self.len();
        assert!(n <= room, "commit({n}) of {room} bytes of room");
        *self = &mut core::mem::take(self)[n..];
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

/// Moves bytes from `source` to `sink` until one has no more to give or to take; returns their
/// number.
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
    copy_up_to(source, sink, usize::MAX)
}

/// Moves at most `limit` bytes, as [`copy`] does: the body that a header announced, and nothing of
/// what comes behind it.
///
/// Less than `limit` is returned when the source has no more to give now, or the sink no more room.
///
/// ```
/// let mut source = &b"\x05helloGET /"[..];
/// let announced = usize::from(source[0]);
/// source = &source[1..];
/// let mut memory = [0; 16];
/// assert_eq!(bufcore::copy_up_to(&mut source, &mut &mut memory[..], announced), 5);
/// assert_eq!((&memory[..6], source), (&b"hello\0"[..], &b"GET /"[..]));
/// ```
pub fn copy_up_to(source: &mut impl ByteSource, sink: &mut impl ByteSink, limit: usize) -> usize {
    let mut moved = 0;
    loop {
        let bytes = source.peek();
        let wanted = bytes.len().min(limit - moved);
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
