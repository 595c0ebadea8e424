//! Zeroing that is not left out.

/// Zeroes `range` in a way that the compiler cannot omit.
///
/// # Safety
///
/// 1. The range is valid for reads and writes, and initialised.
/// 2. No other code uses it during the call.
///
/// ```
/// use std::ptr::NonNull;
///
/// let mut key = *b"secret";
/// // SAFETY: a whole array, which no other code uses.
/// unsafe { bufcore::author::wipe(NonNull::from(&mut key[..])) };
/// assert_eq!(key, [0; 6]);
/// ```
#[cold]
pub unsafe fn wipe(range: core::ptr::NonNull<[u8]>) {
    // SAFETY: the caller's promise.
    let bytes = unsafe { &mut *range.as_ptr() };
    zeroize::Zeroize::zeroize(bytes);
}
