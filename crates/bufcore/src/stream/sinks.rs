//! A vector as a sink.

use alloc::vec::Vec;

use crate::{ByteSink, ReserveError};

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

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::VecSink;
    use crate::{ByteSink, ReserveError, copy};

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
}
