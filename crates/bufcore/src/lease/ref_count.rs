//! The count of a memory's handles; see [`crate::author::RefCount`].
//!
//! # Why exactly one handle is last
//!
//! A handle that finds the count at 1 is the only one: only handles make handles, so nobody is
//! left who could change the count. Any other handle subtracts 1, which is one atomic step, and
//! the one whose step leads to 0 is last. A forgotten handle keeps the count up, so nothing is
//! freed early. More than 2^31 handles panic before the count could wrap, and the increment is
//! undone first.

use crate::sync::{AtomicU32, Ordering, RELEASE};

/// More handles of one memory than this are refused, long before the count could wrap.
const MAX_HANDLES: u32 = u32::MAX / 2;

/// Counts the handles of one memory: views, and parts of a split buffer.
///
/// [`Lease::views`](crate::Lease::views) returns a reference to it. The functions that change it
/// are private to `bufcore`. Safe code can reach the count through
/// [`Buf::lease`](crate::Buf::lease), but cannot free the memory under a live handle.
///
/// ```
/// use bufcore::author::RefCount;
///
/// /// The header in front of each block of a strategy.
/// struct Header {
///     views: RefCount,
///     capacity: usize,
/// }
///
/// let header = Header { views: RefCount::new(), capacity: 4096 };
/// assert!(!header.views.is_one()); // a buffer is not counted before it is shared
/// # assert_eq!(header.capacity, 4096);
/// ```
#[derive(Debug)]
#[repr(transparent)]
pub struct RefCount {
    /// Of no meaning while the memory belongs to a buffer that was never split.
    count: AtomicU32,
}

impl RefCount {
    /// Makes a count for a memory that is not yet shared.
    #[inline]
    #[must_use]
    pub fn new() -> Self {
        Self { count: AtomicU32::new(0) }
    }

    /// Returns whether exactly one handle of a shared memory is left.
    ///
    /// All accesses of the other handles happened before this call returns.
    ///
    /// ```
    /// # #[cfg(feature = "alloc")] {
    /// use bufcore::{HeapPool, Lease};
    ///
    /// let mut buf = HeapPool::new().acquire_zeroed(8)?;
    /// let front = buf.split_to(4);
    /// assert!(buf.lease().views().is_some_and(|views| !views.is_one()));
    /// drop(front);
    /// assert!(buf.lease().views().is_some_and(|views| views.is_one()));
    /// # }
    /// # Ok::<(), bufcore::Error>(())
    /// ```
    #[inline]
    #[must_use]
    pub fn is_one(&self) -> bool {
        // ORDER: Acquire pairs with the Release decrement in `release`.
        self.count.load(Ordering::Acquire) == 1
    }

    /// Starts the count of a memory that was exclusive until now.
    #[inline]
    pub(crate) fn init(&self, handles: u32) {
        // ORDER: Relaxed, because the buffer was exclusive until now; whatever hands a view or a
        // part to another thread publishes this store with it.
        self.count.store(handles, Ordering::Relaxed);
    }

    /// Adds one handle to the count. The caller holds another.
    ///
    /// # Panics
    ///
    /// Panics with more than two thousand million handles of one memory.
    #[inline]
    pub(crate) fn retain(&self) {
        // ORDER: Relaxed, because the caller's handle keeps the count above zero, and whatever
        // hands the new one to another thread publishes it.
        if self.count.fetch_add(1, Ordering::Relaxed) > MAX_HANDLES {
            self.too_many();
        }
    }

    #[cold]
    #[inline(never)]
    fn too_many(&self) -> ! {
        // ORDER: Relaxed, as the increment that it takes back.
        self.count.fetch_sub(1, Ordering::Relaxed);
        panic!("more than {MAX_HANDLES} views of one buffer");
    }

    /// Takes one handle off the count, and says whether it was the last.
    #[inline]
    pub(crate) fn release(&self) -> bool {
        // ORDER: Acquire pairs with the Release decrement below of every other handle: what it did
        // with the memory, it did before we release it. The load alone decides for the only handle,
        // since nobody is left to change the count.
        if self.count.load(Ordering::Acquire) == 1 {
            return true;
        }
        // ORDER: Release pairs with the Acquire loads above and below of whoever is last.
        if self.count.fetch_sub(1, RELEASE) != 1 {
            return false;
        }
        // ORDER: Acquire pairs with the Release decrements of the handles that went before: they
        // all head release sequences that end in our own decrement, which this reads. Not a fence,
        // which ThreadSanitizer does not see.
        self.count.load(Ordering::Acquire);
        true
    }
}

impl Default for RefCount {
    #[inline]
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use core::panic::AssertUnwindSafe;
    use std::panic::catch_unwind;

    use super::*;

    /// Handles can be forgotten by the thousand million. The count does not wrap, and the refused
    /// one is not counted.
    #[test]
    fn too_many_handles_are_refused() {
        let views = RefCount::default();
        views.init(MAX_HANDLES);
        views.retain();
        let refused = catch_unwind(AssertUnwindSafe(|| views.retain()));
        // ORDER: Relaxed: one thread.
        assert!(refused.is_err() && views.count.load(Ordering::Relaxed) == MAX_HANDLES + 1);
        views.init(2);
        assert!(!views.is_one() && !views.release() && views.is_one() && views.release());
    }
}
