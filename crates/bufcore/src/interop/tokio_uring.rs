//! The `tokio-uring` crate.
//!
//! The runtime owns a buffer while the kernel reads or writes its bytes. It keeps it until the
//! kernel has finished, also when the future of the operation is dropped.

use tokio_uring::buf::{IoBuf, IoBufMut};

use crate::{Buf, Lease};

/// Writes send the filled part, and reads start at its front.
///
/// A read overwrites the filled bytes from the front. The length grows if more is read, and never
/// shrinks. `buf.slice(buf.len()..)` of `BoundedBuf` appends after them; it panics for a full
/// buffer.
// SAFETY:
// - stable: the address is a field that names memory of the pool, not of this value; moves of the
//   value do not change it, and only calls with `&mut` do, which the owner alone can make.
// - valid: rule 1 of `Lease`, until the value is dropped; the pool may be dropped before.
// - initialised: `len` is at most `capacity`, and all `capacity` bytes are initialised.
unsafe impl<L: Lease> IoBuf for Buf<L> {
    #[inline]
    fn stable_ptr(&self) -> *const u8 {
        self.memory_ptr().as_ptr()
    }

    #[inline]
    fn bytes_init(&self) -> usize {
        self.len()
    }

    #[inline]
    fn bytes_total(&self) -> usize {
        self.capacity()
    }
}

// SAFETY: as above; a `Buf` is the only handle of its bytes, so that the kernel may write them.
unsafe impl<L: Lease> IoBufMut for Buf<L> {
    #[inline]
    fn stable_mut_ptr(&mut self) -> *mut u8 {
        self.memory_ptr().as_ptr()
    }

    /// # Panics
    ///
    /// Panics when `pos` is over the capacity.
    #[inline]
    unsafe fn set_init(&mut self, pos: usize) {
        self.commit(pos.saturating_sub(self.len()));
    }
}
