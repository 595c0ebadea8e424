//! Copies, of which short ones are not a call.

use core::ops::RangeInclusive;

use bufcore::author::copy_bytes;

/// The bytes of one load, as wide as all processors have.
const WORD_BYTES: usize = 16;
/// Copies of a number of bytes in this range are two loads and two stores, where a call of `memcpy`
/// costs more than its copy. No more lengths than this: each further comparison is paid by all
/// longer copies.
const SHORT_BYTES: RangeInclusive<usize> = WORD_BYTES..=2 * WORD_BYTES;

/// Copies `from` to `into`, which has the same length.
#[inline(always)]
pub(crate) fn copy(into: &mut [u8], from: &[u8]) {
    debug_assert_eq!(into.len(), from.len());
    if !SHORT_BYTES.contains(&from.len()) || !copy_ends(into, from) {
        copy_bytes(into, from);
    }
}

/// Copies the first and the last word, if there are any. Up to two words are then all copied; in
/// between the two overlap.
#[inline(always)]
fn copy_ends(into: &mut [u8], from: &[u8]) -> bool {
    let first = from.first_chunk::<WORD_BYTES>();
    let last = from.last_chunk::<WORD_BYTES>();
    let (Some(&first), Some(&last)) = (first, last) else { return false };
    if let Some(target) = into.first_chunk_mut() {
        *target = first;
    }
    if let Some(target) = into.last_chunk_mut() {
        *target = last;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::{SHORT_BYTES, copy};

    #[test]
    fn every_length() {
        const BYTES: usize = 2 * *SHORT_BYTES.end();
        let from: [u8; BYTES] = core::array::from_fn(|at| at as u8 + 1);
        for len in 0..BYTES {
            let mut into = [0; BYTES];
            copy(&mut into[..len], &from[..len]);
            assert_eq!((&into[..len], &into[len..]), (&from[..len], &[0; BYTES][len..]));
        }
    }
}
