//! Traits of the standard library for [`Frozen`]. It is cloned by its count, derefs to its bytes,
//! is borrowed and iterated over as they are, and is made from a buffer.

use core::borrow::Borrow;
use core::mem::ManuallyDrop;
use core::ops::Deref;
use core::{ptr, slice};

use super::Frozen;
use crate::{Buf, Lease};

impl<L: Lease> Clone for Frozen<L> {
    /// Makes another view of the same bytes.
    ///
    /// Cost: one locked addition; nothing is copied.
    ///
    /// # Panics
    ///
    /// Panics with more than two thousand million views of one buffer.
    #[inline]
    fn clone(&self) -> Self {
        let Some(views) = self.views().filter(|_| self.len > 0) else {
            return self.nothing();
        };
        views.retain();
        // SAFETY: `guard` is valid for reads; it may be copied bit by bit (`Lease`, rule 2), and
        // `Drop` drops one copy only. The ticket beside the lease follows the same rule.
        let guard = unsafe { ptr::read(&raw const *self.guard) };
        Self { ptr: self.ptr, len: self.len, capacity: self.capacity, guard: ManuallyDrop::new(guard) }
    }
}

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
