//! Traits of the standard library for [`Buf`]: it derefs to its filled bytes, and is borrowed and
//! iterated over as they are.

use core::borrow::{Borrow, BorrowMut};
use core::ops::{Deref, DerefMut};
use core::slice;

use super::Buf;
use crate::Lease;

impl<L: Lease> Deref for Buf<L> {
    type Target = [u8];
    #[inline]
    fn deref(&self) -> &[u8] {
        self.as_slice()
    }
}

impl<L: Lease> DerefMut for Buf<L> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        self.as_mut_slice()
    }
}

impl<L: Lease> AsRef<[u8]> for Buf<L> {
    #[inline]
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl<L: Lease> AsMut<[u8]> for Buf<L> {
    #[inline]
    fn as_mut(&mut self) -> &mut [u8] {
        self
    }
}

impl<L: Lease> Borrow<[u8]> for Buf<L> {
    fn borrow(&self) -> &[u8] {
        self
    }
}

impl<L: Lease> BorrowMut<[u8]> for Buf<L> {
    fn borrow_mut(&mut self) -> &mut [u8] {
        self
    }
}

impl<'a, L: Lease> IntoIterator for &'a Buf<L> {
    type Item = &'a u8;
    type IntoIter = slice::Iter<'a, u8>;
    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<'a, L: Lease> IntoIterator for &'a mut Buf<L> {
    type Item = &'a mut u8;
    type IntoIter = slice::IterMut<'a, u8>;
    fn into_iter(self) -> Self::IntoIter {
        self.iter_mut()
    }
}
