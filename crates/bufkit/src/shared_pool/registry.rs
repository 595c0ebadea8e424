//! A list that only grows; see [`crate::Registry`].

use alloc::boxed::Box;
use core::cell::Cell;
use core::fmt;
use core::marker::PhantomData;
use core::ptr;

use crate::sync::{AtomicPtr, Ordering};
use bufcore::author::try_box;

/// A type of which a [`Registry`] can hold values: it contains a [`Link`].
///
/// # Safety
///
/// [`link`](Self::link) always returns the same link for a value.
///
/// ```
/// use bufkit::{Link, RegistryEntry};
///
/// struct Entry {
///     number: usize,
///     link: Link<Self>,
/// }
///
/// // SAFETY: one field.
/// unsafe impl RegistryEntry for Entry {
///     fn link(&self) -> &Link<Self> {
///         &self.link
///     }
/// }
///
/// let entry = Entry { number: 7, link: Link::default() };
/// assert!(std::ptr::eq(entry.link(), &entry.link));
/// # assert_eq!(entry.number, 7);
/// ```
pub unsafe trait RegistryEntry: Sized {
    /// Returns the field in which the registry stores the next entry.
    fn link(&self) -> &Link<Self>;
}

/// Links an entry of a [`Registry`] to the next. A new link has no next entry.
///
/// ```
/// use bufkit::Link;
///
/// struct Entry {
///     number: usize,
///     link: Link<Self>,
/// }
///
/// let entry = Entry { number: 7, link: Link::default() };
/// # assert_eq!(entry.number, 7);
/// assert_eq!(format!("{:?}", entry.link), "Link { .. }");
/// ```
pub struct Link<T> {
    /// Written before the entry is known to others, and never again.
    next: Cell<*const T>,
}

impl<T> Default for Link<T> {
    fn default() -> Self {
        Self { next: Cell::new(ptr::null()) }
    }
}

/// An append-only list of all values of one kind in a pool. Entries are never removed, so each is
/// valid as long as the registry.
///
/// # Invariants
///
/// - Each entry was allocated by [`try_box`], is in one registry, once, and is freed with it.
///
/// ```
/// use bufkit::{Link, RegistryEntry, Registry};
///
/// /// What a pool has for one thread.
/// struct Cache {
///     thread: usize,
///     link: Link<Self>,
/// }
///
/// // SAFETY: one field.
/// unsafe impl RegistryEntry for Cache {
///     fn link(&self) -> &Link<Self> {
///         &self.link
///     }
/// }
///
/// let caches = Registry::default();
/// for thread in [1, 2, 3] {
///     let cache = caches.add(|| Cache { thread, link: Link::default() }).expect("room for a cache");
///     assert_eq!(cache.thread, thread);
/// }
/// assert!(caches.iter().map(|cache| cache.thread).eq([3, 2, 1])); // the newest first
/// ```
pub struct Registry<T: RegistryEntry> {
    /// The newest.
    first: AtomicPtr<T>,
    /// Neither `Send` nor `Sync` by itself: that is what its owner has to show.
    _entries: PhantomData<*const T>,
}

impl<T: RegistryEntry> Default for Registry<T> {
    fn default() -> Self {
        Self { first: AtomicPtr::new(ptr::null_mut()), _entries: PhantomData }
    }
}

impl<T: RegistryEntry> Registry<T> {
    /// Adds the value of `make` to the registry permanently. It returns `None` if the allocation
    /// fails.
    #[inline(always)]
    pub fn add(&self, make: impl FnOnce() -> T) -> Option<&T> {
        let item = try_box(make)?;
        // SAFETY: just made, and valid as long as the registry, which is borrowed.
        let entry = unsafe { item.as_ref() };
        // ORDER: Relaxed: compared only; the exchange publishes.
        let mut first = self.first.load(Ordering::Relaxed);
        loop {
            entry.link().next.set(first);
            // ORDER: Release pairs with the Acquire in `iter`: the entry is complete. A failure
            // publishes nothing.
            match self.first.compare_exchange_weak(first, item.as_ptr(), Ordering::Release, Ordering::Relaxed)
            {
                Ok(_) => return Some(entry),
                Err(now) => first = now,
            }
        }
    }

    /// Returns all entries of the registry, newest first.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        // ORDER: Acquire pairs with the Release in `add`.
        let mut at = self.first.load(Ordering::Acquire).cast_const();
        core::iter::from_fn(move || {
            // SAFETY: entries are valid as long as the registry, which is borrowed.
            let entry = unsafe { at.as_ref() }?;
            at = entry.link().next.get();
            Some(entry)
        })
    }
}

impl<T: RegistryEntry> Drop for Registry<T> {
    fn drop(&mut self) {
        // ORDER: Relaxed: whoever has the registry alone has seen all that was done with it.
        let mut at = self.first.load(Ordering::Relaxed);
        while !at.is_null() {
            // SAFETY: made by `try_box`, on this registry only, and nobody borrows the registry any
            // more.
            let entry = unsafe { Box::from_raw(at) };
            at = entry.link().next.get().cast_mut();
        }
    }
}

impl<T> fmt::Debug for Link<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link").finish_non_exhaustive()
    }
}

impl<T: RegistryEntry> fmt::Debug for Registry<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registry").finish_non_exhaustive()
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    struct Entry<'a> {
        number: usize,
        dropped: &'a Cell<usize>,
        link: Link<Self>,
    }

    // SAFETY: one field.
    unsafe impl RegistryEntry for Entry<'_> {
        fn link(&self) -> &Link<Self> {
            &self.link
        }
    }

    impl Drop for Entry<'_> {
        fn drop(&mut self) {
            self.dropped.set(self.dropped.get() + 1);
        }
    }

    #[test]
    fn entries_stay_until_the_roll_goes() {
        let dropped = Cell::new(0);
        let registry = Registry::default();
        assert!(registry.iter().next().is_none());
        let entries: [_; 3] = core::array::from_fn(|number| {
            registry.add(|| Entry { number, dropped: &dropped, link: Link::default() }).expect("room")
        });
        assert!(registry.iter().map(|entry| entry.number).eq([2, 1, 0]));
        assert!(registry.iter().zip(entries.into_iter().rev()).all(|(one, other)| ptr::eq(one, other)));
        assert_eq!(dropped.get(), 0);
        drop(registry);
        assert_eq!(dropped.get(), 3);
    }
}
