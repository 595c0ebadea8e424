//! Buffers and views beside slices, texts and each other: equal, ordered and hashed by their filled
//! bytes alone, as a `[u8]` is.

use core::cmp::Ordering;
use core::hash::{Hash, Hasher};

use crate::{Buf, Frozen, Lease};

macro_rules! as_bytes {
    ($($handle:ident),+) => {$(
        /// Compares with anything that is bytes: slices, arrays, vectors, texts, buffers and views
        /// of any pool.
        impl<L: Lease, T: AsRef<[u8]> + ?Sized> PartialEq<T> for $handle<L> {
            #[inline]
            fn eq(&self, other: &T) -> bool {
                self.as_slice() == other.as_ref()
            }
        }

        impl<L: Lease> Eq for $handle<L> {}

        impl<L: Lease, T: AsRef<[u8]> + ?Sized> PartialOrd<T> for $handle<L> {
            #[inline]
            fn partial_cmp(&self, other: &T) -> Option<Ordering> {
                self.as_slice().partial_cmp(other.as_ref())
            }
        }

        impl<L: Lease> Ord for $handle<L> {
            #[inline]
            fn cmp(&self, other: &Self) -> Ordering {
                self.as_slice().cmp(other.as_slice())
            }
        }

        impl<L: Lease> Hash for $handle<L> {
            fn hash<H: Hasher>(&self, state: &mut H) {
                self.as_slice().hash(state);
            }
        }

        the_other_way!($handle: [u8], &[u8], str, &str);
        #[cfg(feature = "alloc")]
        the_other_way!($handle: alloc::vec::Vec<u8>, alloc::string::String);
        #[cfg(feature = "bytes")]
        the_other_way!($handle: bytes::Bytes, bytes::BytesMut);

        impl<L: Lease, const N: usize> PartialEq<$handle<L>> for [u8; N] {
            #[inline]
            fn eq(&self, other: &$handle<L>) -> bool {
                self[..] == *other.as_slice()
            }
        }

        impl<L: Lease, const N: usize> PartialEq<$handle<L>> for &[u8; N] {
            #[inline]
            fn eq(&self, other: &$handle<L>) -> bool {
                self[..] == *other.as_slice()
            }
        }
    )+};
}

macro_rules! the_other_way {
    ($handle:ident: $($bytes:ty),+) => {$(
        impl<L: Lease> PartialEq<$handle<L>> for $bytes {
            #[inline]
            fn eq(&self, other: &$handle<L>) -> bool {
                let bytes: &[u8] = self.as_ref();
                bytes == other.as_slice()
            }
        }

        impl<L: Lease> PartialOrd<$handle<L>> for $bytes {
            #[inline]
            fn partial_cmp(&self, other: &$handle<L>) -> Option<Ordering> {
                let bytes: &[u8] = self.as_ref();
                bytes.partial_cmp(other.as_slice())
            }
        }
    )+};
}

as_bytes!(Buf, Frozen);
