//! A tagged pointer; see [`crate::author::TaggedPtr`].

use core::fmt;
use core::ptr::{self, NonNull};

/// Set in the address of a block that is one of several, and in that of no block: what is neither
/// is told by one look at one bit.
const MARK: usize = 1;
/// The address of no block.
const NOTHING: usize = MARK;

/// Points to a block's header, with a mark in the lowest bit: a lease of one word.
///
/// It owns nothing: the lease that contains it does. Headers must be aligned to at least 2.
///
/// ```
/// use std::ptr::NonNull;
///
/// use bufcore::author::TaggedPtr;
///
/// let mut header = 1500_u64; // a block's capacity
/// let tagged = TaggedPtr::of(NonNull::from(&mut header));
/// assert!(!tagged.is_shared() && tagged.unmarked().is_some());
/// let shared = tagged.shared(); // one of several parts
/// assert!(shared.is_shared() && shared.unmarked().is_none());
/// assert_eq!(shared.block(), tagged.block());
/// assert_eq!(TaggedPtr::<u64>::empty().block(), None);
/// assert_eq!(size_of::<TaggedPtr<u64>>(), size_of::<usize>());
/// ```
pub struct TaggedPtr<B> {
    /// Never null.
    address: *mut B,
}

impl<B> TaggedPtr<B> {
    /// Points to `block`, unmarked.
    #[inline(always)]
    #[must_use]
    pub fn of(block: NonNull<B>) -> Self {
        const { assert!(align_of::<B>() > MARK, "the last bit is for the mark") };
        Self { address: block.as_ptr() }
    }

    /// Points to no block, for a buffer of no bytes.
    #[inline]
    #[must_use]
    pub fn empty() -> Self {
        Self { address: ptr::without_provenance_mut(NOTHING) }
    }

    /// Returns the block, if there is one and it is not marked.
    ///
    /// This is one comparison, for the release of buffers that were never split.
    ///
    /// ```
    /// use std::ptr::NonNull;
    ///
    /// use bufcore::author::TaggedPtr;
    ///
    /// /// What a lease does with its block when it is dropped.
    /// fn release(tagged: TaggedPtr<u64>, free: &mut Vec<NonNull<u64>>) {
    ///     // A buffer of no bytes has no block.
    ///     if let Some(block) = tagged.unmarked().or_else(|| tagged.block()) {
    ///         free.push(block);
    ///     }
    /// }
    ///
    /// let (mut header, mut free) = (0, Vec::new());
    /// release(TaggedPtr::of(NonNull::from(&mut header)), &mut free);
    /// release(TaggedPtr::empty(), &mut free);
    /// assert_eq!(free.len(), 1);
    /// ```
    #[inline(always)]
    #[must_use]
    pub fn unmarked(&self) -> Option<NonNull<B>> {
        if self.address.addr() & MARK != 0 {
            return None;
        }
        // SAFETY: addresses are never null: those of blocks are not, nor is that of no block.
        Some(unsafe { NonNull::new_unchecked(self.address) })
    }

    /// Returns the block, if there is one.
    #[inline(always)]
    #[must_use]
    pub fn block(&self) -> Option<NonNull<B>> {
        if let Some(block) = self.unmarked() {
            return Some(block);
        }
        // Null without its mark is that of no block.
        NonNull::new(self.address.map_addr(|address| address & !MARK))
    }

    /// Returns whether the pointer is marked as one of several.
    #[inline(always)]
    #[must_use]
    pub fn is_shared(&self) -> bool {
        self.unmarked().is_none() && is_some(self.address.addr())
    }

    /// Returns the same pointer, marked as one of several. A pointer to no block is unchanged.
    #[inline]
    #[must_use]
    pub fn shared(&self) -> Self {
        if self.block().is_none() {
            return Self::empty();
        }
        Self { address: self.address.map_addr(|address| address | MARK) }
    }
}

/// Returns whether a marked address is that of a block. It is a call, so that the compiler does not
/// look at this first.
#[cold]
#[inline(never)]
fn is_some(address: usize) -> bool {
    address != NOTHING
}

impl<B> Clone for TaggedPtr<B> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<B> Copy for TaggedPtr<B> {}

impl<B> fmt::Debug for TaggedPtr<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaggedPtr").field("is_shared", &self.is_shared()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_do_not_move_the_block() {
        let mut header = 7_u64;
        let block = NonNull::from(&mut header);
        let tagged = TaggedPtr::of(block);
        assert_eq!(
            (tagged.block(), tagged.unmarked(), tagged.is_shared()),
            (Some(block), Some(block), false)
        );
        let shared = tagged.shared();
        assert_eq!((shared.block(), shared.unmarked(), shared.is_shared()), (Some(block), None, true));
        let nothing = TaggedPtr::<u64>::empty().shared();
        assert_eq!((nothing.block(), nothing.unmarked(), nothing.is_shared()), (None, None, false));
    }
}
