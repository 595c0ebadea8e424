//! A value that one thread uses at the cost of plain stores, and that other threads use
//! occasionally.
//!
//! # Invariants
//!
//! - B1: the owner uses the value while `is_used` is set, which only it sets, after it saw
//!   `is_claimed` unset. A watcher uses the value while `is_claimed` is set, which it set itself,
//!   after it saw `is_used` unset.
//! - B2: between its store and its load each of the two executes a fence of a pair ([`fences`]). At
//!   least one therefore sees the other, and if a fence is refused, the watcher does not use the
//!   value.

use alloc::sync::Arc;
use core::cell::{Cell, UnsafeCell};
use core::fmt;
use core::marker::PhantomData;
use core::ops::{Deref, DerefMut};

use super::fences;
use crate::sync::{AtomicBool, Ordering};

/// How often each of the two looks whether the other is done, before it gives up.
const TRIES: u32 = if cfg!(any(loom, shuttle)) { 1 } else { 100 };

/// What the two share.
struct Inner<T> {
    /// B1.
    is_used: AtomicBool,
    /// B1.
    is_claimed: AtomicBool,
    /// Whether both sides execute a full fence.
    both_full: bool,
    value: UnsafeCell<T>,
}

// SAFETY: the value is used by one thread at a time, exclusively (B1), and what it did is ordered
// before the use of the next by the stores that end it.
unsafe impl<T: Send> Sync for Inner<T> {}

/// A value that its owner uses without a locked instruction. It may be sent to another thread,
/// which then is the owner.
///
/// ```
/// use bufkit::sync::biased;
///
/// let (owned, watched) = biased::new(0);
/// let counting = std::thread::spawn(move || {
///     (0..1000).filter(|_| owned.enter().map(|mut count| *count += 1).is_some()).count()
/// });
/// let seen = watched.look(|count| *count); // the other thread waits for a moment
/// assert!(seen.is_none_or(|count| count <= 1000));
/// let counted = counting.join().unwrap();
/// assert_eq!(watched.look(|count| *count), Some(counted));
/// ```
pub struct Owned<T> {
    inner: Arc<Inner<T>>,
    /// One thread at a time has it.
    _unshared: PhantomData<Cell<()>>,
}

/// The other end of an [`Owned`] value, for any number of watching threads.
///
/// ```
/// use bufkit::sync::biased::{self, Watched};
///
/// let (_owned, watched) = biased::new(7);
/// let all: [Watched<u32>; 2] = [watched.clone(), watched];
/// assert_eq!(all.map(|watched| watched.look(|value| *value)), [Some(7); 2]);
/// ```
pub struct Watched<T> {
    inner: Arc<Inner<T>>,
}

/// Makes a value with an owner, and a first watcher.
pub fn new<T>(value: T) -> (Owned<T>, Watched<T>) {
    let inner = Arc::new(Inner {
        is_used: AtomicBool::new(false),
        is_claimed: AtomicBool::new(false),
        both_full: !fences::has_heavy(),
        value: UnsafeCell::new(value),
    });
    (Owned { inner: Arc::clone(&inner), _unshared: PhantomData }, Watched { inner })
}

/// Says at its drop that the value is not used any more.
struct EndOfUse<'a>(&'a AtomicBool);

impl Drop for EndOfUse<'_> {
    #[inline]
    fn drop(&mut self) {
        // ORDER: Release pairs with the Acquire in `Owned::enter` and `Watched::look`: what was
        // done with the value happened before.
        self.0.store(false, Ordering::Release);
    }
}

/// The value of an [`Owned`], until this is dropped.
///
/// ```
/// let (owned, watched) = bufkit::sync::biased::new(vec![1]);
/// let mut used = owned.enter().expect("no watcher");
/// used.push(2);
/// assert!(owned.enter().is_none() && watched.look(|_| ()).is_none());
/// drop(used);
/// assert_eq!(watched.look(|values| values.len()), Some(2));
/// ```
pub struct Used<'a, T> {
    inner: &'a Inner<T>,
    _end: EndOfUse<'a>,
    /// It ends on the owner's thread.
    _unsent: PhantomData<*const ()>,
}

impl<T> Deref for Used<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: used by this thread alone (B1), and exclusively by means of this.
        unsafe { &*self.inner.value.get() }
    }
}

impl<T> DerefMut for Used<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as in `deref`.
        unsafe { &mut *self.inner.value.get() }
    }
}

impl<T> Owned<T> {
    /// Returns whether this thread uses the value and therefore cannot enter it.
    #[must_use]
    pub fn is_used(&self) -> bool {
        // ORDER: Relaxed: this thread stored it, or one that handed the owner over.
        self.inner.is_used.load(Ordering::Relaxed)
    }

    /// Returns the value for use, unless this thread uses it already, or a watcher holds it for
    /// long.
    #[inline]
    pub fn enter(&self) -> Option<Used<'_, T>> {
        let Inner { is_used, is_claimed, both_full, .. } = &*self.inner;
        if self.is_used() {
            return None;
        }
        for _ in 0..TRIES {
            // ORDER: Relaxed: the fence orders it (B2).
            is_used.store(true, Ordering::Relaxed);
            let end = EndOfUse(is_used);
            if *both_full {
                fences::full()
            } else {
                fences::light()
            }
            // ORDER: Acquire pairs with the Release in `EndOfUse`.
            if !is_claimed.load(Ordering::Acquire) {
                return Some(Used { inner: &self.inner, _end: end, _unsent: PhantomData });
            }
            drop(end);
            std::thread::yield_now();
        }
        None
    }
}

impl<T> Watched<T> {
    /// Calls `call` with the value, unless its owner uses it for long, another watcher uses it, or
    /// the system refuses a fence: then it returns `None` without the call. The owner waits during
    /// the call.
    pub fn look<R>(&self, call: impl FnOnce(&mut T) -> R) -> Option<R> {
        let Inner { is_used, is_claimed, both_full, value } = &*self.inner;
        // ORDER: Relaxed: the fence of `heavy` pairs with the Release in `EndOfUse`.
        is_claimed.compare_exchange(false, true, Ordering::Relaxed, Ordering::Relaxed).ok()?;
        let _end = EndOfUse(is_claimed);
        if !fences::heavy(*both_full) {
            return None;
        }
        for _ in 0..TRIES {
            // ORDER: Acquire pairs with the Release in `EndOfUse`.
            if !is_used.load(Ordering::Acquire) {
                // SAFETY: used by this thread alone (B1).
                return Some(call(unsafe { &mut *value.get() }));
            }
            std::thread::yield_now();
        }
        None
    }
}

impl<T> Clone for Watched<T> {
    fn clone(&self) -> Self {
        Self { inner: Arc::clone(&self.inner) }
    }
}

impl<T> fmt::Debug for Owned<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Owned").finish_non_exhaustive()
    }
}

impl<T> fmt::Debug for Used<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Used").finish_non_exhaustive()
    }
}

impl<T> fmt::Debug for Watched<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watched").finish_non_exhaustive()
    }
}
