//! Bytes that stream through a ring or a buffer, lent in place on both sides.

pub(crate) mod pieces;

use crate::memory::aliasing::copy_bytes;
use crate::{Buf, Lease, Pieces, ReserveError};

/// Takes bytes in place: lends room, then counts the bytes that were written.
///
/// ```
/// # #[cfg(feature = "alloc")] {
/// use bufcore::{ByteSink, HeapPool, ReserveError};
///
/// /// Writes a field: its length in one byte, then its bytes. It writes both or nothing.
/// fn field(sink: &mut impl ByteSink, bytes: &[u8]) -> Result<(), ReserveError> {
///     let room = sink.reserve(1 + bytes.len())?;
///     room[0] = bytes.len() as u8;
///     room[1..].copy_from_slice(bytes);
///     sink.commit(1 + bytes.len());
///     Ok(())
/// }
///
/// let mut buf = HeapPool::new().acquire(8)?;
/// field(&mut buf, b"news")?;
/// assert_eq!(field(&mut buf, b"hello").unwrap_err().available, 3);
/// assert_eq!(buf, b"\x04news");
/// # }
/// # Ok::<(), bufcore::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` takes no bytes in place",
    label = "this is not a `ByteSink`",
    note = "a `Buf`, a `Writer`, a mirrored ring and the writing end of a channel are; what implements `std::io::Write` alone is written to with `write_all`"
)]
pub trait ByteSink {
    /// Lends exactly `n` bytes of contiguous room. Nothing counts as written until
    /// [`commit`](Self::commit).
    ///
    /// # Errors
    ///
    /// Returns a [`ReserveError`] if there is less contiguous room than `n` now. Its `available` is
    /// the contiguous room.
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
    /// Panics if `n` is over the available room.
    ///
    /// ```
    /// # #[cfg(feature = "alloc")] {
    /// use std::io::Read;
    ///
    /// use bufcore::{ByteSink, HeapPool};
    ///
    /// let mut socket = &b"PONG"[..];
    /// let mut received = HeapPool::new().acquire(4096)?;
    /// let n = socket.read(received.reserve(1500)?)?;
    /// received.commit(n); // 4 of the 1500
    /// assert_eq!(received, b"PONG");
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    fn commit(&mut self, n: usize);
}

/// Gives bytes in place: lends the readable bytes, then drops the used ones.
///
/// ```
/// use bufcore::ByteSource;
///
/// /// Takes a field off the front, once all of it has come: its length in a byte, and its bytes.
/// fn field(source: &mut impl ByteSource) -> Option<Vec<u8>> {
///     let (length, rest) = source.peek().split_first()?;
///     let field = rest.get(..usize::from(*length))?.to_vec();
///     source.consume(1 + field.len());
///     Some(field)
/// }
///
/// let mut source = &b"\x04news\x05hel"[..];
/// assert_eq!(field(&mut source).as_deref(), Some(&b"news"[..]));
/// assert_eq!(field(&mut source), None); // the rest has yet to come
/// assert_eq!(source, b"\x05hel");
/// # Ok::<(), bufcore::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` gives no bytes in place",
    label = "this is not a `ByteSource`",
    note = "a `Buf`, a `&[u8]`, a mirrored ring and the reading end of a channel are; of a `Vec<u8>` take a slice: `&mut &vec[..]`"
)]
pub trait ByteSource {
    /// Returns the bytes that can be read now, in one slice. The slice is empty if there are none.
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
    /// Panics if `n` is over the length of the slice that [`peek`](Self::peek) returns.
    ///
    /// ```
    /// use bufcore::ByteSource;
    ///
    /// let mut source = &b"01234567"[..];
    /// let written = source.peek().len().min(5); // as much as a socket took
    /// source.consume(written);
    /// assert_eq!(source.peek(), b"567");
    /// ```
    fn consume(&mut self, n: usize);

    /// Returns the complete pieces that can be read now, each up to `delimiter`, in place. With
    /// `b'\n'` the pieces are lines.
    ///
    /// The pieces that the iteration returned are consumed when the value is dropped. See
    /// [`Pieces`].
    ///
    /// ```
    /// # #[cfg(feature = "alloc")] {
    /// use bufcore::{ByteSource, HeapPool};
    ///
    /// let mut buf = HeapPool::new().acquire(64)?;
    /// buf.extend_from_slice(b"level=info\nlevel=warn\nlev")?;
    /// let warnings = buf.pieces(b'\n').into_iter().filter(|line| line.ends_with(b"warn")).count();
    /// assert_eq!(warnings, 1);
    /// assert_eq!(buf, "lev"); // waits for its end
    /// # }
    /// # Ok::<(), bufcore::Error>(())
    /// ```
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

/// Fills the slice from the front. The rest of the slice is the available room.
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

/// Moves bytes from `source` to `sink` until the source is empty or the sink is full. Returns their
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

/// Moves at most `limit` bytes, as [`copy`] does. It is for a body of announced length, and takes
/// no bytes after it.
///
/// It returns less than `limit` if the source is empty, or the sink is full.
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

#[cfg(test)]
mod tests {
    use super::{ByteSink, copy};
    use crate::ReserveError;

    #[test]
    fn a_slice_is_filled_front_first() {
        let mut memory = [b'.'; 6];
        let mut sink = &mut memory[..];
        assert_eq!(copy(&mut &b"abcd"[..], &mut sink), 4);
        assert_eq!(sink.reserve(3), Err(ReserveError { requested: 3, available: 2 }));
        assert_eq!(copy(&mut &b"efgh"[..], &mut sink), 2);
        assert_eq!((copy(&mut &b"x"[..], &mut sink), &memory), (0, b"abcdef"));
    }

    #[test]
    #[should_panic(expected = "commit(3) of 2 bytes")]
    fn no_more_of_a_slice_is_committed_than_there_is() {
        (&mut [0; 2][..]).commit(3);
    }
}
