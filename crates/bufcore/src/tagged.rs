//! A lease of one word; see [`crate::strategy::Tagged`].

use core::fmt;
use core::ptr::{self, NonNull};

/// Set in the address of a block that is one of several.
const SHARED: usize = 1;
/// The address of no block.
const NOTHING: usize = 2;

/// What a lease of one word is made of: the address of a block's header, with room for a mark in its last bits.
///
/// It owns nothing: the lease that holds it does. For headers that start at multiples of 4 or more.
pub struct Tagged<B> {
    address: *mut B,
}

impl<B> Tagged<B> {
    /// Names `block`, unmarked.
    #[inline(always)]
    #[must_use]
    pub fn of(block: NonNull<B>) -> Self {
        const { assert!(align_of::<B>() > NOTHING, "the last two bits are for marks") };
        Self { address: block.as_ptr() }
    }

    /// Names no block: for a buffer of no bytes.
    #[inline]
    #[must_use]
    pub fn nothing() -> Self {
        Self { address: ptr::without_provenance_mut(NOTHING) }
    }

    /// The block, if there is one.
    #[inline(always)]
    #[must_use]
    pub fn block(&self) -> Option<NonNull<B>> {
        if self.address.addr() == NOTHING {
            return None;
        }
        NonNull::new(self.address.map_addr(|address| address & !SHARED))
    }

    /// Whether it is marked as one of several.
    #[inline(always)]
    #[must_use]
    pub fn is_shared(&self) -> bool {
        self.address.addr() & SHARED != 0
    }

    /// The same, marked as one of several; nothing stays nothing.
    #[inline]
    #[must_use]
    pub fn shared(&self) -> Self {
        if self.block().is_none() {
            return Self::nothing();
        }
        Self { address: self.address.map_addr(|address| address | SHARED) }
    }
}

impl<B> fmt::Debug for Tagged<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tagged").field("is_shared", &self.is_shared()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_do_not_move_the_block() {
        let mut header = 7_u64;
        let block = NonNull::from(&mut header);
        let tagged = Tagged::of(block);
        assert_eq!((tagged.block(), tagged.is_shared()), (Some(block), false));
        let shared = tagged.shared();
        assert_eq!((shared.block(), shared.is_shared()), (Some(block), true));
        let nothing = Tagged::<u64>::nothing().shared();
        assert_eq!((nothing.block(), nothing.is_shared()), (None, false));
    }
}
