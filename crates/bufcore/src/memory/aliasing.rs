//! Copies that avoid 4K aliasing.

/// Common C libraries copy this many bytes and more by `rep movsb` (glibc from 2112 bytes on, on
/// processors that have it fast). They copy fewer by ordinary loads and stores, at any placement.
const STRINGS_FROM_BYTES: usize = 2 << 10;
/// Pieces of this size are copied without it.
const PIECE_BYTES: usize = STRINGS_FROM_BYTES;
/// Processors compare two addresses modulo this, when they guess whether a store and a load touch
/// the same memory.
const PAGE_BYTES: usize = 4 << 10;
/// A copy aliases when its target lies at most this far behind its source, modulo `PAGE_BYTES`.
const ALIAS_BYTES: usize = 32;

/// Copies `from` to `into`, which has the same length.
///
/// On AMD's Zen 3 and later, `rep movsb` takes twenty times as long if the target lies 1 to 32
/// bytes after the source, modulo 4 KiB. Each store seems to conflict with a later load. C
/// libraries do not avoid this. In this case the function copies in pieces, with ordinary loads and
/// stores. All copies of these crates use it.
///
/// Cost: that of `copy_from_slice`, and a comparison; for long copies two more instructions.
///
/// # Panics
///
/// Panics when the lengths differ.
///
/// ```
/// use bufcore::author::copy_bytes;
///
/// let mut frame = [b'.'; 8];
/// copy_bytes(&mut frame[..5], b"hello");
/// assert_eq!(&frame, b"hello...");
/// ```
#[inline(always)]
pub fn copy_bytes(into: &mut [u8], from: &[u8]) {
    if cfg!(target_arch = "x86_64") && from.len() >= STRINGS_FROM_BYTES && is_aliased(into, from) {
        copy_pieces(into, from);
    } else {
        into.copy_from_slice(from);
    }
}

#[inline(always)]
fn is_aliased(into: &[u8], from: &[u8]) -> bool {
    let distance = into.as_ptr().addr().wrapping_sub(from.as_ptr().addr()) % PAGE_BYTES;
    // Not 0, for which it is as fast as anywhere.
    distance.wrapping_sub(1) < ALIAS_BYTES
}

#[cold]
#[inline(never)]
fn copy_pieces(into: &mut [u8], from: &[u8]) {
    assert_eq!(into.len(), from.len(), "copies have one length");
    for (into, from) in into.chunks_mut(PIECE_BYTES).zip(from.chunks(PIECE_BYTES)) {
        into.copy_from_slice(from);
    }
}

#[cfg(test)]
mod tests {
    use super::{ALIAS_BYTES, PAGE_BYTES, PIECE_BYTES, copy_bytes, is_aliased};

    #[test]
    fn every_placement_copies_all() {
        let lengths = [0, 1, PIECE_BYTES - 1, PIECE_BYTES, PIECE_BYTES + 1, 2 * PIECE_BYTES, 9000];
        let from: [u8; 9000] = core::array::from_fn(|at| (at % 251) as u8);
        let mut place = [0_u8; 9000 + 2 * PAGE_BYTES];
        for distance in (0..=ALIAS_BYTES + 2).chain([PAGE_BYTES - 1]) {
            let start = from.as_ptr().addr().wrapping_sub(place.as_ptr().addr()) % PAGE_BYTES + distance;
            for len in lengths {
                place.fill(0);
                let (into, from) = (&mut place[start..start + len], &from[..len]);
                assert_eq!(is_aliased(into, from), (1..=ALIAS_BYTES).contains(&distance));
                copy_bytes(into, from);
                assert_eq!(into, from);
                assert!(place[..start].iter().chain(&place[start + len..]).all(|&byte| byte == 0));
            }
        }
    }

    #[test]
    #[should_panic(expected = "length")]
    fn lengths_that_differ_panic_at_every_placement() {
        let place = [0_u8; 3 * PAGE_BYTES];
        let (from, rest) = place.split_at(PAGE_BYTES);
        let mut into = [0_u8; 3 * PAGE_BYTES];
        let start = from.as_ptr().addr().wrapping_sub(into.as_ptr().addr()) % PAGE_BYTES + 1;
        copy_bytes(&mut into[start..=start + PAGE_BYTES], &rest[..PAGE_BYTES]);
    }
}
