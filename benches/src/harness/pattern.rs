//! Bytes that tell one buffer from another.

use super::block::{Block, read};

/// Returns the byte that belongs at `offset` of the buffer with this seed.
#[inline]
pub(crate) fn pattern(seed: u64, offset: usize) -> u8 {
    let word = (seed ^ (offset as u64 >> 3)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (word >> (8 * (offset & 7))) as u8 ^ (word >> 56) as u8
}

/// Writes a buffer full with the pattern of `seed`.
pub(crate) fn fill<B: Block>(block: &mut B, bytes: usize, seed: u64) {
    let start = block.start();
    for offset in 0..bytes {
        // SAFETY: `offset < bytes`, which the buffer has.
        let byte = unsafe { start.add(offset) };
        // SAFETY: valid for writes (`Block`).
        unsafe { byte.write(pattern(seed, offset)) };
    }
}

/// Compares a buffer that [`fill`] wrote.
pub(crate) fn verify<B: Block>(block: &mut B, bytes: usize, seed: u64) -> Result<(), String> {
    // SAFETY: the caller has filled these bytes.
    let found = unsafe { read(block, bytes) };
    match found.iter().enumerate().find(|&(offset, &byte)| byte != pattern(seed, offset)) {
        None => Ok(()),
        Some((offset, &byte)) => Err(format!(
            "byte {offset} of {bytes} of buffer {seed} is {byte:#04x}, not {:#04x}",
            pattern(seed, offset)
        )),
    }
}
