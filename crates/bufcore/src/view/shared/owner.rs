//! Bytes that are no pool's: a program's own vectors, and whatever else keeps bytes.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::ptr::NonNull;

use super::SharedBytes;
use super::erased::ErasedGuard;
use crate::Lease;
use crate::lease::guard::LeaseGuard;
use crate::lease::ref_count::RefCount;
use crate::lease::track::TrackId;

/// The control block of an owner on the heap: the count of its handles, and the owner.
struct Control<T> {
    views: RefCount,
    owner: T,
}

/// The lease of bytes that a `T` keeps.
struct OwnerLease<T> {
    /// From `Box::into_raw`; freed when this is dropped.
    control: NonNull<Control<T>>,
}

// SAFETY: the owner is dropped by whichever handle is last, and it is `Send`.
unsafe impl<T: Send> Send for OwnerLease<T> {}
// SAFETY: through a shared lease the count alone is used, which is `Sync`.
unsafe impl<T: Send> Sync for OwnerLease<T> {}

// SAFETY:
// - memory: what the owner lends, it lends as long as it is borrowed; it is never moved, and
//   dropped with the lease only.
// - copies: one raw pointer.
// - count: in the control block, which is this memory's alone.
// - wipe: none.
unsafe impl<T: Send + 'static> Lease for OwnerLease<T> {
    #[inline]
    fn views(&self) -> Option<&RefCount> {
        // SAFETY: the control block is there until the lease is dropped, and nobody borrows it
        // mutably.
        Some(unsafe { &(*self.control.as_ptr()).views })
    }
}

impl<T> Drop for OwnerLease<T> {
    fn drop(&mut self) {
        // SAFETY: from `Box::into_raw`, and freed once, here.
        drop(unsafe { Box::from_raw(self.control.as_ptr()) });
    }
}

impl SharedBytes {
    /// Makes a handle of the bytes of `owner`. The owner is dropped with the last handle, on any
    /// thread.
    ///
    /// `as_ref` of `owner` is called once.
    ///
    /// Cost: one allocation of the owner's size and a word. If the owner has no bytes, it is
    /// dropped at once. The process aborts if the allocation fails, as for a `Vec`.
    ///
    /// ```
    /// # use bufcore::SharedBytes;
    /// let array = SharedBytes::from_owner([1, 2, 3]);
    /// assert_eq!(array.slice(1..), [2, 3]);
    /// ```
    #[must_use]
    pub fn from_owner<T: AsRef<[u8]> + Send + 'static>(owner: T) -> Self {
        Self::from_owner_of(owner, false)
    }

    /// Makes a view as [`from_owner`](Self::from_owner) does, of bytes that may be secrets.
    pub(super) fn from_owner_of<T: AsRef<[u8]> + Send + 'static>(owner: T, is_wiped: bool) -> Self {
        let control = NonNull::from(Box::leak(Box::new(Control { views: RefCount::new(), owner })));
        // Before the owner's code runs: if that panics, the lease frees it.
        let guard = LeaseGuard::new(OwnerLease { control }, TrackId::none());
        // SAFETY: it is there until the lease is dropped, and never borrowed mutably until then.
        let control: &Control<T> = unsafe { control.as_ref() };
        let bytes = NonNull::from(control.owner.as_ref());
        if bytes.is_empty() {
            return Self::new();
        }
        control.views.init(1);
        let Some(guard) = ErasedGuard::new(guard, is_wiped) else { return Self::new() };
        // SAFETY: the owner lends the bytes as long as it is borrowed, which the guard lets it be;
        // there are some.
        unsafe { Self::guarded_by(bytes.cast(), bytes.len(), guard) }
    }

    /// Makes a handle of a copy of `bytes`.
    ///
    /// Cost: a copy, and two allocations.
    ///
    /// ```
    /// # #[cfg(feature = "alloc")] {
    /// use bufcore::SharedBytes;
    ///
    /// let line = String::from("a line");
    /// let copy = SharedBytes::copy_from_slice(line.as_bytes());
    /// drop(line);
    /// assert_eq!(&copy[..], b"a line");
    /// # }
    /// # Ok::<(), bufcore::Error>(())
    /// ```
    #[inline]
    #[must_use]
    pub fn copy_from_slice(bytes: &[u8]) -> Self {
        Self::from(Vec::from(bytes))
    }
}

/// Cost: one small allocation, no copy; nothing for an empty one. Its spare capacity is kept.
impl From<Vec<u8>> for SharedBytes {
    #[inline]
    fn from(bytes: Vec<u8>) -> Self {
        if bytes.is_empty() { Self::new() } else { Self::from_owner(bytes) }
    }
}

/// Cost: as from a `Vec`.
impl From<Box<[u8]>> for SharedBytes {
    #[inline]
    fn from(bytes: Box<[u8]>) -> Self {
        if bytes.is_empty() { Self::new() } else { Self::from_owner(bytes) }
    }
}

/// Cost: as from a `Vec`.
impl From<String> for SharedBytes {
    #[inline]
    fn from(text: String) -> Self {
        Self::from(text.into_bytes())
    }
}

/// Cost: as from a `Vec`.
impl FromIterator<u8> for SharedBytes {
    fn from_iter<I: IntoIterator<Item = u8>>(bytes: I) -> Self {
        Self::from(Vec::from_iter(bytes))
    }
}
