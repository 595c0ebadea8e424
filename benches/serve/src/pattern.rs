//! Bytes that servers and clients know.

use std::sync::LazyLock;

/// The bytes repeat after so many, which is no multiple of a page.
const PERIOD: usize = 50_021;
/// From the bytes of one place to those of the next.
const STRIDE: usize = 1009;

static PATTERN: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let mut bytes = vec![0; PERIOD];
    fastrand::Rng::with_seed(38).fill(&mut bytes);
    bytes
});

/// The bytes of a place, in pieces.
pub fn pieces(place: usize, length: usize) -> impl Iterator<Item = &'static [u8]> {
    let (mut at, mut left) = (place * STRIDE % PERIOD, length);
    core::iter::from_fn(move || {
        let piece = &PATTERN[core::mem::take(&mut at)..];
        let piece = &piece[..piece.len().min(left)];
        left -= piece.len();
        (!piece.is_empty()).then_some(piece)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_differ_and_are_the_same_each_time() {
        let bytes = |place, length| pieces(place, length).collect::<Vec<_>>().concat();
        let (first, second) = (bytes(0, 200_000), bytes(1, 200_000));
        assert_eq!((first.len(), second.len()), (200_000, 200_000));
        assert_eq!((&first[..1000], &first[STRIDE..][..1000]), (&first[PERIOD..][..1000], &second[..1000]));
        assert_ne!(first[..4096], first[4096..8192]);
    }
}
