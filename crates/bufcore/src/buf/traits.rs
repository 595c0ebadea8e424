//! Traits of the standard library for [`Buf`]: its filled bytes may be written.

use core::borrow::BorrowMut;
use core::ops::DerefMut;
use core::slice;

use super::Buf;
use crate::Lease;

impl<L: Lease> DerefMut for Buf<L> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        self.as_mut_slice()
    }
}

impl<L: Lease> AsMut<[u8]> for Buf<L> {
    #[inline]
    fn as_mut(&mut self) -> &mut [u8] {
        self
    }
}

impl<L: Lease> BorrowMut<[u8]> for Buf<L> {
    fn borrow_mut(&mut self) -> &mut [u8] {
        self
    }
}

impl<'a, L: Lease> IntoIterator for &'a mut Buf<L> {
    type Item = &'a mut u8;
    type IntoIter = slice::IterMut<'a, u8>;
    fn into_iter(self) -> Self::IntoIter {
        self.iter_mut()
    }
}
