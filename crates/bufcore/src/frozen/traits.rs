//! What the language and its library know of a [`Frozen`] view: it derefs to its bytes, is borrowed
//! and iterated over as they are, and is made from a buffer.

use core::borrow::Borrow;
use core::ops::Deref;
use core::slice;

use super::Frozen;
use crate::{Buf, Lease};

impl<L: Lease> Deref for Frozen<L> {
    type Target = [u8];
    #[inline]
    fn deref(&self) -> &[u8] {
        self.as_slice()
    }
}

impl<L: Lease> AsRef<[u8]> for Frozen<L> {
    #[inline]
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl<L: Lease> Borrow<[u8]> for Frozen<L> {
    fn borrow(&self) -> &[u8] {
        self
    }
}

impl<L: Lease> From<Buf<L>> for Frozen<L> {
    fn from(buf: Buf<L>) -> Self {
        buf.freeze()
    }
}

impl<'a, L: Lease> IntoIterator for &'a Frozen<L> {
    type Item = &'a u8;
    type IntoIter = slice::Iter<'a, u8>;
    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}
