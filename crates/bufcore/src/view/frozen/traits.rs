//! Traits of the standard library for [`Frozen`]. It is cloned by its count, and is made from a
//! buffer.

use core::mem::ManuallyDrop;
use core::ptr;

use super::Frozen;
use crate::{Buf, Lease};

impl<L: Lease> Clone for Frozen<L> {
    /// Makes another view of the same bytes.
    ///
    /// Cost: one locked addition; nothing is copied.
    ///
    /// # Panics
    ///
    /// Panics if one buffer has more than two billion views.
    #[inline]
    fn clone(&self) -> Self {
        let Some(views) = self.views().filter(|_| self.len > 0) else {
            return Self::empty();
        };
        views.retain();
        // SAFETY: `guard` is valid for reads; it may be copied bit by bit (`Lease`, rule 2), and
        // `Drop` drops one copy only. The tracker's id beside the lease follows the same rule.
        let guard = unsafe { ptr::read(&raw const *self.guard) };
        Self { ptr: self.ptr, len: self.len, capacity: self.capacity, guard: ManuallyDrop::new(guard) }
    }
}

impl<L: Lease> From<Buf<L>> for Frozen<L> {
    fn from(buf: Buf<L>) -> Self {
        buf.freeze()
    }
}
