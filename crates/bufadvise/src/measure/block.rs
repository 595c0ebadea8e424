//! Tells the harness where the bytes of a buffer are, whoever made it.
//!
//! All engines' buffers are touched, filled, read and checked by the code here, through one raw
//! pointer. So none of them pays for its own accessors, and all of them pay the same.

use core::slice;

use bufcore::{Buf, Lease};

/// A buffer of an engine.
///
/// # Safety
///
/// [`start`](Self::start) returns the same pointer on each call. Until the buffer is dropped, that
/// pointer is valid for reads and writes by this buffer's owner alone. It is so for as many bytes
/// as the buffer was acquired for (or, for a frame, as were appended).
pub unsafe trait Block: 'static {
    /// Returns the first byte. The bytes may be uninitialised until the harness has written them.
    fn start(&mut self) -> *mut u8;
}

// SAFETY: a vector's pointer is stable while it does not grow, and valid for its capacity. The
// engines that hand out vectors make them with at least the capacity that was asked for.
unsafe impl Block for Vec<u8> {
    #[inline(always)]
    fn start(&mut self) -> *mut u8 {
        self.as_mut_ptr()
    }
}

// SAFETY: the buffer's memory: stable, exclusive and initialised from its creation to its drop
// (`bufcore`), and at least as large as was asked for. Only the harness reads it, and it keeps
// either to the filled or to the spare part.
unsafe impl<L: Lease> Block for Buf<L> {
    #[inline(always)]
    fn start(&mut self) -> *mut u8 {
        if self.is_empty() { self.spare_mut().as_mut_ptr() } else { self.as_mut_slice().as_mut_ptr() }
    }
}

/// Returns the bytes of a buffer, all of which have been written since it was acquired.
///
/// # Safety
///
/// The first `bytes` bytes are initialised.
#[inline(always)]
pub unsafe fn read<B: Block>(block: &mut B, bytes: usize) -> &[u8] {
    // SAFETY: valid for reads (`Block`), initialised by the caller's promise.
    unsafe { slice::from_raw_parts(block.start(), bytes) }
}
