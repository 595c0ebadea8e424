//! Checked byte arithmetic; all functions are pure.

use core::ops::{Bound, Range, RangeBounds};

/// Bytes of a cache line on the target machines; only speed depends on it.
pub const CACHE_LINE_BYTES: usize = 64;

/// The largest size that any object in Rust can have, `isize::MAX`.
pub const MAX_BYTES: usize = isize::MAX as usize;

/// Returns the part of `len` bytes that `range` names.
///
/// # Panics
///
/// When it is out of bounds or ends before it starts.
#[inline]
#[track_caller]
pub(crate) fn within(range: impl RangeBounds<usize>, len: usize) -> Range<usize> {
    let start = match range.start_bound() {
        Bound::Included(&at) => at,
        Bound::Excluded(&at) => at.saturating_add(1),
        Bound::Unbounded => 0,
    };
    let end = match range.end_bound() {
        Bound::Included(&at) => at.saturating_add(1),
        Bound::Excluded(&at) => at,
        Bound::Unbounded => len,
    };
    assert!(start <= end && end <= len, "slice {start}..{end} of {len} bytes");
    start..end
}

/// Rounds `bytes` up to a multiple of `alignment`, a power of two; `None` past `usize::MAX`.
///
/// ```
/// use bufcore::size::align_up;
///
/// assert_eq!(align_up(5000, 4096), Some(8192));
/// assert_eq!(align_up(usize::MAX, 64), None);
/// ```
#[inline]
pub const fn align_up(bytes: usize, alignment: usize) -> Option<usize> {
    debug_assert!(alignment.is_power_of_two());
    match bytes.checked_add(alignment - 1) {
        Some(sum) => Some(sum & !(alignment - 1)),
        None => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn align_up_rounds_and_refuses() {
        assert_eq!(align_up(0, 16), Some(0));
        assert_eq!(align_up(1, 16), Some(16));
        assert_eq!(align_up(16, 16), Some(16));
        assert_eq!(align_up(usize::MAX, 1), Some(usize::MAX));
        assert_eq!(align_up(usize::MAX, 2), None);
    }
}
