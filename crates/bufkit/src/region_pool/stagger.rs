//! Where neighbouring buffers start.

use bufcore::size::{CACHE_LINE_BYTES, MAX_BYTES};

/// From this size on, [`staggered`] moves the start of the next buffer off multiples of 4 KiB.
pub const STAGGER_FROM_BYTES: usize = 1024;

/// Returns the distance to the next buffer: an odd number of cache lines from
/// [`STAGGER_FROM_BYTES`] on, and `bytes` below that.
///
/// Buffers whose starts lie a multiple of 4 KiB apart share the same sets of the first-level cache
/// and evict each other. An odd number of lines distributes them over all sets (Bonwick's slab
/// colouring, 1994). This adds at most 127 bytes. `bytes` is at most [`MAX_BYTES`].
///
/// ```
/// use bufcore::size::CACHE_LINE_BYTES;
/// use bufkit::staggered;
///
/// assert_eq!(staggered(100), 100);
/// assert_eq!(staggered(4096), 4096 + CACHE_LINE_BYTES);
/// ```
#[inline]
pub const fn staggered(bytes: usize) -> usize {
    debug_assert!(bytes <= MAX_BYTES);
    if bytes < STAGGER_FROM_BYTES {
        bytes
    } else {
        ((bytes + (CACHE_LINE_BYTES - 1)) & !(CACHE_LINE_BYTES - 1)) | CACHE_LINE_BYTES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn staggered_is_an_odd_number_of_lines() {
        assert_eq!(staggered(0), 0);
        assert_eq!(staggered(1023), 1023);
        for bytes in [1024, 1025, 4096, 4160, 65536, 1 << 20] {
            let step = staggered(bytes);
            assert!(step >= bytes && step - bytes < 2 * CACHE_LINE_BYTES, "{bytes} -> {step}");
            assert_eq!(step / CACHE_LINE_BYTES % 2, 1, "{bytes} -> {step}");
        }
    }
}
