//! What buffers and views have in common with `[u8]`: they deref to their filled bytes, are
//! borrowed and iterated over as these, and are equal, ordered and hashed by these alone.

use core::borrow::Borrow;
use core::cmp::Ordering;
use core::hash::{Hash, Hasher};
use core::ops::Deref;
use core::slice;

use crate::{Buf, Frozen, Lease, SharedBytes};

macro_rules! as_bytes {
    ($([$($generics:tt)*] $handle:ty;)+) => {$(
        impl<$($generics)*> Deref for $handle {
            type Target = [u8];
            #[inline]
            fn deref(&self) -> &[u8] {
                self.as_slice()
            }
        }

        impl<$($generics)*> AsRef<[u8]> for $handle {
            #[inline]
            fn as_ref(&self) -> &[u8] {
                self
            }
        }

        impl<$($generics)*> Borrow<[u8]> for $handle {
            #[inline]
            fn borrow(&self) -> &[u8] {
                self
            }
        }

        impl<'a, $($generics)*> IntoIterator for &'a $handle {
            type Item = &'a u8;
            type IntoIter = slice::Iter<'a, u8>;
            #[inline]
            fn into_iter(self) -> Self::IntoIter {
                self.iter()
            }
        }

        /// Compares with any bytes: slices, arrays, vectors, strings, buffers and views of any
        /// pool.
        impl<$($generics)* T: AsRef<[u8]> + ?Sized> PartialEq<T> for $handle {
            #[inline]
            fn eq(&self, other: &T) -> bool {
                self.as_slice() == other.as_ref()
            }
        }

        impl<$($generics)*> Eq for $handle {}

        impl<$($generics)* T: AsRef<[u8]> + ?Sized> PartialOrd<T> for $handle {
            #[inline]
            fn partial_cmp(&self, other: &T) -> Option<Ordering> {
                self.as_slice().partial_cmp(other.as_ref())
            }
        }

        impl<$($generics)*> Ord for $handle {
            #[inline]
            fn cmp(&self, other: &Self) -> Ordering {
                self.as_slice().cmp(other.as_slice())
            }
        }

        /// Hashes as a slice of the same bytes does, so a map can be searched with a `&[u8]`.
        impl<$($generics)*> Hash for $handle {
            #[inline]
            fn hash<H: Hasher>(&self, state: &mut H) {
                self.as_slice().hash(state);
            }
        }

        the_other_way! {
            $handle:
            [$($generics)*] [u8];
            [$($generics)*] &[u8];
            [$($generics)*] str;
            [$($generics)*] &str;
            [$($generics)* const N: usize] [u8; N];
            [$($generics)* const N: usize] &[u8; N];
        }
        #[cfg(feature = "alloc")]
        the_other_way! {
            $handle:
            [$($generics)*] alloc::vec::Vec<u8>;
            [$($generics)*] alloc::string::String;
        }
        #[cfg(feature = "bytes")]
        the_other_way! {
            $handle:
            [$($generics)*] bytes::Bytes;
            [$($generics)*] bytes::BytesMut;
        }
    )+};
}

macro_rules! the_other_way {
    ($handle:ty: $([$($generics:tt)*] $bytes:ty;)+) => {$(
        impl<$($generics)*> PartialEq<$handle> for $bytes {
            #[inline]
            fn eq(&self, other: &$handle) -> bool {
                let bytes: &[u8] = self.as_ref();
                bytes == other.as_slice()
            }
        }

        impl<$($generics)*> PartialOrd<$handle> for $bytes {
            #[inline]
            fn partial_cmp(&self, other: &$handle) -> Option<Ordering> {
                let bytes: &[u8] = self.as_ref();
                bytes.partial_cmp(other.as_slice())
            }
        }
    )+};
}

as_bytes! {
    [L: Lease,] Buf<L>;
    [L: Lease,] Frozen<L>;
    [] SharedBytes;
}
