//! The `bytes` crate.

use bytes::buf::UninitSlice;
use bytes::{Buf, BufMut};

use crate::MirrorRing;

/// Reading consumes the bytes. All bytes are one chunk.
impl Buf for MirrorRing {
    #[inline]
    fn remaining(&self) -> usize {
        self.len()
    }

    #[inline]
    fn chunk(&self) -> &[u8] {
        self.peek()
    }

    #[inline]
    fn advance(&mut self, bytes: usize) {
        self.consume(bytes);
    }
}

/// Code that writes through this trait must check for room first: `put_slice` and its siblings
/// panic if there is too little.
///
/// tokio's `read_buf` (and `poll_read_buf` of `tokio-util`) return 0 **without reading** if the
/// ring is full, as they do at the end of a stream. Check
/// [`has_remaining_mut`](BufMut::has_remaining_mut) before you read with them, or use
/// `MirrorRing::read_from_async` (feature `tokio`), for which a full ring is an error.
// SAFETY: `chunk_mut` lends all free bytes, `remaining_mut` counts them, and `advance_mut` moves
// over them, never past them.
unsafe impl BufMut for MirrorRing {
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
        let free = self.spare_capacity();
        // There is always as much room as is free.
        UninitSlice::new(self.reserve(free).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use bytes::{Buf, BufMut};

    use crate::Builder;

    #[test]
    fn numbers_go_through() {
        let memory: &'static mut [u8] = std::vec![0; 20].leak();
        let mut ring = Builder::new().build_static(memory).unwrap();
        for round in 0..50 {
            ring.put_u32(round);
            ring.put_u16_le(7);
            assert_eq!((ring.remaining(), ring.remaining_mut(), ring.chunk().len()), (6, 4, 6));
            assert_eq!((ring.get_u32(), ring.get_u16_le()), (round, 7));
        }
        ring.put_slice(b"0123456789");
        assert!(!ring.has_remaining_mut());
        assert_eq!(ring.copy_to_bytes(10), b"0123456789"[..]);
    }
}
