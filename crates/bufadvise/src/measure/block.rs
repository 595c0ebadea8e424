//! Tells the harness where the bytes of a buffer are, whoever made it.
//!
//! All contestants' buffers are touched, filled, read and checked by the code here, through one raw
//! pointer. So none of them pays for its own accessors, and all of them pay the same.

use core::hint::black_box;
use core::slice;

use bufcore::{Buf, Lease};

/// A buffer of a contestant.
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
// contestants that hand out vectors make them with at least the capacity that was asked for.
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

/// Writes the first byte of a buffer of at least one, in a way that the optimiser can neither leave
/// out nor look through.
#[inline(always)]
pub fn touch<B: Block>(block: &mut B) {
    let start = block.start();
    // SAFETY: valid for writes (`Block`).
    unsafe { start.write(1) };
    black_box(start);
}

/// Writes one byte in each page of 4 KiB of a buffer of `bytes`.
#[inline(always)]
pub fn touch_pages<B: Block>(block: &mut B, bytes: usize) {
    const PAGE_BYTES: usize = 4096;
    let start = block.start();
    let mut offset = 0;
    while offset < bytes {
        // SAFETY: `offset < bytes`, which the buffer has.
        let page = unsafe { start.add(offset) };
        // SAFETY: valid for writes (`Block`).
        unsafe { page.write(1) };
        offset += PAGE_BYTES;
    }
    black_box(start);
}

/// Sets all of a buffer's `bytes` to `value` and lends them.
#[inline(always)]
pub fn fill<B: Block>(block: &mut B, bytes: usize, value: u8) -> &mut [u8] {
    let start = block.start();
    // SAFETY: valid for writes of `bytes` (`Block`).
    unsafe { start.write_bytes(value, bytes) };
    // SAFETY: initialised just now, and exclusive while the buffer is borrowed.
    unsafe { slice::from_raw_parts_mut(start, bytes) }
}

/// Copies `source` to the start of a buffer of at least as many bytes.
#[inline(always)]
pub fn copy<B: Block>(block: &mut B, source: &[u8]) {
    let start = block.start();
    // SAFETY: valid for writes of as many bytes (`Block`), and exclusive, so no part of `source`.
    unsafe { start.copy_from_nonoverlapping(source.as_ptr(), source.len()) };
    black_box(start);
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

/// Returns a sum that depends on every byte, word by word, so that it runs at the speed of memory.
#[inline]
#[must_use]
pub fn sum(bytes: &[u8]) -> u64 {
    let (words, tail) = bytes.as_chunks::<8>();
    let tail = tail.iter().fold(0_u64, |sum, &byte| sum.wrapping_add(u64::from(byte)));
    words.iter().fold(tail, |sum, &word| sum.wrapping_add(u64::from_le_bytes(word)))
}
