//! What the harness does with the bytes of a buffer, whoever made it.

use core::hint::black_box;
use core::slice;

pub use bufadvise::measure::block::{Block, read};
pub use buftrials::words::sum;

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
