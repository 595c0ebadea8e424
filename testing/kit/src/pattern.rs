//! Bytes that say where they belong: each is a function of a seed and of its position.
//!
//! Not generic on purpose: compiled once, optimised, and instrumented by the sanitizers, which do
//! not see reads that happen inside the precompiled standard library.

/// Words that [`mismatch`] looks at between two branches.
const GROUP: usize = 16;

fn word(seed: u64, index: usize) -> u64 {
    let mixed = (seed ^ (index as u64).rotate_left(32)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    mixed ^ (mixed >> 29)
}

fn byte(seed: u64, position: usize) -> u8 {
    word(seed, position / 8).to_le_bytes()[position % 8]
}

/// Returns how many bytes are before the next multiple of eight.
fn head(position: usize, len: usize) -> usize {
    (position.next_multiple_of(8) - position).min(len)
}

/// Writes the bytes of `seed` from `position` on.
#[inline(never)]
pub fn fill(bytes: &mut [u8], seed: u64, position: usize) {
    let (first, rest) = bytes.split_at_mut(head(position, bytes.len()));
    let (words, last) = rest.as_chunks_mut::<8>();
    let start = position + first.len();
    let end = start + 8 * words.len();
    for (index, target) in (start / 8..).zip(words) {
        *target = word(seed, index).to_le_bytes();
    }
    for (at, target) in (position..).zip(first).chain((end..).zip(last)) {
        *target = byte(seed, at);
    }
}

/// Finds the position of the first byte that is not what [`fill`] writes.
#[inline(never)]
pub fn mismatch(bytes: &[u8], seed: u64, position: usize) -> Option<usize> {
    let wrong = |bytes: &[u8], from: usize| {
        (from..).zip(bytes).find_map(|(at, &value)| (value != byte(seed, at)).then_some(at))
    };
    // Most of the suite's time goes here.
    let differs = |words: &[[u8; 8]], from: usize| {
        let difference = |(index, &bytes)| u64::from_le_bytes(bytes) ^ word(seed, index);
        (from / 8..).zip(words).map(difference).fold(0, core::ops::BitOr::bitor) != 0
    };
    let (first, rest) = bytes.split_at(head(position, bytes.len()));
    let (words, last) = rest.as_chunks::<8>();
    let start = position + first.len();
    let end = start + 8 * words.len();
    let mut groups = (start..).step_by(8 * GROUP).zip(words.chunks(GROUP));
    wrong(first, position)
        .or_else(|| {
            groups.find_map(|(at, group)| differs(group, at).then(|| wrong(group.as_flattened(), at))?)
        })
        .or_else(|| wrong(last, end))
}

/// Panics unless `bytes` are those of `seed` from `position` on.
#[track_caller]
pub fn check(bytes: &[u8], seed: u64, position: usize) {
    if let Some(at) = mismatch(bytes, seed, position) {
        panic!("byte {at} of {position}..{} (seed {seed:#x}) was changed", position + bytes.len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_agree_with_the_whole_and_every_byte_counts() {
        let mut whole = [0; 300];
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
