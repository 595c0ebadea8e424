//! The values of a vector, one after another.

use core::fmt;
use core::mem;
use core::ptr::{self, NonNull};

use super::RingVec;

impl<T> IntoIterator for RingVec<T> {
    type Item = T;
    type IntoIter = IntoIter<T>;
    fn into_iter(mut self) -> IntoIter<T> {
        self.note_used();
        let end = mem::take(&mut self.len);
        IntoIter { vec: self, start: 0, end }
    }
}

/// The iterator over the values of a [`RingVec`].
///
/// Dropping it drops the remaining values and releases the vector's memory.
///
/// ```
/// # #[cfg(feature = "alloc")] {
/// use bufring::{IntoIter, RingPool};
///
/// let mut ring = RingPool::new(1024)?;
/// let mut words = ring.acquire_vec::<String>(3)?;
/// for word in ["one", "two", "three"] {
///     words.push(word.to_owned())?;
/// }
/// let mut words: IntoIter<String> = words.into_iter();
/// assert_eq!(words.next().as_deref(), Some("one"));
/// assert_eq!(words.rev().collect::<Vec<_>>(), ["three", "two"]); // from either end
/// # }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct IntoIter<T> {
    /// Empty: its values from `start` to `end` are the iterator's.
    vec: RingVec<T>,
    start: usize,
    end: usize,
}

impl<T> IntoIter<T> {
    fn rest(&self) -> NonNull<[T]> {
        NonNull::slice_from_raw_parts(self.vec.place(self.start), self.end - self.start)
    }

    /// Returns the remaining values.
    ///
    /// ```
    /// # #[cfg(feature = "alloc")] {
    /// let mut ring = bufring::RingPool::new(1024)?;
    /// let mut tokens = ring.acquire_vec::<char>(4)?;
    /// tokens.extend_from_slice(&['a', '+', 'b'])?;
    /// let mut tokens = tokens.into_iter();
    /// assert_eq!(tokens.next(), Some('a'));
    /// assert_eq!(tokens.as_slice(), ['+', 'b']); // a look ahead, for a parser
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn as_slice(&self) -> &[T] {
        // SAFETY: initialised, and the iterator's.
        unsafe { self.rest().as_ref() }
    }
}

impl<T> Iterator for IntoIter<T> {
    type Item = T;

    #[inline]
    fn next(&mut self) -> Option<T> {
        if self.start == self.end {
            return None;
        }
        let place = self.vec.place(self.start);
        self.start += 1;
        // SAFETY: it was one of the iterator's values, and is not any more.
        Some(unsafe { place.read() })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.end - self.start;
        (left, Some(left))
    }
}

impl<T> DoubleEndedIterator for IntoIter<T> {
    #[inline]
    fn next_back(&mut self) -> Option<T> {
        if self.start == self.end {
            return None;
        }
        self.end -= 1;
        // SAFETY: as in `next`.
        Some(unsafe { self.vec.place(self.end).read() })
    }
}

impl<T> ExactSizeIterator for IntoIter<T> {}
impl<T> core::iter::FusedIterator for IntoIter<T> {}

impl<T> Drop for IntoIter<T> {
    fn drop(&mut self) {
        // SAFETY: the iterator's values, and nobody looks at them afterwards.
        unsafe { ptr::drop_in_place(self.rest().as_ptr()) }
    }
}

impl<T: fmt::Debug> fmt::Debug for IntoIter<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("IntoIter").field(&self.as_slice()).finish()
    }
}
