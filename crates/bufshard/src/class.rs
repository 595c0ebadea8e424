//! Size classes: four for each doubling, from 64 bytes on, so that a block is less than a quarter
//! larger than its request.
//!
//! Four, because two waste up to a half, and eight halve what a class of a thread serves again. A
//! class is found by the position of the highest bit and the two bits behind it, which is what a
//! floating-point number begins with: no table, no loop.

/// Bytes of the smallest class.
pub(crate) const LEAST_BYTES: usize = 64;
/// Bytes of the largest class that a pool can have.
#[cfg(all(test, not(any(loom, shuttle))))]
pub(crate) const MOST_BYTES: usize = bytes_of(MAX_CLASSES - 1);
/// Classes that a pool can have: up to 1 GiB. The model checker allows few atomics.
pub(crate) const MAX_CLASSES: usize = if cfg!(any(loom, shuttle)) { 2 } else { 97 };
/// What a block outside of the classes has for its class.
pub(crate) const NO_CLASS: u8 = u8::MAX;

const _: () = assert!(MAX_CLASSES <= NO_CLASS as usize);

/// What is in front of the first two bits of a mantissa: 50 bits of the rest.
const REST_BITS: u32 = f64::MANTISSA_DIGITS - 1 - 2;
/// What the last byte of class 0, at 63, begins with.
const FIRST: usize = (((LEAST_BYTES - 1) as f64).to_bits() >> REST_BITS) as usize;

/// Returns the class of a request of `bytes` bytes. The result is beyond all classes for no bytes,
/// and for more than the largest class has.
///
/// The number is the exponent and the first bits of the mantissa of the offset of the last byte. A
/// signed number is converted, since that is one instruction, and since for no bytes the sign makes
/// the result the largest of all. (Sizes that a `f64` rounds are far beyond the classes.)
#[inline(always)]
pub(crate) const fn class_of(bytes: usize) -> usize {
    let last = bytes.wrapping_sub(1) as isize as f64;
    ((last.to_bits() >> REST_BITS) as usize).saturating_sub(FIRST)
}

/// Returns the bytes of a class.
#[inline]
pub(crate) const fn bytes_of(class: usize) -> usize {
    if class == 0 {
        return LEAST_BYTES;
    }
    let (doubling, quarter) = ((class - 1) / 4, (class - 1) % 4);
    (5 + quarter) << (doubling + 4)
}

/// Returns the bytes of the largest class of which `classes` has the bit; 0 if it has none.
pub(crate) fn largest_of(classes: u64) -> usize {
    classes.checked_ilog2().map_or(0, |class| bytes_of(class as usize))
}

/// Returns the bytes that a buffer of a class counts as in the statistics, or 0 without statistics.
#[inline(always)]
pub(crate) const fn counted_bytes(class: usize) -> usize {
    if cfg!(feature = "stats") { bytes_of(class) } else { 0 }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn classes_are_in_order_and_waste_less_than_a_quarter() {
        for class in 0..MAX_CLASSES {
            let bytes = bytes_of(class);
            assert_eq!(class_of(bytes), class, "{bytes} bytes");
            assert_eq!(class_of(bytes + 1), class + 1, "{bytes} bytes and one");
            if class > 0 {
                let before = bytes_of(class - 1);
                assert!(before < bytes && bytes * 4 <= before * 5, "{before} then {bytes}");
            }
        }
        assert_eq!((bytes_of(0), class_of(1), class_of(63), MOST_BYTES), (64, 0, 0, 1 << 30));
        let sizes: alloc::vec::Vec<_> = (0..9).map(bytes_of).collect();
        assert_eq!(sizes, [64, 80, 96, 112, 128, 160, 192, 224, 256]);
    }

    #[test]
    fn what_has_no_class_is_beyond_all() {
        for bytes in [0, MOST_BYTES + 1, MOST_BYTES * 3, usize::MAX] {
            assert!(class_of(bytes) >= MAX_CLASSES, "{bytes} bytes");
        }
    }
}
