//! Bytes that say where they belong: each is a function of a seed and of its position.
//!
//! Not generic on purpose: compiled once, optimised, and instrumented by the sanitizers, which do not see reads that happen
//! inside the precompiled standard library.

fn word(seed: u64, index: u64) -> [u8; 8] {
    let mixed = (seed ^ index.rotate_left(32)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (mixed ^ (mixed >> 29)).to_le_bytes()
}

fn byte(seed: u64, position: usize) -> u8 {
    word(seed, (position / 8) as u64)[position % 8]
}

/// Bytes before the next multiple of eight.
fn head(position: usize, len: usize) -> usize {
    (position.next_multiple_of(8) - position).min(len)
}

/// Writes the bytes of `seed` from `position` on.
#[inline(never)]
pub fn fill(bytes: &mut [u8], seed: u64, position: usize) {
    let (first, rest) = bytes.split_at_mut(head(position, bytes.len()));
    for (i, target) in first.iter_mut().enumerate() {
        *target = byte(seed, position + i);
    }
    let position = position + first.len();
    for (i, chunk) in rest.chunks_mut(8).enumerate() {
        let word = word(seed, (position / 8 + i) as u64);
        for (target, value) in chunk.iter_mut().zip(word) {
            *target = value;
        }
    }
}

/// The position of the first byte that is not what [`fill`] writes.
#[inline(never)]
#[must_use]
pub fn mismatch(bytes: &[u8], seed: u64, position: usize) -> Option<usize> {
    let (first, rest) = bytes.split_at(head(position, bytes.len()));
    for (i, &value) in first.iter().enumerate() {
        if value != byte(seed, position + i) {
            return Some(position + i);
        }
    }
    let position = position + first.len();
    for (i, chunk) in rest.chunks(8).enumerate() {
        let word = word(seed, (position / 8 + i) as u64);
        let wrong = chunk.iter().zip(word).position(|(&value, expected)| value != expected);
        if let Some(at) = wrong {
            return Some(position + i * 8 + at);
        }
    }
    None
}

/// Panics unless `bytes` are those of `seed` from `position` on.
#[track_caller]
pub fn check(bytes: &[u8], seed: u64, position: usize) {
    if let Some(at) = mismatch(bytes, seed, position) {
        panic!("byte {at} of {position}..{} (seed {seed:#x}) was changed", position + bytes.len());
    }
}

/// Whether `needle` is anywhere in `bytes`.
#[inline(never)]
#[must_use]
pub fn contains(bytes: &[u8], needle: &[u8]) -> bool {
    bytes.windows(needle.len()).any(|window| window == needle)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_agree_with_the_whole_and_every_byte_counts() {
        let mut whole = [0; 61];
        fill(&mut whole, 7, 3);
        for from in 0..whole.len() {
            for to in from..=whole.len() {
                check(&whole[from..to], 7, 3 + from);
                let mut part = vec![0; to - from];
                fill(&mut part, 7, 3 + from);
                assert_eq!(part, whole[from..to]);
            }
        }
        for at in 0..whole.len() {
            let mut changed = whole;
            changed[at] ^= 1;
            assert_eq!(mismatch(&changed, 7, 3), Some(3 + at));
        }
        assert!(mismatch(&whole, 8, 3).is_some());
    }
}
