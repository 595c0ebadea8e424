//! The `bytes` crate.

use bytes::buf::UninitSlice;
use bytes::{BufMut, Bytes};

use crate::{Buf, Frozen, Lease};

// SAFETY: `chunk_mut` lends the bytes from `len` on, `remaining_mut` counts them, and `advance_mut` moves `len` over them,
// never past the capacity.
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

/// Cost: no copy of the bytes; one small allocation, which `Bytes` needs for an owner of another type.
impl<L: Lease> From<Frozen<L>> for Bytes {
    fn from(view: Frozen<L>) -> Self {
        Self::from_owner(view)
    }
}

/// Cost: as from a [`Frozen`].
impl<L: Lease> From<Buf<L>> for Bytes {
    fn from(buf: Buf<L>) -> Self {
        buf.freeze().into()
    }
}

/// Reading a view drops what was read, front first.
impl<L: Lease> bytes::Buf for Frozen<L> {
    #[inline]
    fn remaining(&self) -> usize {
        self.len()
    }

    #[inline]
    fn chunk(&self) -> &[u8] {
        self
    }

    #[inline]
    fn advance(&mut self, bytes: usize) {
        self.consume(bytes);
    }
}

#[cfg(test)]
mod tests {
    use bytes::{Buf, BufMut, Bytes};

    use crate::{BufferPool, HeapPool};

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
    #[should_panic(expected = "past the capacity")]
    fn advancing_past_the_capacity_panics() {
        let mut buf = HeapPool::new().acquire(1).unwrap();
        // SAFETY: none; `advance_mut` checks, which is what this shows.
        unsafe { buf.advance_mut(2) };
    }
}
