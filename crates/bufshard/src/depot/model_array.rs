//! Arrays in the models, where atomics are no plain memory.

use alloc::vec::Vec;
use core::ops::Deref;
use core::ptr;

use super::bin::Bin;
use crate::block::Block;
use crate::sync::AtomicPtr;

/// Types of which an array is made.
pub(super) trait LazyEntry {
    fn new() -> Self;
}

impl LazyEntry for Bin {
    fn new() -> Self {
        Self::new()
    }
}

impl LazyEntry for AtomicPtr<Block> {
    fn new() -> Self {
        Self::new(ptr::null_mut())
    }
}

/// An array.
pub(super) struct LazyArray<T>(Vec<T>);

impl<T: LazyEntry> LazyArray<T> {
    pub(super) fn new(len: usize) -> Option<Self> {
        Some(Self((0..len).map(|_| T::new()).collect()))
    }
}

impl<T> Deref for LazyArray<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.0
    }
}
