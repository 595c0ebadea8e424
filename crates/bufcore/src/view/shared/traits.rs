//! Traits of the standard library for [`SharedBytes`]: it is made from static bytes.

use super::SharedBytes;

/// Holds no bytes.
impl Default for SharedBytes {
    #[inline]
    fn default() -> Self {
        Self::new()
    }
}

/// Cost: nothing.
impl From<&'static [u8]> for SharedBytes {
    #[inline]
    fn from(bytes: &'static [u8]) -> Self {
        Self::from_static(bytes)
    }
}

/// Cost: nothing.
impl<const N: usize> From<&'static [u8; N]> for SharedBytes {
    #[inline]
    fn from(bytes: &'static [u8; N]) -> Self {
        Self::from_static(bytes)
    }
}

/// Cost: nothing.
impl From<&'static str> for SharedBytes {
    #[inline]
    fn from(text: &'static str) -> Self {
        Self::from_static(text.as_bytes())
    }
}
