//! Sinks and sources that programs have already: vectors, deques, cursors.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use crate::{ByteSink, ByteSource, ReserveError};

/// Appends to a `Vec<u8>` as a [`ByteSink`]. Committed bytes are appended, and the vector grows as
/// it has to.
///
/// The vector itself cannot be a sink. It lends its spare room uninitialised, and does not remember
/// how much of it was written; this type does.
///
/// Ownership: the sink borrows the vector. When it drops, the vector has the committed bytes, and
/// nothing behind them. When it is forgotten (`mem::forget`), room that was lent last stays at the
/// vector's end, as zeros or as it was written.
///
/// Cost: room that is lent for the first time is zeroed.
///
/// ```
/// use bufcore::VecSink;
///
/// let mut text = b"head: ".to_vec();
/// bufcore::copy(&mut &b"body"[..], &mut VecSink::new(&mut text));
/// assert_eq!(text, b"head: body");
/// ```
#[derive(Debug)]
pub struct VecSink<'a> {
    /// Reaches behind `len` while room is lent: all that was lent is initialised.
    vec: &'a mut Vec<u8>,
    /// Bytes that count; at most the vector's length.
    len: usize,
}

impl<'a> VecSink<'a> {
    /// Makes a sink that appends to `vec`.
    ///
    /// ```
    /// # #[cfg(feature = "alloc")] {
    /// use bufcore::{ByteSink, VecSink};
    ///
    /// let mut vec = b"GET ".to_vec();
    /// let mut sink = VecSink::new(&mut vec);
    /// sink.reserve(1)?[0] = b'/';
    /// sink.commit(1);
    /// drop(sink);
    /// assert_eq!(vec, b"GET /");
    /// # }
    /// # Ok::<(), bufcore::Error>(())
    /// ```
    #[must_use]
    pub fn new(vec: &'a mut Vec<u8>) -> Self {
        let len = vec.len();
        Self { vec, len }
    }
}

impl ByteSink for VecSink<'_> {
    fn reserve(&mut self, n: usize) -> Result<&mut [u8], ReserveError> {
        let missing = n.saturating_sub(self.vec.len() - self.len);
        if self.vec.try_reserve(missing).is_err() {
            return Err(ReserveError { requested: n, available: self.vec.capacity() - self.len });
        }
        self.vec.resize(self.vec.len() + missing, 0);
        Ok(&mut self.vec[self.len..][..n])
    }

    /// Appends the first `n` bytes of the room.
    ///
    /// # Panics
    ///
    /// Panics when `n` is over the room that was reserved.
    #[track_caller]
    fn commit(&mut self, n: usize) {
        let room = self.vec.len() - self.len;
        assert!(n <= room, "commit({n}) of {room} bytes of room");
        self.len += n;
    }
}

impl Drop for VecSink<'_> {
    fn drop(&mut self) {
        self.vec.truncate(self.len);
    }
}

/// Lends its first piece. Consumed bytes are removed.
impl ByteSource for VecDeque<u8> {
    fn peek(&mut self) -> &[u8] {
        let (front, back) = self.as_slices();
        if front.is_empty() { back } else { front }
    }

    fn consume(&mut self, n: usize) {
        self.drain(..n);
    }
}

/// Lends the bytes behind the position, which moves on.
#[cfg(feature = "std")]
impl<T: AsRef<[u8]>> ByteSource for std::io::Cursor<T> {
    fn peek(&mut self) -> &[u8] {
        rest(self)
    }

    /// Moves the position `n` bytes on.
    ///
    /// # Panics
    ///
    /// Panics when `n` is over the number of bytes behind the position.
    #[track_caller]
    fn consume(&mut self, n: usize) {
        let rest = rest(self).len();
        assert!(n <= rest, "consume({n}) of {rest} bytes");
        self.set_position(self.position() + n as u64);
    }
}

#[cfg(feature = "std")]
fn rest<T: AsRef<[u8]>>(cursor: &std::io::Cursor<T>) -> &[u8] {
    let bytes = cursor.get_ref().as_ref();
    // A position may be anywhere.
    usize::try_from(cursor.position()).ok().and_then(|at| bytes.get(at..)).unwrap_or_default()
}

