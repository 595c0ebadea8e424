//! The marks that a replay writes into its buffers, and finds again: a byte in each page,
//! and one in the last place.

use super::traffic::PAGE_BYTES;
use crate::measure::block::Block;

/// Marks a buffer of `bytes`, at least one, so that all its pages are there.
#[inline(always)]
pub(crate) fn mark<B: Block>(block: &mut B, bytes: usize, stamp: u8) {
    let start = block.start();
    let mut offset = 0;
    while offset < bytes {
        write(start, offset, stamp);
        offset += PAGE_BYTES;
    }
    write(start, bytes - 1, stamp);
}

/// Writes a byte of a buffer that is larger than `offset`.
#[inline(always)]
fn write(start: *mut u8, offset: usize, stamp: u8) {
    // SAFETY: the callers' offsets are below the bytes that the buffer has.
    let byte = unsafe { start.add(offset) };
    // SAFETY: valid for writes (`Block`).
    unsafe { byte.write(stamp) };
}

/// Returns whether the marks of both ends are there.
#[inline(always)]
pub(crate) fn ends<B: Block>(block: &mut B, bytes: usize, stamp: u8) -> bool {
    let start = block.start();
    [0, bytes - 1].into_iter().all(|offset| {
        // SAFETY: the buffer has `bytes`, at least one.
        let byte = unsafe { start.add(offset) };
        // SAFETY: valid for reads (`Block`), and written by `mark`.
        unsafe { byte.read() == stamp }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lost_mark_is_found() {
        for bytes in [1, 2, 4096, 4097, 10_000] {
            let mut buf = vec![0; bytes];
            mark(&mut buf, bytes, 7);
            assert!(ends(&mut buf, bytes, 7));
            assert!(buf.iter().step_by(PAGE_BYTES).all(|byte| *byte == 7), "a mark in each page");
            buf[bytes - 1] = 8;
            assert!(!ends(&mut buf, bytes, 7));
        }
    }
}
