//! The blocks that wait for their last buffer.

use core::ptr::{self, NonNull};

use super::head::Orphan;

/// How many places the end of a pool looks at elsewhere, beside twice its own.
const LOOKS: usize = 64;

/// The blocks that wait, and where the looks that ends of pools pay for go on.
pub(super) struct List {
    pub(super) first: *mut Orphan,
    /// The next block to be looked at; none: the first.
    pub(super) cursor: *mut Orphan,
    /// What has been paid for and not been used.
    pub(super) credit: usize,
}

impl List {
    pub(super) const EMPTY: Self = Self { first: ptr::null_mut(), cursor: ptr::null_mut(), credit: 0 };

    /// Puts a block on the list, whose arrival pays for looks at those that are there already.
    ///
    /// # Safety
    ///
    /// `orphan` is valid, on no list, and leaves this one before it is freed.
    pub(super) unsafe fn link(&mut self, orphan: NonNull<Orphan>) {
        // SAFETY: valid, and only its atomics may change beside what is the sweeper's (O1).
        let head = unsafe { orphan.as_ref() };
        head.prev.set(ptr::null_mut());
        head.next.set(self.first);
        if let Some(first) = NonNull::new(self.first) {
            // SAFETY: what is on the list is valid.
            unsafe { first.as_ref() }.prev.set(orphan.as_ptr());
            self.credit = self.credit.saturating_add(2 * head.slots.get() + LOOKS);
        }
        if self.cursor.is_null() {
            // Its pool has just looked at the new one.
            self.cursor = self.first;
        }
        self.first = orphan.as_ptr();
    }

    /// Takes a block off the list.
    ///
    /// # Safety
    ///
    /// `orphan` is on the list.
    pub(super) unsafe fn unlink(&mut self, orphan: NonNull<Orphan>) {
        // SAFETY: on the list, and so valid.
        let Orphan { prev, next, .. } = unsafe { orphan.as_ref() };
        let (prev, next) = (prev.get(), next.get());
        if self.cursor == orphan.as_ptr() {
            self.cursor = next;
        }
        match NonNull::new(prev) {
            // SAFETY: what is on the list is valid.
            Some(prev) => unsafe { prev.as_ref() }.next.set(next),
            None => self.first = next,
        }
        if let Some(next) = NonNull::new(next) {
            // SAFETY: likewise.
            unsafe { next.as_ref() }.prev.set(prev);
        }
    }
}
