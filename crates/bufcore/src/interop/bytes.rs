//! The `bytes` crate.

use bytes::buf::UninitSlice;
use bytes::{BufMut, Bytes};

use crate::{Buf, BufferPool, Frozen, Lease, SharedBytes, SplitLease, Writer};

/// Appends, up to the capacity.
///
/// # A full buffer and tokio
///
/// A buffer does not grow as `BytesMut` does. If generic code asks for the available room, a full
/// buffer reports none. tokio's `AsyncReadExt::read_buf` then returns `Ok(0)` without reading.
/// **This looks like the end of the stream.**
///
/// Before each `read_buf`, check that [`spare_capacity`](Buf::spare_capacity) is over 0. A full
/// buffer means that a message is too long, or that a larger buffer is needed. [`Buf::read_from`]
/// returns an error instead. So does `bufworks::net::read_ready` for tokio's sockets.
///
/// `put_slice` and the other `put` methods panic if the bytes do not fit, as `bytes` requires.
// SAFETY: `chunk_mut` lends the bytes from `len` on, `remaining_mut` counts them, and `advance_mut`
// moves `len` over them, never past the capacity.
unsafe impl<L: Lease> BufMut for Buf<L> {
    #[inline]
    fn remaining_mut(&self) -> usize {
        self.spare_capacity()
    }

    #[inline]
    unsafe fn advance_mut(&mut self, bytes: usize) {
        self.commit(bytes);
    }

    #[inline]
    fn chunk_mut(&mut self) -> &mut UninitSlice {
        UninitSlice::new(self.spare_mut())
    }
}

/// Bytes that a writer makes room for when it is full and is asked for a chunk.
const CHUNK_BYTES: usize = 64;

/// Appends, and grows as `BytesMut` does.
///
/// # Panics
///
/// Methods panic if the pool cannot grow the buffer, since they return no errors.
// SAFETY: `chunk_mut` lends the room behind the filled bytes, which is never empty, and
// `advance_mut` moves their end over it, never past its end.
unsafe impl<P: BufferPool<Lease: SplitLease>> BufMut for Writer<P> {
    #[inline]
    fn remaining_mut(&self) -> usize {
        crate::size::MAX_BYTES - self.filled().len()
    }

    #[inline]
    unsafe fn advance_mut(&mut self, bytes: usize) {
        self.commit(bytes);
    }

    #[inline]
    fn chunk_mut(&mut self) -> &mut UninitSlice {
        let has_room = self.writable(0).is_ok_and(|room| !room.is_empty());
        match self.writable(if has_room { 0 } else { CHUNK_BYTES }) {
            Ok(room) => UninitSlice::new(room),
            Err(error) => panic!("a writer cannot grow: {error}"),
        }
    }

    fn put_slice(&mut self, bytes: &[u8]) {
        if let Err(error) = self.extend_from_slice(bytes) {
            panic!("a writer cannot grow: {error}");
        }
    }
}

impl<L: Lease> Buf<L> {
    /// Turns the filled bytes into a `bytes::Bytes`, the type of HTTP bodies and websocket
    /// messages. The memory returns to its pool when the last clone is dropped.
    /// `Bytes::from(buf)` and `buf.into()` do the same.
    ///
    /// Cost: no copy of the bytes; one small allocation, which `Bytes` needs for an owner of
    /// another type. An empty buffer allocates nothing.
    ///
    /// ```
    /// use bufcore::HeapPool;
    /// use bytes::Bytes;
    ///
    /// let mut buf = HeapPool::new().acquire(16)?;
    /// buf.extend_from_slice(b"answer")?;
    /// let bytes: Bytes = buf.into_bytes();
    /// assert_eq!(bytes.slice(..3), "ans");
    /// # Ok::<(), bufcore::Error>(())
    /// ```
    pub fn into_bytes(self) -> Bytes {
        self.freeze().into_bytes()
    }
}

impl<L: Lease> Frozen<L> {
    /// Turns the view into a `bytes::Bytes`, as [`Buf::into_bytes`] does with a buffer.
    /// `Bytes::from(view)` and `view.into()` do the same.
    ///
    /// ```
    /// use bufcore::HeapPool;
    ///
    /// let mut buf = HeapPool::new().acquire(16)?;
    /// buf.extend_from_slice(b"header body")?;
    /// let mut body = buf.freeze();
    /// let header = body.split_to(7);
    /// assert_eq!((&header[..], body.into_bytes()), (&b"header "[..], "body".into()));
    /// # Ok::<(), bufcore::Error>(())
    /// ```
    pub fn into_bytes(self) -> Bytes {
        if self.is_empty() { Bytes::new() } else { Bytes::from_owner(self) }
    }
}

/// Cost: that of [`into_bytes`](Frozen::into_bytes).
impl<L: Lease> From<Frozen<L>> for Bytes {
    fn from(view: Frozen<L>) -> Self {
        view.into_bytes()
    }
}

/// Cost: that of [`into_bytes`](Buf::into_bytes).
impl<L: Lease> From<Buf<L>> for Bytes {
    fn from(buf: Buf<L>) -> Self {
        buf.into_bytes()
    }
}

/// Cost: nothing for static or empty bytes; otherwise one small allocation, which `Bytes` needs for
/// an owner of another type. No bytes are copied.
impl From<SharedBytes> for Bytes {
    fn from(shared: SharedBytes) -> Self {
        match shared.static_bytes() {
            Some(bytes) => Self::from_static(bytes),
            None => Self::from_owner(shared),
        }
    }
}

/// Cost: one small allocation, no copy; nothing for empty bytes.
impl From<Bytes> for SharedBytes {
    fn from(bytes: Bytes) -> Self {
        if bytes.is_empty() { Self::new() } else { Self::from_owner(bytes) }
    }
}

#[cfg(test)]
mod tests {
    use bytes::{Buf as _, BufMut, Bytes};

    use crate::HeapPool;

    #[test]
    fn puts_gets_and_converts() {
        let mut buf = HeapPool::new().acquire(16).unwrap();
        buf.put_u16(7);
        buf.put_slice(b"payload");
        assert_eq!(buf.remaining_mut(), 7);
        let mut view = buf.freeze();
        let shared = Bytes::from(view.clone());
        assert_eq!(view.get_u16(), 7);
        assert_eq!(&view[..], b"payload");
        assert_eq!(shared.slice(2..), view.as_slice());
        assert_eq!(shared[2..].as_ptr(), view.as_ptr(), "no copy");
        assert!(view.try_into_mut().is_err(), "the bytes share it");
    }

    #[test]
    fn a_writer_grows() {
        let mut writer = crate::Writer::new(HeapPool::new());
        writer.put_u16(7);
        writer.put_bytes(1, 1000);
        writer.put_slice(&[2; 1000]);
        let buf = writer.finish();
        assert_eq!((&buf[..2], buf.len()), (&[0, 7][..], 2002));
        assert_eq!((&buf[2..1002], &buf[1002..]), (&[1; 1000][..], &[2; 1000][..]));
    }

    #[test]
    #[should_panic(expected = "past the capacity")]
    fn advancing_past_the_capacity_panics() {
        let mut buf = HeapPool::new().acquire(1).unwrap();
        // SAFETY: none; `advance_mut` checks, which is what this shows.
        unsafe { buf.advance_mut(2) };
    }
}
