//! Arrays in memory that the system gives zeroed, and gives page by page when it is first used. So
//! a pool has room for all that its settings allow, and pays for what it uses.

use core::marker::PhantomData;
use core::ops::Deref;
use core::ptr::{self, NonNull};

use bufcore::Region;

use super::bin::Bin;
use crate::block::Block;
use crate::sync::AtomicPtr;

/// Types of which zeroed memory holds values that are as `new` makes them, and which need no drop.
///
/// # Safety
///
/// As the sentence says.
pub(super) unsafe trait LazyEntry {}

// SAFETY: counters of zero and null pointers, which are zero.
unsafe impl LazyEntry for Bin {}
// SAFETY: a null pointer is zero.
unsafe impl LazyEntry for AtomicPtr<Block> {}

/// An array.
pub(super) struct LazyArray<T> {
    /// Room for `len` values; none for no values.
    region: Option<Region>,
    len: usize,
    values: PhantomData<T>,
}

impl<T: LazyEntry> LazyArray<T> {
    /// Allocates `len` zeroed values; returns `None` when there is no memory.
    pub(super) fn new(len: usize) -> Option<Self> {
        let bytes = len.checked_mul(size_of::<T>())?;
        let region = match bytes {
            0 => None,
            bytes => Some(Region::heap(bytes, align_of::<T>()).ok()?),
        };
        Some(Self { region, len, values: PhantomData })
    }
}

impl<T: LazyEntry> Deref for LazyArray<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        let start = self.region.as_ref().map_or(NonNull::dangling(), |region| region.as_ptr().cast());
        // SAFETY: `self.len` values, aligned, which are valid as zeroed memory; they are in the
        // region as long as this is borrowed.
        unsafe { &*ptr::slice_from_raw_parts(start.as_ptr(), self.len) }
    }
}