/// Drops consumed bytes, front first.
#[cfg(feature = "bytes")]
impl ByteSource for bytes::Bytes {
    fn peek(&mut self) -> &[u8] {
        self
    }

    fn consume(&mut self, n: usize) {
        bytes::Buf::advance(self, n);
    }
}

/// Drops consumed bytes, front first.
#[cfg(feature = "bytes")]
impl ByteSource for bytes::BytesMut {
    fn peek(&mut self) -> &[u8] {
        self
    }

    fn consume(&mut self, n: usize) {
        bytes::Buf::advance(self, n);
    }
}

#[cfg(test)]
mod tests {
    use alloc::collections::VecDeque;
    use alloc::vec::Vec;

    use super::VecSink;
    use crate::{ByteSink, ByteSource, ReserveError, copy, copy_up_to};

    #[test]
    fn a_vector_grows_by_what_was_committed() {
        let mut vec = b"ab".to_vec();
        let mut sink = VecSink::new(&mut vec);
        sink.reserve(100).unwrap()[..3].copy_from_slice(b"cde");
        sink.commit(2);
        // A byte that was written behind is lent again.
        assert_eq!(sink.reserve(1).unwrap(), b"e");
        let refused = sink.reserve(usize::MAX).unwrap_err();
        assert_eq!(refused.requested, usize::MAX);
        assert!(refused.available >= 98);
        sink.commit(1);
        drop(sink);
        assert_eq!(vec, b"abcde");
    }

    #[test]
    #[should_panic(expected = "commit(4) of 3 bytes")]
    fn no_more_of_a_vector_is_committed_than_was_lent() {
        let mut vec = Vec::with_capacity(100);
        let mut sink = VecSink::new(&mut vec);
        let _ = sink.reserve(3);
        sink.commit(4);
    }

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

    #[test]
    fn a_deque_in_two_pieces_comes_out_in_order() {
        let mut deque: VecDeque<u8> = (0..8).collect();
        while deque.len() > 2 {
            deque.pop_front();
        }
        deque.extend(8..8 + (deque.capacity() - deque.len()) as u8);
        let expected: Vec<u8> = deque.iter().copied().collect();
        assert!(!deque.as_slices().1.is_empty(), "it goes round");
        let mut vec = Vec::new();
        assert_eq!(copy_up_to(&mut deque, &mut VecSink::new(&mut vec), 1), 1);
        assert_eq!(copy(&mut deque, &mut VecSink::new(&mut vec)), expected.len() - 1);
        assert_eq!((vec, deque.len()), (expected, 0));
    }

    #[cfg(feature = "bytes")]
    #[test]
    fn bytes_give_what_they_have() {
        let mut vec = Vec::new();
        let mut shared = bytes::Bytes::from_static(b"one\ntwo");
        assert_eq!(copy_up_to(&mut shared, &mut VecSink::new(&mut vec), 4), 4);
        let mut own = bytes::BytesMut::from(&b"three\nfour"[..]);
        assert_eq!(own.pieces(b'\n').into_iter().next(), Some(&b"three"[..]));
        assert_eq!((&vec[..], &shared[..], &own[..]), (&b"one\n"[..], &b"two"[..], &b"four"[..]));
    }

    #[cfg(feature = "std")]
    #[test]
    fn a_cursor_gives_what_is_behind_its_position() {
        let mut cursor = std::io::Cursor::new(b"hello");
        cursor.set_position(1);
        let mut vec = Vec::new();
        assert_eq!(copy_up_to(&mut cursor, &mut VecSink::new(&mut vec), 2), 2);
        assert_eq!((&vec[..], cursor.position(), cursor.peek()), (&b"el"[..], 3, &b"lo"[..]));
        cursor.set_position(u64::MAX);
        assert!(cursor.peek().is_empty());
        cursor.set_position(4);
        let over = std::panic::catch_unwind(core::panic::AssertUnwindSafe(|| cursor.consume(2)));
        assert!(over.is_err());
    }
}
