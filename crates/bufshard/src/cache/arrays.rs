//! Slots of magazines that were allocated, beyond those that a cache has (`growth`).

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::cell::Cell;
use core::ptr::{self, NonNull};

use crate::block::Block;

/// A place for a block.
pub(super) type Slot = Cell<*const Block>;

/// Slots that were allocated. In front of them is their number.
pub(crate) struct Array(NonNull<Slot>);

impl Array {
    /// Allocates an array of `slots` empty slots; returns `None` when there is no memory. The
    /// caller has no cache entered or claimed.
    pub(super) fn new(slots: usize) -> Option<Self> {
        let mut all: Vec<Slot> = Vec::new();
        all.try_reserve_exact(slots + 1).ok()?;
        all.push(Cell::new(ptr::without_provenance(slots)));
        all.resize_with(slots + 1, || Cell::new(ptr::null()));
        let first = NonNull::new(Box::into_raw(all.into_boxed_slice()).cast::<Slot>())?;
        // SAFETY: behind the number.
        Some(Self(unsafe { first.add(1) }))
    }

    /// Returns the number of slots.
    pub(super) fn len(&self) -> usize {
        // SAFETY: the number is in front.
        let number = unsafe { self.0.sub(1) };
        // SAFETY: likewise.
        unsafe { number.as_ref() }.get().addr()
    }

    /// Makes the array again from slots that a magazine had.
    ///
    /// # Safety
    ///
    /// `slots` came from `into_slots`, and nobody else uses them.
    pub(super) unsafe fn from_slots(slots: NonNull<Slot>) -> Self {
        Self(slots)
    }

    pub(super) fn into_slots(self) -> NonNull<Slot> {
        let slots = self.0;
        core::mem::forget(self);
        slots
    }
}

impl Drop for Array {
    fn drop(&mut self) {
        // SAFETY: the number is in front.
        let first = unsafe { self.0.sub(1) };
        let all = ptr::slice_from_raw_parts_mut(first.as_ptr(), self.len() + 1);
        // SAFETY: made by `new` as a box of this length.
        drop(unsafe { Box::from_raw(all) });
    }
}

/// Arrays that magazines gave up. They are freed when this is dropped, which is to be done when no
/// cache is entered or claimed.
pub(crate) struct Arrays {
    /// Linked through their first slots.
    first: Option<Array>,
}

impl Arrays {
    pub(crate) const fn new() -> Self {
        Self { first: None }
    }

    pub(crate) fn extend(&mut self, arrays: impl IntoIterator<Item = Array>) {
        arrays.into_iter().for_each(|array| self.push(array));
    }

    fn push(&mut self, array: Array) {
        let next = self.first.take().map_or(ptr::null(), |next| next.into_slots().as_ptr().cast_const());
        // SAFETY: an array has slots, and these are nobody else's.
        unsafe { array.0.as_ref() }.set(next.cast());
        self.first = Some(array);
    }

    pub(crate) fn append(&mut self, mut other: Self) {
        while let Some(array) = other.pop() {
            self.push(array);
        }
    }

    fn pop(&mut self) -> Option<Array> {
        let array = self.first.take()?;
        // SAFETY: as in `push`.
        let next = unsafe { array.0.as_ref() }.replace(ptr::null());
        // SAFETY: what `push` linked is an array that was given up.
        self.first = NonNull::new(next.cast_mut().cast()).map(|next| unsafe { Array::from_slots(next) });
        Some(array)
    }
}

impl From<Option<Array>> for Arrays {
    fn from(array: Option<Array>) -> Self {
        let mut arrays = Self::new();
        arrays.extend(array);
        arrays
    }
}

impl Drop for Arrays {
    fn drop(&mut self) {
        while self.pop().is_some() {}
    }
}
