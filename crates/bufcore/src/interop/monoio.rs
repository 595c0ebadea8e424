//! The `monoio` crate.
//!
//! The runtime owns a buffer while the kernel reads or writes its bytes. It keeps it until the
//! kernel has finished, also when the future of the operation is dropped.
//!
//! A buffer's memory belongs to the pool, so moving the value moves no byte, and `Lease`, rule 1,
//! keeps it valid until the value is dropped. A runtime that ends closes its ring and drops the
//! buffers of operations whose futures were dropped, without waiting for the kernel. A late write
//! was never seen, but monoio does not promise that there is none: let operations end before it.

use monoio::buf::{IoBuf, IoBufMut};

use crate::{Buf, Lease};

/// Writes send the filled part.
// SAFETY:
// - stable: the address is a field that names memory of the pool, not of this value; moves of the
//   value do not change it, and only calls with `&mut` do, which the owner alone can make.
// - valid: rule 1 of `Lease`, until the value is dropped; the pool may be dropped before.
// - initialised: `len` is at most `capacity`, and all `capacity` bytes are initialised.
unsafe impl<L: Lease> IoBuf for Buf<L> {
    #[inline]
    fn read_ptr(&self) -> *const u8 {
        self.memory_ptr().as_ptr()
    }

    #[inline]
    fn bytes_init(&self) -> usize {
        self.len()
    }
}

/// A read replaces the filled bytes. `buf.slice_mut(buf.len()..)` appends after them.
// SAFETY: as above; a `Buf` is the only handle of its bytes, so that the kernel may write them.
unsafe impl<L: Lease> IoBufMut for Buf<L> {
    #[inline]
    fn write_ptr(&mut self) -> *mut u8 {
        self.memory_ptr().as_ptr()
    }

    #[inline]
    fn bytes_total(&mut self) -> usize {
        self.capacity()
    }

    /// # Panics
    ///
    /// Panics when `pos` is over the capacity.
    #[inline]
    unsafe fn set_init(&mut self, pos: usize) {
        self.truncate(pos);
        self.commit(pos - self.len());
    }
}
