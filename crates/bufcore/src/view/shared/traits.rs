//! Traits of the standard library for [`SharedBytes`]: it is borrowed, compared and hashed as the
//! bytes that it holds.

use core::borrow::Borrow;
use core::cmp::Ordering as Order;
use core::hash::{Hash, Hasher};
use core::ops::Deref;
use core::slice;

use super::SharedBytes;

impl Deref for SharedBytes {
    type Target = [u8];
    #[inline]
    fn deref(&self) -> &[u8] {
        self.as_slice()
    }
}

impl AsRef<[u8]> for SharedBytes {
    #[inline]
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl Borrow<[u8]> for SharedBytes {
    #[inline]
    fn borrow(&self) -> &[u8] {
        self
    }
}

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

impl<T: AsRef<[u8]> + ?Sized> PartialEq<T> for SharedBytes {
    #[inline]
    fn eq(&self, other: &T) -> bool {
        self.as_slice() == other.as_ref()
    }
}

impl Eq for SharedBytes {}

/// The comparison the other way round.
macro_rules! equals {
    ($($(#[$alloc:meta])? [$($generic:tt)*] $other:ty;)*) => {$(
        $(#[$alloc])?
        impl<$($generic)*> PartialEq<SharedBytes> for $other {
            #[inline]
            fn eq(&self, other: &SharedBytes) -> bool {
                let bytes: &[u8] = self.as_ref();
                bytes == other.as_slice()
            }
        }
    )*};
}

equals! {
    [] [u8];
    [] &[u8];
    [const N: usize] [u8; N];
    [const N: usize] &[u8; N];
    [] str;
    [] &str;
    #[cfg(feature = "alloc")] [] alloc::vec::Vec<u8>;
    #[cfg(feature = "alloc")] [] alloc::string::String;
    #[cfg(feature = "bytes")] [] bytes::Bytes;
    #[cfg(feature = "bytes")] [] bytes::BytesMut;
}

impl PartialOrd for SharedBytes {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<Order> {
        Some(self.cmp(other))
    }
}

impl Ord for SharedBytes {
    #[inline]
    fn cmp(&self, other: &Self) -> Order {
        self.as_slice().cmp(other.as_slice())
    }
}

/// Hashes as a slice of the same bytes does, so a map can be searched with a `&[u8]`.
impl Hash for SharedBytes {
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_slice().hash(state);
    }
}

impl<'a> IntoIterator for &'a SharedBytes {
    type Item = &'a u8;
    type IntoIter = slice::Iter<'a, u8>;
    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}
